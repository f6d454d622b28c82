package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubevirtv1 "kubevirt.io/api/core/v1"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/apiserver/body"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var vmKind = schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}

// decodeVM returns the VirtualMachine of a body, and a warning for each field that the API does not have. Such a field is preserved: another version of
// KubeVirt may have it.
func decodeVM(raw []byte, namespace string) (vm machine.Object, warnings []string, err error) {
	bad := func(format string, arguments ...any) (machine.Object, []string, error) {
		return machine.Object{}, nil, apierrors.NewBadRequest("the body is no VirtualMachine: " + fmt.Sprintf(format, arguments...))
	}
	if err := body.Check(raw); err != nil {
		return machine.Object{}, nil, apierrors.NewBadRequest(err.Error())
	}
	text := raw
	if !json.Valid(raw) {
		if text, err = yaml.YAMLToJSONStrict(raw); err != nil {
			return bad("it is neither JSON nor YAML")
		}
	}
	object, err := machine.Decode(text)
	if err != nil {
		return bad("%v", err)
	}
	if object["apiVersion"] != kubevirtv1.SchemeGroupVersion.String() || object["kind"] != vmKind.Kind {
		return bad("apiVersion must be %s and kind %s", kubevirtv1.SchemeGroupVersion, vmKind.Kind)
	}
	typed := &kubevirtv1.VirtualMachine{}
	unknown, err := strictjson.UnmarshalStrict(text, typed)
	if err != nil {
		return machine.Object{}, nil, apierrors.NewInvalid(vmKind, typed.Name, field.ErrorList{misfit(object, func(whole any) any { return whole }, nil)})
	}
	if typed.Namespace != "" && typed.Namespace != namespace {
		return bad("it names namespace %q and is sent to %q", typed.Namespace, namespace)
	}
	if object["metadata"] == nil {
		object["metadata"] = map[string]any{}
	}
	vm, errs := machine.Read(object)
	if machine.MapAt(vm.Spec, "template") == nil {
		detail := "there is nothing to fill in"
		if reference, found := vm.Reference(); found {
			detail = fmt.Sprintf("the template %s is not rendered here: send what process returns", reference)
		}
		errs = append(errs, field.Required(field.NewPath("spec", "template"), detail))
	}
	if len(errs) > 0 {
		return machine.Object{}, nil, apierrors.NewInvalid(vmKind, typed.Name, errs)
	}
	for _, each := range unknown {
		warnings = append(warnings, each.Error())
	}
	return vm, warnings, nil
}

// misfit returns the error about the first value inside a part of a VirtualMachine that its Go type cannot hold: decoders report some without a path, and
// all without the index in a list. within returns a VirtualMachine with nothing but a value in the place of the part.
func misfit(part any, within func(any) any, path *field.Path) *field.Error {
	unfit := func(whole any) error {
		text, err := json.Marshal(whole)
		if err == nil {
			err = json.Unmarshal(text, &kubevirtv1.VirtualMachine{})
		}
		return err
	}
	switch value := part.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		if i, found := first(len(keys), func(from, to int) bool {
			some := map[string]any{}
			for _, key := range keys[from:to] {
				some[key] = value[key]
			}
			return unfit(within(some)) != nil
		}); found {
			return misfit(value[keys[i]], func(child any) any { return within(map[string]any{keys[i]: child}) }, path.Child(keys[i]))
		}
	case []any:
		if i, found := first(len(value), func(from, to int) bool { return unfit(within(value[from:to])) != nil }); found {
			return misfit(value[i], func(child any) any { return within([]any{child}) }, path.Index(i))
		}
	}
	err := unfit(within(part))
	detail := fmt.Sprint(err)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		detail = fmt.Sprintf("must be %s, not %s", typeNames[mistyped.Type.Kind()], mistyped.Value)
	}
	// The value may be a password.
	return field.Invalid(path, field.OmitValueType{}, detail)
}

// first returns the index of the first of n items with a property, by halves: has reports whether one of the items in a range has it. Nothing is found if an
// empty range has it, too.
func first(n int, has func(from, to int) bool) (int, bool) {
	if n == 0 || has(0, 0) || !has(0, n) {
		return 0, false
	}
	from, to := 0, n
	for to-from > 1 {
		if middle := (from + to) / 2; has(from, middle) {
			to = middle
		} else {
			from = middle
		}
	}
	return from, true
}

// typeNames describe the kinds of Go types in messages.
var typeNames = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Struct: "an object", reflect.Map: "an object",
	reflect.Int: "an integer", reflect.Int32: "an integer", reflect.Int64: "an integer",
	reflect.Uint: "a positive integer", reflect.Uint8: "a positive integer", reflect.Uint16: "a positive integer", reflect.Uint32: "a positive integer", reflect.Uint64: "a positive integer",
}
