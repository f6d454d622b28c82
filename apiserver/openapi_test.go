package apiserver

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/vmstencil/stencil/api/subresources/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// The definitions have the same fields as the types.
func TestDefinitionsNameTheFieldsOfTheTypes(t *testing.T) {
	definitions := Definitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
	for _, pair := range []struct{ described, other any }{
		{v1beta1.ProcessOptions{}, v1alpha1.ProcessOptions{}},
		{v1beta1.ProcessedVirtualMachineTemplate{}, v1alpha1.ProcessedVirtualMachineTemplate{}},
	} {
		var described []string
		for name := range definitions[util.GetCanonicalTypeName(pair.described)].Schema.Properties {
			described = append(described, name)
		}
		slices.Sort(described)
		for _, each := range []any{pair.described, pair.other} {
			if fields := fieldsOf(reflect.TypeOf(each)); !slices.Equal(described, fields) {
				t.Errorf("%T has %v, described are %v", each, fields, described)
			}
		}
	}
}

func fieldsOf(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			names = append(names, fieldsOf(of.Field(i).Type)...)
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
