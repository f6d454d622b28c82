package policydata

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// Objects has the values that depend on the object that is evaluated, of given objects instead of those of a cluster.
type Objects struct {
	vms    *virtualMachines
	quotas *quotas
}

// NewObjects returns the values of VirtualMachines, with the instance types that they name, and of ResourceQuotas.
func NewObjects(vms, instancetypes []*unstructured.Unstructured, resourceQuotas []*corev1.ResourceQuota) *Objects {
	o := &Objects{vms: newVirtualMachines(nil, nil, given(instancetypes), func() {}), quotas: &quotas{}}
	for _, object := range vms {
		// Reduced objects have the type of the index: this cannot fail.
		_ = o.vms.index.Add(&watching.Object[vm]{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}, Value: reduce(object)})
	}
	o.quotas.index = newQuotaIndex(func() {})
	for _, quota := range resourceQuotas {
		_ = o.quotas.index.Add(quota)
	}
	return o
}

// Bind returns the source of a reference whose value depends on the object that is evaluated. The error is about objects that were not given.
func (o *Objects) Bind(reference rego.Reference) (rego.Source, error) {
	if of := reference.VirtualMachines; of != nil {
		if o.vms.index.Len() == 0 {
			return nil, errors.New("has VirtualMachines")
		}
		return o.vms.counts(of)
	}
	found := false
	for _, quota := range o.quotas.index.List() {
		found = found || quota.name == reference.ResourceQuota
	}
	if !found {
		return nil, fmt.Errorf("has ResourceQuota %s", reference.ResourceQuota)
	}
	return namedQuota{o.quotas, reference.ResourceQuota}, nil
}

// given are instance types. Revisions of them are not: the present ones are used.
type given []*unstructured.Unstructured

// Synced implements Sizes.
func (given) Synced() bool { return true }

// Written implements Sizes.
func (given) Written() <-chan struct{} { return nil }

// Size implements Sizes.
func (g given) Size(r sizing.Reference) (sizing.Size, error) {
	i := slices.IndexFunc(g, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == r.Kind && o.GetName() == r.Name && (!r.Namespaced() || o.GetNamespace() == r.Namespace)
	})
	if i < 0 {
		return sizing.Size{}, fmt.Errorf("%s was not given", r)
	}
	return sizing.Instance(g[i].Object)
}
