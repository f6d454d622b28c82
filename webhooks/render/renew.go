package render

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// renew gives a copy of a VM objects of its own, and its own name wherever the template inserts the name. It returns nil if the copy has to
// share the objects of the original VM: if the template has none or has changed, if the copy does not show all values, if the names of the
// objects do not depend on that of the VM, or if the user, which is KubeVirt's controller, may not use the template or create them. Users
// determine what the controller restores, also the record, so without this check they would get objects of templates that they may not use.
func (h *Handler) renew(ctx context.Context, request admission.Request, vm machine.Object, from machine.Record) (*result, *admission.Response) {
	found := h.templates.Wait(ctx, from.Namespace, from.Name, 0)
	if h.objects == nil || found == nil || found.UID != from.UID {
		return nil, nil
	}
	compiled, err := found.Compiled()
	if err != nil || compiled.Digest() != from.Digest || len(compiled.Objects()) == 0 {
		return nil, nil
	}
	if may, err := h.permissions.Allowed(ctx, request.UserInfo, permission.Use, from.Namespace, from.Name); err != nil {
		return nil, unavailable("the permission check failed", err)
	} else if !may {
		return nil, nil
	}
	change, renewed := renaming(compiled, vm, from)
	if !renewed {
		return nil, nil
	}
	decided := change.result(vm, request.Namespace)
	decided.objects.names, decided.objects.lent = compiled.Objects(), lentObjects(compiled)
	ref := machine.Reference{Namespace: from.Namespace, Name: from.Name}
	if denial := h.attach(ctx, request, request.UserInfo, ref, decided); denial != nil {
		if denial.Result != nil && denial.Result.Code >= http.StatusInternalServerError {
			return nil, denial
		}
		return nil, nil
	}
	return decided, nil
}

// rename is the change of the name of a VM: what the template renders to with the old and with the new name.
type rename struct {
	// given are the new values of parameters that annotations of the copy give, and sensitive those of sensitive parameters.
	given     map[string]string
	sensitive []string
	old, new  *template.Rendered
}

// renaming finds the values of a copy, and renders the template with the old and the new name.
func renaming(compiled *template.Compiled, vm machine.Object, from machine.Record) (rename, bool) {
	// The name of the copy binds parameters, but what it copies was rendered with another one.
	unnamed := maps.Clone(vm.Object)
	metadata := maps.Clone(vm.Metadata)
	delete(metadata, "name")
	unnamed["metadata"] = metadata
	match, err := compiled.Match(unnamed, template.Ignoring(disk))
	if err != nil {
		return rename{}, false
	}
	values := vm.Parameters()
	maps.Copy(values, match.Values())
	if slices.ContainsFunc(from.Sensitive, func(name string) bool { _, known := values[name]; return !known }) {
		return rename{}, false
	}
	byName, err := compiled.BindName(vm.Name(), nil)
	if err != nil || len(byName) == 0 {
		return rename{}, false
	}
	renamed := maps.Clone(values)
	maps.Copy(renamed, byName)
	r := rename{given: map[string]string{}}
	for name := range vm.Parameters() {
		if renamed[name] != values[name] {
			r.given[name] = renamed[name]
		}
	}
	if r.old, _, err = rendered(compiled, values, ""); err != nil {
		return rename{}, false
	}
	r.new, r.sensitive, err = rendered(compiled, renamed, vm.Name())
	return r, err == nil
}

// rendered renders a template with values for a VM of this name, and for one of the template's name if it is empty. It returns the values of
// sensitive parameters, too.
func rendered(compiled *template.Compiled, values map[string]string, name string) (*template.Rendered, []string, error) {
	binding, err := compiled.Bind(values)
	if err != nil {
		return nil, nil, err
	}
	made, err := compiled.RenderAs(binding, name)
	return made, sensitiveValues(compiled, binding), err
}

// disk reports whether a place names a disk: KubeVirt gives copies of disks other names.
func disk(path ...string) bool {
	const volume = 4 // spec.template.spec.volumes[name=...]
	if len(path) > 1 && path[0] == "spec" && path[1] == "dataVolumeTemplates" {
		return true
	}
	return len(path) > volume+1 && path[volume-1] == "volumes" && (path[volume+1] == "dataVolume" || path[volume+1] == "persistentVolumeClaim")
}

// result returns the patch of the copy.
func (r rename) result(vm machine.Object, namespace string) *result {
	p := &mutation.Patch{}
	record, _ := vm.Annotations[contract.AnnotationRendered].(string)
	decided := &result{patch: p, objects: attached{
		rendered: r.new.Objects(), sensitive: r.sensitive, binding: objects.Binding{Namespace: namespace, Name: vm.Name(), Record: record},
	}}
	before, _ := machine.Decode(r.old.JSON())
	after, _ := machine.Decode(r.new.JSON())
	for _, key := range []string{"labels", "annotations"} {
		old, changed := machine.MapAt(before, "metadata", key), machine.MapAt(after, "metadata", key)
		requested := machine.MapAt(vm.Object, "metadata", key)
		for _, name := range slices.Sorted(maps.Keys(requested)) {
			if now := overrides.Replace(requested[name], old[name], changed[name], nil); now != nil && !reflect.DeepEqual(now, requested[name]) {
				p.Set(mutation.Pointer{"metadata", key, name}, now)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.given)) {
		p.Set(mutation.Pointer{"metadata", "annotations", contract.AnnotationParameterPrefix + name}, r.given[name])
	}
	// Should the copy share the objects after all, its own spec must be unchanged.
	spec, _ := overrides.Replace(runtime.DeepCopyJSONValue(vm.Spec), before["spec"], after["spec"], nil).(map[string]any)
	p.Set(mutation.Pointer{"spec"}, holding(spec))
	return decided
}
