package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

const (
	coresOf = `{"spec": {"template": {"spec": {"domain": {"cpu": {"cores": "VALUE"}}}}}}`
	coresAt = "spec.virtualMachine.spec.template.spec.domain.cpu.cores"
	orderOf = `{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": "VALUE"}}}}`
	orderAt = "spec.virtualMachine.spec.template.spec.terminationGracePeriodSeconds"
	hugeOf  = `{"spec": {"running": "VALUE"}}`
	hugeAt  = "spec.virtualMachine.spec.running"
	labelOf = `{"metadata": {"labels": {"a": "VALUE"}}}`
)

// joinedOf compiles a template with placeholders in parentheses, and X and Y among its parameters.
func joinedOf(vm, value string, kind v1beta1.ParameterType) (*template.Compiled, error) {
	parameters := []v1beta1.Parameter{{Name: "X", Type: kind, Required: true}, {Name: "Y"}}
	return template.Compile(inParenthesesOf(strings.Replace(vm, "VALUE", value, 1), v1beta1.VirtualMachineTemplateSpec{Parameters: parameters}))
}

func TestPlaceholdersWithoutQuotesAreJoined(t *testing.T) {
	for name, tc := range map[string]struct {
		vm, value, x, y string
		want            string
		refused         string
	}{
		"after a digit":             {vm: coresOf, value: "1$((X))", x: "6", want: "16"},
		"before a digit":            {vm: coresOf, value: "$((X))0", x: "6", want: "60"},
		"two":                       {vm: coresOf, value: "$((X))$((Y))", x: "1", y: "2", want: "12"},
		"one is empty":              {vm: coresOf, value: "$((X))$((Y))", x: "4", want: "4"},
		"a negative number":         {vm: orderOf, value: "-$((X))", x: "5", want: "-5"},
		"a bool":                    {vm: hugeOf, value: "$((X))$((Y))", x: "tr", y: "ue", want: "true"},
		"text where text fits":      {vm: labelOf, value: "1$((X))", x: "6", want: `"16"`},
		"text is text":              {vm: labelOf, value: "1$((X))", x: "a", want: `"1a"`},
		"not a number":              {vm: coresOf, value: "1$((X))", x: "six", refused: coresAt[len("spec.virtualMachine."):] + `: Invalid value: "1six": must be an integer from 0 to 4294967295`},
		"too large":                 {vm: coresOf, value: "9$((X))", x: "999999999", refused: `"9999999999": must be an integer from 0 to 4294967295`},
		"a zero in front":           {vm: coresOf, value: "$((X))$((Y))", x: "0", y: "1", refused: `"01": must be an integer from 0 to 4294967295`},
		"minus zero":                {vm: orderOf, value: "-$((X))", x: "0", refused: `"-0": must be an integer`},
		"a fraction":                {vm: coresOf, value: "1$((X))", x: ".5", refused: `"1.5": must be an integer from 0 to 4294967295`},
		"what would be more fields": {vm: coresOf, value: "1$((X))", x: `0,"threads":9`, refused: `must be an integer from 0 to 4294967295`},
		"nearly a bool":             {vm: hugeOf, value: "$((X))$((Y))", x: "tru", refused: `"tru": must be true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := joinedOf(tc.vm, tc.value, "")
			if err != nil {
				t.Fatal(err)
			}
			binding, err := compiled.Bind(map[string]string{"X": tc.x, "Y": tc.y})
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := compiled.Render(binding)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got %v, want %s", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(strings.ReplaceAll(tc.vm, " ", ""), `"VALUE"`, tc.want, 1); !strings.Contains(string(rendered.JSON()), want[1:len(want)-1]) {
				t.Errorf("got %s, want %s", rendered.JSON(), want)
			}
			var vm map[string]any
			if err := json.Unmarshal(rendered.JSON(), &vm); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string(nil), differences(matched(t, compiled, vm))); diff != "" {
				t.Errorf("what was rendered does not match (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlaceholdersThatNeverMakeANumber(t *testing.T) {
	const whole = `must be an integer from 0 to 4294967295, not a string: a parameter gives that only as the whole value, written $((NAME))`
	for name, tc := range map[string]struct {
		vm, value string
		kind      v1beta1.ParameterType
		want      string
	}{
		"with quotes":      {vm: coresOf, value: "1$(X)", want: coresAt + `: Invalid value: "1$(X)": ` + whole},
		"mixed":            {vm: coresOf, value: "$((X))$(Y)", want: coresAt + `: Invalid value: "$(X)$(Y)": ` + whole},
		"with a letter":    {vm: coresOf, value: "a$((X))", want: coresAt + `: Invalid value: "a$(X)": ` + whole},
		"a negative core":  {vm: coresOf, value: "-$((X))", want: coresAt + `: Invalid value: "-$((X))": must be an integer from 0 to 4294967295, which no text with "-" is`},
		"digits of a bool": {vm: hugeOf, value: "1$((X))", want: hugeAt + `: Invalid value: "1$((X))": must be true or false, which no text with "1" is`},
		"base64":           {vm: coresOf, value: "1$((X))", kind: v1beta1.ParameterTypeBase64, want: coresAt + `: Invalid value: "1$((X))": must be an integer from 0 to 4294967295, which no text with X of type base64 is`},
		"undefined":        {vm: orderOf, value: "1$((Z))", want: orderAt + `: Invalid value: "$((Z))": no parameter is called Z`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := joinedOf(tc.vm, tc.value, tc.kind); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestMatchAJoinedNumber(t *testing.T) {
	compiled, err := joinedOf(coresOf, "1$((X))", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cores any
		want  []string
		x     string
	}{
		"it binds the rest":   {cores: int64(16), x: "6"},
		"a float that is one": {cores: float64(16), x: "6"},
		"another number":      {cores: int64(26), want: []string{`spec.template.spec.domain.cpu.cores: want "1${X}", got 26`}},
		"a fraction":          {cores: 16.5, want: []string{`spec.template.spec.domain.cpu.cores: want "1${X}", got 16.5`}},
		"a text":              {cores: "16", want: []string{`spec.template.spec.domain.cpu.cores: want "1${X}", got "16"`}},
		"nothing":             {want: []string{`spec.template.spec.domain.cpu.cores: want "1${X}", got nothing`}},
	} {
		t.Run(name, func(t *testing.T) {
			cpu := map[string]any{"cores": tc.cores}
			if tc.cores == nil {
				delete(cpu, "cores")
			}
			vm := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{"cpu": cpu}}}}}
			found := matched(t, compiled, vm)
			if diff := cmp.Diff(tc.want, differences(found)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if tc.x != "" && found.Values()["X"] != tc.x {
				t.Errorf("X is %q, want %q", found.Values()["X"], tc.x)
			}
		})
	}
}
