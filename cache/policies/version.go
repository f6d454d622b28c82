package policies

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
)

// version is a version of a policy that can be active.
type version struct {
	// generation is the generation of the object.
	generation int64
	// source is the spec of the version, without tests.
	source *v1alpha1.VirtualMachinePolicySpec
	// fingerprint is the digest of source, module that of its compiled fields.
	fingerprint, module [sha256.Size]byte
	// entry is the entry in the set.
	entry policyset.Entry
}

// fingerprints returns the digests of a spec without tests.
func fingerprints(source *v1alpha1.VirtualMachinePolicySpec) (whole, module [sha256.Size]byte, err error) {
	if whole, err = digest(source); err != nil {
		return whole, module, err
	}
	module, err = digest(&v1alpha1.VirtualMachinePolicySpec{
		Rego:             source.Rego,
		Parameters:       source.Parameters,
		ParametersSchema: source.ParametersSchema,
		Match:            v1alpha1.PolicyMatch{Kinds: source.Match.Kinds},
		Data:             source.Data,
	})
	return whole, module, err
}

func digest(source *v1alpha1.VirtualMachinePolicySpec) (sum [sha256.Size]byte, err error) {
	raw, err := json.Marshal(source)
	if err != nil {
		return sum, fmt.Errorf("encoding the spec of a policy: %w", err)
	}
	return sha256.Sum256(raw), nil
}

// withoutTests returns a copy of a spec that shares everything but the tests.
func withoutTests(spec *v1alpha1.VirtualMachinePolicySpec) *v1alpha1.VirtualMachinePolicySpec {
	copied := *spec
	copied.Tests = nil
	return &copied
}

// broken is the placeholder in a set for a policy that cannot be evaluated.
type broken struct {
	name, digest string
	err          error
}

var _ policyset.Policy = &broken{}

func newBroken(object *v1alpha1.VirtualMachinePolicy, spec *policyspec.Spec, why string) *version {
	policy := &broken{
		name:   object.Name,
		digest: fmt.Sprintf("broken:%s/%d", object.UID, object.Generation),
		err:    fmt.Errorf("it is broken: %s", why),
	}
	return &version{generation: object.Generation, source: withoutTests(&object.Spec), entry: spec.Entry(policy)}
}

// Name implements policyset.Policy.
func (b *broken) Name() string { return b.name }

// Digest implements policyset.Policy.
func (b *broken) Digest() string { return b.digest }

// Metadata implements policyset.Policy.
func (b *broken) Metadata() rego.Metadata { return rego.Metadata{Severity: rego.SeverityMedium} }

// Evaluate implements policyset.Policy.
func (b *broken) Evaluate(context.Context, *rego.Input) (rego.Result, error) {
	return rego.Result{}, b.err
}
