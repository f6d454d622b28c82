package readiness

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// fakeApprovals returns the approvals of a test, or an error.
type fakeApprovals struct {
	approvals []coverage.Approval
	err       error
}

func (f *fakeApprovals) Approvals(context.Context) ([]coverage.Approval, error) {
	return f.approvals, f.err
}
func (*fakeApprovals) ApprovalSource(time.Duration) source.Source { return nil }

// onImage is a template with two required parameters without values, one of them sensitive.
const onImage = `
spec:
  parameters:
  - {name: IMAGE, required: true, pattern: "[a-z]+"}
  - {name: TOKEN, required: true, sensitive: true}
  virtualMachine:
    metadata: {name: box}
    spec:
      runStrategy: Halted
      dataVolumeTemplates:
      - {metadata: {name: root}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: "${IMAGE}"}, storage: {}}}
      - {metadata: {name: data}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: "${TOKEN}"}, storage: {}}}
      template: {spec: {domain: {devices: {}}}}
`

func TestApprovalsListTheValuesThatAreChecked(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", onImage), vmt(t, "other", fromFedora))
	approvals := &fakeApprovals{err: errors.New("the approvals are not read yet")}
	r.options.Approvals = approvals
	var requested []string
	r.again = func(name types.NamespacedName) { requested = append(requested, name.Name) }
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "golden", Name: "box"}}); err == nil {
		t.Error("it decides before the approvals are read")
	}
	names := func() (names []string) {
		w.reconcile(r, "box")
		w.reconcile(r, "other")
		for _, one := range w.templates[types.NamespacedName{Namespace: "golden", Name: "box"}].Status.Volumes {
			names = append(names, one.Name)
		}
		return names
	}
	approvals.err = nil
	for _, tc := range []struct {
		name  string
		specs []string
		want  []string
	}{
		{"no approval", nil, nil},
		{"an approval of the template", []string{`{namespaces: [a], templates: [{namespace: golden, name: box}], parameters: [{name: IMAGE, allowed: [fedora, debian]}]}`}, []string{"fedora", "debian"}},
		{"an approval of another template", []string{`{namespaces: [a], templates: [{namespace: golden, name: other}], parameters: [{name: IMAGE, allowed: [fedora]}]}`}, nil},
		{"any value", []string{`{namespaces: [a], templates: [{namespace: golden, name: box}], parameters: [{name: IMAGE, anyValue: true}]}`}, nil},
		{"a value that the template does not accept", []string{`{namespaces: [a], templates: [{namespace: golden, name: box}], parameters: [{name: IMAGE, allowed: [Fedora, fedora]}]}`}, []string{"fedora"}},
		{"two approvals", []string{
			`{namespaces: [a], templates: [{namespace: golden, name: box}], parameters: [{name: IMAGE, allowed: [fedora]}]}`,
			`{namespaces: [b], templates: [{namespace: golden, selector: {}}], parameters: [{name: IMAGE, allowed: [debian, fedora]}]}`,
		}, []string{"fedora", "debian"}},
		{"a sensitive parameter", []string{`{namespaces: [a], templates: [{namespace: golden, name: box}], parameters: [{name: TOKEN, allowed: [hunter2]}]}`}, nil},
	} {
		approvals.approvals = nil
		for i, spec := range tc.specs {
			approvals.approvals = append(approvals.approvals, coverage.Approval{Approval: fixture.Approval(t, string(rune('a'+i)), spec)})
		}
		want := slices.Concat([]string{"${IMAGE}", "${TOKEN}"}, tc.want)
		if diff := cmp.Diff(want, names()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, err := r.Reconcile(t.Context(), coverage.Cluster); err != nil || !slices.Equal(requested, []string{"box"}) {
		t.Errorf("a change of approvals requests %v: %v", requested, err)
	}
}
