package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
)

// Policy is a policy in a file.
type Policy struct {
	// File is the name of the file as it was given, or found.
	File string
	// Spec is the policy in the engine's types.
	Spec *policyspec.Spec
	// Problems are the problems of the manifest other than those of the module.
	Problems field.ErrorList
	// Modules are the test files next to the policy; see Reader.AddTests.
	Modules []suite.Module

	placement placement
}

// Name returns the name of the policy.
func (p *Policy) Name() string { return p.Spec.Definition.Name }

// Locate returns the position in the file of a position in the module. If known is false, rows
// of the module are not rows of the file.
func (p *Policy) Locate(row, column int) (fileRow, fileColumn int, known bool) {
	return row + p.placement.row, column + p.placement.column, p.placement.known
}

// kindPolicy is the kind of the manifests that are policies.
const kindPolicy = "VirtualMachinePolicy"

// Policies reads the policies at the given paths: VirtualMachinePolicies, and Rego modules
// other than tests. Manifests of other kinds are skipped, but a file that is given explicitly
// must contain a policy.
func (r *Reader) Policies(paths []string) ([]*Policy, error) {
	files, err := r.files(paths)
	if err != nil {
		return nil, err
	}
	var policies []*Policy
	for _, f := range files {
		if f.test() {
			continue
		}
		found, err := r.policies(f)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && !f.found {
			return nil, cli.Usage(fmt.Errorf("%s holds no %s", f.name, kindPolicy))
		}
		policies = append(policies, found...)
	}
	if len(policies) == 0 {
		return nil, cli.Usage(errors.New("no policies: nothing of what was named is or holds a " + kindPolicy + " or a Rego module"))
	}
	return policies, nil
}

func (r *Reader) policies(f file) ([]*Policy, error) {
	if f.rego() {
		return []*Policy{r.module(f)}, nil
	}
	found, err := documents(f)
	if err != nil {
		return nil, err
	}
	var policies []*Policy
	for i := range found {
		if found[i].kind == kindPolicy {
			policies = append(policies, manifest(&found[i]))
		}
	}
	return policies, nil
}

// module converts a Rego module to a policy.
func (r *Reader) module(f file) *Policy {
	definition := &v1alpha1.VirtualMachinePolicy{}
	definition.Name = strings.TrimSuffix(filepath.Base(f.name), filepath.Ext(f.name))
	definition.Spec.Rego = string(f.content)
	spec, problems := policyspec.Read(definition)
	spec.Definition.Parameters = r.Parameters
	if len(r.Kinds) > 0 {
		spec.Definition.Kinds, spec.Match.Kinds = r.Kinds, r.Kinds
	}
	return &Policy{File: f.name, Spec: spec, Problems: problems, placement: whole}
}

// manifest converts a VirtualMachinePolicy to a policy.
func manifest(d *document) *Policy {
	var problems field.ErrorList
	definition := &v1alpha1.VirtualMachinePolicy{}
	// Everything that can be decoded is decoded, despite other errors.
	unknown, err := json.UnmarshalStrict(d.json, definition)
	for _, each := range append(unknown, err) {
		if each != nil {
			problems = append(problems, field.Invalid(nil, field.OmitValueType{}, strings.TrimPrefix(Suggesting(each, definition).Error(), "json: ")))
		}
	}
	if definition.APIVersion != v1alpha1.GroupVersion.String() {
		problems = append(problems, field.NotSupported(field.NewPath("apiVersion"), definition.APIVersion, []string{v1alpha1.GroupVersion.String()}))
	}
	problems = append(problems, validate(definition)...)
	spec, unreadable := policyspec.Read(definition)
	return &Policy{
		File: d.file, Spec: spec, Problems: append(problems, unreadable...),
		placement: placementOf(d, definition.Spec.Rego),
	}
}
