package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/policies/library"
	"github.com/vmstencil/stencil/policies/proof"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// provable is the catalogue as a cluster has it, and the policies of the library.
type provable struct {
	templates []*v1beta1.VirtualMachineTemplate
	approval  *v1alpha1.TemplateApproval
	policies  []*v1alpha1.VirtualMachinePolicy
}

func newProvable(t testing.TB) provable {
	t.Helper()
	manifest, stderr, ok := helm(t, `{architectures: [amd64, arm64], approval: {enabled: true, namespaces: [team-a]}}`, catalogueArguments(t)...)
	if !ok {
		t.Fatalf("helm template: %s", stderr)
	}
	policies, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	found := provable{policies: policies}
	for _, object := range decode(t, manifest) {
		var into any
		switch object.GetKind() {
		case "VirtualMachineTemplate":
			one := &v1beta1.VirtualMachineTemplate{}
			into, found.templates = one, append(found.templates, one)
		case "TemplateApproval":
			found.approval = &v1alpha1.TemplateApproval{}
			into = found.approval
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(found.templates, func(a, b *v1beta1.VirtualMachineTemplate) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// sizes has all preferences, and the instance types of the series u1.
type sizes struct{}

func (sizes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	spec := map[string]any{"devices": map[string]any{"preferredDiskBus": "virtio"}}
	if r.Kind == sizing.KindClusterInstancetype {
		i := slices.Index([]string{"u1.small", "u1.medium", "u1.large", "u1.xlarge"}, r.Name)
		spec = map[string]any{"cpu": map[string]any{"guest": json.Number(fmt.Sprint(max(1, i)))}, "memory": map[string]any{"guest": fmt.Sprintf("%dGi", 2<<max(0, i))}}
	}
	return map[string]any{"kind": r.Kind, "metadata": map[string]any{"name": r.Name}, "spec": spec}, nil
}

// prove compiles everything, and decides all policies for each template.
func (p *provable) prove(t testing.TB) []*proof.Proof {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	var entries []policyset.Entry
	for _, each := range p.policies {
		spec, problems := policyspec.Read(each)
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		compiled, err := compiler.Compile(t.Context(), spec.Definition)
		if err != nil {
			t.Fatal(err)
		}
		entry := spec.Entry(compiled)
		entry.Timeout = time.Minute
		entries = append(entries, entry)
	}
	approved, err := approval.Compile(p.approval)
	if err != nil {
		t.Fatal(err)
	}
	set, evaluator := policyset.NewSet(entries), policyset.NewEvaluator(policyset.Options{Deadline: time.Hour, Quarantine: policyset.QuarantineOptions{Strikes: 1 << 30}})
	found := make([]*proof.Proof, len(p.templates))
	group, ctx := errgroup.WithContext(t.Context())
	for i, each := range p.templates {
		group.Go(func() (err error) {
			found[i], err = proof.Prove(ctx, proof.Question{
				Template: templatecache.Compile(each), Approval: approved, Policies: set, Namespace: rego.Namespace{Name: "team-a"}, Sizes: sizes{},
			}, evaluator)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return found
}

// Every policy of the library is decided for every size that the approval of the catalogue allows. Those that find something are about what users write
// besides the template, such as labels, about where images come from, and about sizes.
func TestPoliciesAreDecidedForTheCatalogue(t *testing.T) {
	p := newProvable(t)
	if len(p.templates) != 25 {
		t.Errorf("%d templates", len(p.templates))
	}
	got := map[string]string{}
	for i, found := range p.prove(t) {
		for _, r := range found.Policies {
			text := fmt.Sprintf("%s, %d of %d", r.Status, r.Denied, r.Combinations)
			if r.Example != nil && len(r.Example.Values) > 0 {
				text += fmt.Sprintf(": %v", r.Example.Values)
			}
			if text += r.Reason; r.Approved != 4 || r.Status == proof.Failed || r.Status == proof.Undecided {
				t.Errorf("%s, %s: %s, %d approved", p.templates[i].Name, r.Policy, text, r.Approved)
			}
			if p.templates[i].Name == "fedora" && r.Status != proof.Holds {
				got[r.Policy] = text
			}
		}
	}
	want := map[string]string{
		"import-sources": "counterexample, 4 of 4", "live-migration": "counterexample, 4 of 4", "owner-label": "counterexample, 4 of 4",
		"required-labels": "counterexample, 4 of 4", "secure-boot": "counterexample, 4 of 4", "vtpm": "counterexample, 4 of 4",
		"owner-budget": "counterexample, 1 of 4: [{INSTANCETYPE u1.xlarge}]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fedora (-want +got):\n%s", diff)
	}
}

// BenchmarkProveCatalogue compiles the templates, the approval and the policies of the library, and decides these for all sizes.
func BenchmarkProveCatalogue(b *testing.B) {
	p := newProvable(b)
	decided := 0
	for b.Loop() {
		decided = 0
		for _, found := range p.prove(b) {
			decided += len(found.Policies)
		}
	}
	b.ReportMetric(float64(decided), "decisions/op")
}
