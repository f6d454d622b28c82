package render

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
	"github.com/vmstencil/stencil/webhooks/internal/rerender"
)

// maxSecretPlaces is the number of places with secret values that a record lists. With more, all of the spec counts as one.
const maxSecretPlaces = 64

// baseOf returns what the record holds of a rendered spec, for later updates. Generated values are secret unless the VM shows them: they are in its
// name or in an annotation.
func baseOf(compiled *template.Compiled, spec map[string]any, name string, explicit map[string]string) *machine.Base {
	base := &machine.Base{RunStrategy: machine.StringAt(spec, "runStrategy")}
	if running, is := spec["running"].(bool); is {
		base.Running = &running
	}
	named, err := compiled.BindName(name, explicit)
	if err != nil {
		named = nil
	}
	secret := map[string]bool{}
	for _, p := range compiled.Parameters() {
		_, isNamed := named[p.Name]
		_, isExplicit := explicit[p.Name]
		secret[p.Name] = p.Sensitive || p.Generate != "" && !isNamed && !isExplicit
	}
	concealed := compiled.Conceal(map[string]any{"spec": spec}, func(name string) bool { return secret[name] }, overrides.Unknown{Reason: overrides.Secret})
	if base.Secret = overrides.Places(concealed["spec"]); len(base.Secret) > maxSecretPlaces {
		base.Secret = []string{"spec"}
	}
	return base
}

// base returns the stored spec without overrides; nil if it is not known. It sets u.original if something in the base is unknown.
func (u *update) base(from machine.Record) any {
	base := rerender.Base(u.stored, from)
	if base == nil || len(overrides.Unknowns(base)) == 0 || reflect.DeepEqual(u.object.Spec, u.stored.Spec) || u.find == nil {
		return base
	}
	if u.original = u.find(from); u.original == nil {
		return base
	}
	return rerender.Filled(base, u.rendered(from, base))
}

// originalOf returns the template of a record if the user may use it and its content is the same as when the VM was rendered, nil otherwise. The record could be
// that of a template that the user may not use: KubeVirt's controllers write what users specify.
func (h *Handler) originalOf(ctx context.Context, user authenticationv1.UserInfo, from machine.Record) *template.Compiled {
	found := h.templates.Wait(ctx, from.Namespace, from.Name, 0)
	if found == nil || found.UID != from.UID {
		return nil
	}
	if may, err := h.permissions.Allowed(ctx, user, permission.Use, from.Namespace, from.Name); err != nil || !may {
		return nil
	}
	if compiled, err := found.Compiled(); err == nil && compiled.Digest() == from.Digest {
		return compiled
	}
	return nil
}

// rendered renders the template with the values that the VM still shows. Places that depend on others are unknown.
func (u update) rendered(from machine.Record, base any) any {
	shown, err := rerender.Find(u.original, u.stored, from, base)
	if err != nil {
		return nil
	}
	vm, err := shown.Render(nil)
	if err != nil {
		return nil
	}
	return shown.Conceal(vm)["spec"]
}

// lost returns a cause for each place of a new spec that would have to be that of the template, and is unknown.
func (u update) lost(spec any, from machine.Record) (causes field.ErrorList) {
	places := overrides.Unknowns(spec)
	for _, place := range slices.Sorted(maps.Keys(places)) {
		why := "it contains a sensitive or a generated value"
		if places[place] == overrides.TooLarge {
			why = "it is too large"
		}
		template := machine.Reference{Namespace: from.Namespace, Name: from.Name}
		if u.original == nil {
			why += ", and the template has changed since, is gone, or you may not use it"
		}
		causes = append(causes, field.Forbidden(field.NewPath(place), fmt.Sprintf(
			"this override cannot be removed: the value of template %s is not stored with the VirtualMachine, because %s; keep the field, or set it to the value that you want", template, why)))
	}
	return causes
}
