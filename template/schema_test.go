package template

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	virtv1 "kubevirt.io/api/core/v1"
)

// TestSchemaKnowsEveryType fails if a new version of kubevirt.io/api adds a type that decodes itself, or uses a kind of Go
// type that was unused before. The schema permits any value for such a type until it supports it.
func TestSchemaKnowsEveryType(t *testing.T) {
	kinds := []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Slice, reflect.Map, reflect.Struct}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type, string)
	walk = func(t2 reflect.Type, path string) {
		for t2.Kind() == reflect.Pointer {
			t2 = t2.Elem()
		}
		if _, known := special[t2]; known || seen[t2] {
			return
		}
		seen[t2] = true
		if decodesItself(t2) {
			t.Errorf("%s: %v decodes itself, and is neither in special nor in structural", path, t2)
		}
		if !slices.Contains(kinds, t2.Kind()) {
			t.Errorf("%s: %v is of kind %v", path, t2, t2.Kind())
		}
		switch t2.Kind() {
		case reflect.Slice:
			if t2.Elem().Kind() == reflect.Uint8 {
				t.Errorf("%s: %v holds bytes, which JSON has as base64", path, t2)
			}
			walk(t2.Elem(), path+"[]")
		case reflect.Map:
			if t2.Key().Kind() != reflect.String {
				t.Errorf("%s: the keys of %v are no strings", path, t2)
			}
			walk(t2.Elem(), path+"[]")
		case reflect.Struct:
			for i := range t2.NumField() {
				walk(t2.Field(i).Type, path+"."+t2.Field(i).Name)
			}
		default:
		}
	}
	walk(reflect.TypeFor[virtv1.VirtualMachine](), "")
}

func TestSchemaFlattensEmbeddedStructs(t *testing.T) {
	volume := vmSchema().fields["spec"].fields["template"].fields["spec"].fields["volumes"].elem
	for _, name := range []string{"name", "dataVolume", "cloudInitNoCloud", "persistentVolumeClaim"} {
		if volume.fields[name] == nil {
			t.Errorf("a volume has no field %s", name)
		}
	}
	claim := volume.fields["persistentVolumeClaim"]
	if diff := cmp.Diff([]string{"claimName", "hotpluggable", "readOnly"}, claim.names); diff != "" {
		t.Errorf("fields of a claim, whose Go type is embedded twice over (-want +got):\n%s", diff)
	}
}

func TestIntegerRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		schema schema
		text   string
		want   bool
	}{
		"the largest int32":            {schema{shape: shapeInt, bits: 32}, "2147483647", true},
		"one above the largest int32":  {schema{shape: shapeInt, bits: 32}, "2147483648", false},
		"the smallest int32":           {schema{shape: shapeInt, bits: 32}, "-2147483648", true},
		"one below the smallest int32": {schema{shape: shapeInt, bits: 32}, "-2147483649", false},
		"the largest uint64":           {schema{shape: shapeUint, bits: 64}, "18446744073709551615", true},
		"one above the largest uint64": {schema{shape: shapeUint, bits: 64}, "18446744073709551616", false},
		"a negative number":            {schema{shape: shapeUint, bits: 64}, "-1", false},
		"a plus sign":                  {schema{shape: shapeInt, bits: 32}, "+1", false},
		"a leading zero":               {schema{shape: shapeInt, bits: 32}, "01", false},
		"an exponent":                  {schema{shape: shapeInt, bits: 32}, "1e3", false},
		"a fraction of zero":           {schema{shape: shapeInt, bits: 32}, "1.0", false},
		"an underscore":                {schema{shape: shapeInt, bits: 32}, "1_0", false},
		"a lone sign":                  {schema{shape: shapeInt, bits: 32}, "-", false},
		"nothing":                      {schema{shape: shapeInt, bits: 32}, "", false},
		"zero":                         {schema{shape: shapeUint, bits: 32}, "0", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.schema.integer(tc.text); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestExpectedSpellsTheRange(t *testing.T) {
	for want, s := range map[string]schema{
		"an integer from -2147483648 to 2147483647":                   {shape: shapeInt, bits: 32},
		"an integer from -9223372036854775808 to 9223372036854775807": {shape: shapeInt, bits: 64},
		"an integer from 0 to 4294967295":                             {shape: shapeUint, bits: 32},
		"an integer from 0 to 18446744073709551615":                   {shape: shapeUint, bits: 64},
	} {
		if got := s.expected(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, tc := range map[string]struct {
		name       string
		candidates []string
		want       string
	}{
		"another case is nearest":                   {"bootorder", []string{"bootOrde", "bootOrder"}, "bootOrder"},
		"a letter too few":                          {"volume", []string{"volumes", "networks"}, "volumes"},
		"two letters swapped":                       {"nmae", []string{"node", "name"}, "name"},
		"several mistakes in a long name":           {"CLOUD_USR_PASWORT", []string{"CLOUD_USER_PASSWORD"}, "CLOUD_USER_PASSWORD"},
		"nothing near":                              {"HOME", []string{"NAME", "USER"}, ""},
		"nothing at all":                            {"A", nil, ""},
		"a text that is too long to be a name":      {string(make([]byte, 1000)), []string{"NAME"}, ""},
		"the first of those that are equally close": {"ab1", []string{"ab2", "ab3"}, "ab2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Nearest(tc.name, tc.candidates); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
