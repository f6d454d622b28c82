package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	virtv1 "kubevirt.io/api/core/v1"
)

// schema describes the permitted values of a place in a VirtualMachine. It is derived from the Go types of kubevirt.io/api.
type schema struct {
	shape  shape
	bits   int                // of integers
	elem   *schema            // of lists and maps
	fields map[string]*schema // of structs
	names  []string           // of fields, sorted

	// pointers are the fields of structs that differ from absent ones even if their content is empty.
	pointers map[string]bool
}

type shape uint8

const (
	shapeAny shape = iota // any JSON
	shapeString
	shapeBool
	shapeInt
	shapeUint
	shapeIntOrString
	shapeQuantity
	shapeTime
	shapeStruct
	shapeMap
	shapeList
)

// vmSchema returns the schema of a VirtualMachine. It is made on first use, and shared by all templates.
var vmSchema = sync.OnceValue(func() *schema {
	return schemas{}.of(reflect.TypeFor[virtv1.VirtualMachine]())
})

// schemas holds the schemas made so far, so that a type is read once and may contain itself.
type schemas map[reflect.Type]*schema

// special are the types with a JSON form that differs from their Go fields.
var special = map[reflect.Type]schema{
	reflect.TypeFor[resource.Quantity]():  {shape: shapeQuantity},
	reflect.TypeFor[metav1.Time]():        {shape: shapeTime},
	reflect.TypeFor[intstr.IntOrString](): {shape: shapeIntOrString},
	reflect.TypeFor[metav1.FieldsV1]():    {shape: shapeAny},
}

// structural are types that decode themselves only to clean up their content: their JSON is that of their Go fields.
var structural = map[reflect.Type]bool{
	reflect.TypeFor[virtv1.VirtualMachineInstanceSpec](): true,
	reflect.TypeFor[virtv1.DHCPOptions]():                true,
	reflect.TypeFor[virtv1.PodNetwork]():                 true,
}

// decodesItself reports whether the JSON of t may differ from its Go fields.
func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) && !structural[t]
}

func (made schemas) of(t reflect.Type) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, found := made[t]; found {
		return s
	}
	s := &schema{}
	made[t] = s
	if known, found := special[t]; found {
		*s = known
		return s
	}
	if decodesItself(t) {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		s.shape = shapeString
	case reflect.Bool:
		s.shape = shapeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.shape, s.bits = shapeInt, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.shape, s.bits = shapeUint, t.Bits()
	case reflect.Slice:
		s.shape, s.elem = shapeList, made.of(t.Elem())
	case reflect.Map:
		s.shape, s.elem = shapeMap, made.of(t.Elem())
	case reflect.Struct:
		s.shape, s.fields, s.pointers = shapeStruct, map[string]*schema{}, map[string]bool{}
		made.fields(t, s)
		s.names = slices.Sorted(maps.Keys(s.fields))
	}
	return s
}

// fields adds the fields of struct type t. Fields of the struct itself take precedence over those of structs that it embeds
// inline, as in encoding/json.
func (made schemas) fields(t reflect.Type, into *schema) {
	for i := range t.NumField() {
		if f := t.Field(i); inline(f) {
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			made.fields(embedded, into)
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if inline(f) || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		into.fields[name] = made.of(f.Type)
		into.pointers[name] = f.Type.Kind() == reflect.Pointer
	}
}

func inline(f reflect.StructField) bool {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.Anonymous && name == ""
}

// expected returns a description of the permitted values.
func (s *schema) expected() string {
	switch s.shape {
	case shapeString:
		return "a string"
	case shapeBool:
		return "true or false"
	case shapeInt:
		return fmt.Sprintf("an integer from %d to %d", int64(-1)<<(s.bits-1), uint64(1)<<(s.bits-1)-1)
	case shapeUint:
		return fmt.Sprintf("an integer from 0 to %d", ^uint64(0)>>(64-s.bits))
	case shapeIntOrString:
		return "an integer or a string"
	case shapeQuantity:
		return "a quantity such as 500m or 2Gi"
	case shapeTime:
		return "a time such as 2006-01-02T15:04:05Z"
	case shapeStruct, shapeMap:
		return "an object"
	case shapeList:
		return "a list"
	default:
		return "any value"
	}
}
