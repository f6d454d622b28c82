package approve

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// addition is what flags add to an approval.
type addition struct {
	templates, namespaces []string
	overrides, allowed    []string
	opened                []string
	enforcement           string

	approved    []v1alpha1.ApprovedTemplate
	constraints []v1alpha1.ParameterConstraint
}

func (a *addition) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&a.templates, "template", nil, "template to approve: NAMESPACE/NAME, or NAMESPACE/* for all of a namespace; may be repeated")
	flags.StringSliceVarP(&a.namespaces, "namespace", "n", nil, "namespace to approve it for; may be repeated")
	flags.StringArrayVar(&a.overrides, "override", nil, "path that users may set beside a template; may be repeated")
	flags.StringArrayVar(&a.allowed, "allow", nil, "values that a parameter may have: NAME=VALUE,...; may be repeated")
	flags.StringSliceVar(&a.opened, "any-value", nil, "parameter that may have any value that its template allows; may be repeated")
	flags.StringVar(&a.enforcement, "enforcement", "", "Deny, Warn or Audit (default what it is, Deny for a new one)")
	_ = command.RegisterFlagCompletionFunc("enforcement", cobra.FixedCompletions([]string{
		string(v1alpha1.EnforcementDeny), string(v1alpha1.EnforcementWarn), string(v1alpha1.EnforcementAudit),
	}, cobra.ShellCompDirectiveNoFileComp))
}

// parse reads the flags.
func (a *addition) parse() error {
	if len(a.templates)+len(a.namespaces)+len(a.overrides)+len(a.allowed)+len(a.opened) == 0 && a.enforcement == "" {
		return cli.Usage(errors.New("there is nothing to approve: give --template, --namespace, --override, --allow, --any-value or --enforcement"))
	}
	for _, written := range a.templates {
		namespace, name, found := strings.Cut(written, "/")
		if !found || namespace == "" || name == "" {
			return cli.Usage(fmt.Errorf("--template %s: want NAMESPACE/NAME or NAMESPACE/*", written))
		}
		one := v1alpha1.ApprovedTemplate{Namespace: namespace, Name: name}
		if name == "*" {
			one.Name, one.Selector = "", &v1alpha1.LabelSelector{}
		}
		a.approved = append(a.approved, one)
	}
	for _, written := range a.allowed {
		name, values, found := strings.Cut(written, "=")
		if !found || name == "" || values == "" {
			return cli.Usage(fmt.Errorf("--allow %s: want NAME=VALUE,VALUE", written))
		}
		a.constraints = append(a.constraints, v1alpha1.ParameterConstraint{Name: name, Allowed: strings.Split(values, ",")})
	}
	for _, name := range a.opened {
		a.constraints = append(a.constraints, v1alpha1.ParameterConstraint{Name: name, AnyValue: true})
	}
	return nil
}

// to adds the addition to an approval, and reports whether that changes anything.
func (a *addition) to(spec *v1alpha1.TemplateApprovalSpec) bool {
	before := spec.DeepCopy()
	same := func(x, y string) bool { return x == y }
	spec.Templates = merged(spec.Templates, a.approved, func(x, y v1alpha1.ApprovedTemplate) bool {
		// An entry that is pinned to a digest is not the same: an unpinned one approves more.
		return equality.Semantic.DeepEqual(x, y)
	})
	spec.Namespaces = merged(spec.Namespaces, a.namespaces, same)
	spec.Overrides = merged(spec.Overrides, a.overrides, same)
	for _, constraint := range a.constraints {
		i := slices.IndexFunc(spec.Parameters, func(p v1alpha1.ParameterConstraint) bool { return p.Name == constraint.Name })
		switch {
		case i < 0:
			spec.Parameters = append(spec.Parameters, constraint)
		case constraint.AnyValue:
			// AnyValue replaces a list of allowed values.
			spec.Parameters[i] = constraint
		case !spec.Parameters[i].AnyValue:
			spec.Parameters[i].Allowed = merged(spec.Parameters[i].Allowed, constraint.Allowed, same)
		}
	}
	if a.enforcement != "" {
		spec.Enforcement = v1alpha1.Enforcement(a.enforcement)
	}
	return !equality.Semantic.DeepEqual(before, spec)
}

// merged adds to a list the items that it does not have.
func merged[T any](list, items []T, same func(a, b T) bool) []T {
	for _, item := range items {
		if !slices.ContainsFunc(list, func(other T) bool { return same(item, other) }) {
			list = append(list, item)
		}
	}
	return list
}

// write writes the fields that an addition may change into an object, and does not change the
// others.
func (a *addition) write(from *v1alpha1.TemplateApprovalSpec, spec map[string]any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return cli.Internal(fmt.Errorf("encoding the TemplateApproval: %w", err))
	}
	fields, err := machine.Decode(raw)
	if err != nil {
		return cli.Internal(err)
	}
	for _, key := range []string{"templates", "namespaces", "overrides", "parameters", "enforcement"} {
		if value, found := fields[key]; found {
			spec[key] = value
		}
	}
	return nil
}
