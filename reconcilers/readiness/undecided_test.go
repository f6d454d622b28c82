package readiness

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// condition returns a condition of a template as STATUS/REASON MESSAGE.
func (w *world) condition(name, kind string) string {
	one := meta.FindStatusCondition(w.templates[types.NamespacedName{Namespace: "golden", Name: name}].Status.Conditions, kind)
	if one == nil {
		return ""
	}
	return string(one.Status) + "/" + one.Reason + " " + one.Message
}

const sized = `
spec:
  parameters: [{name: NAME}, {name: P, value: lots}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}, memory: {guest: "${P}"}}}}}
`

// TestATemplateWithoutAVirtualMachineIsNotReady covers templates that were stored before the webhook rejected them.
func TestATemplateWithoutAVirtualMachineIsNotReady(t *testing.T) {
	open := strings.Replace(sized, "{name: NAME}", "{name: NAME, required: true}", 1)
	unsized := strings.Replace(sized, ", value: lots", ", required: true", 1)
	w, r, _ := start(t, vmt(t, "closed", sized), vmt(t, "open", open), vmt(t, "unsized", unsized))
	const cause = `spec.virtualMachine.spec.template.spec.domain.memory.guest: Invalid value: "lots": must be a quantity such as 500m or 2Gi`
	for _, tc := range []struct{ name, want string }{
		{"closed", "False/InvalidConfiguration " + cause + "; these are the template's own values: correct them, or require a value of the user"},
		{"open", "Unknown/NotRendered its defaults make no VirtualMachine: " + cause},
		{"unsized", "True/Reconciled " + v1beta1.MessageReady},
	} {
		w.reconcile(r, tc.name)
		if got := w.condition(tc.name, "Ready"); got != tc.want {
			t.Errorf("%s: Ready is %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestASourceWithoutANamespaceIsThatOfTheVirtualMachine(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", strings.Replace(fromFedora, "namespace: golden, ", "", 1)))
	const relative = "VirtualMachines of other namespaces look for it in their own, because the sourceRef has no namespace"
	w.reconcile(r, "box")
	if got, want := w.condition("box", "SourcesReady"), "False/NotFound volume root: DataSource golden/fedora does not exist; "+relative; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.put(in(sources.DataSource, "fedora"), sources.Object{ReadyReported: true, Ready: true, To: in(sources.Claim, "disk")})
	w.put(in(sources.Claim, "disk"), sources.Object{Ready: true})
	w.reconcile(r, "box")
	if got, want := w.condition("box", "SourcesReady"), "True/AllReady everything that the template depends on can be used; volume root: DataSource golden/fedora: "+relative; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsNotCheckedIsNamed(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", `
spec:
  virtualMachine:
    spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}, volumes: [{name: seed, cloudInitNoCloud: {secretRef: {name: login}}}]}}}
`))
	w.reconcile(r, "box")
	if got, want := w.condition("box", "SourcesReady"), "True/AllReady everything that the template depends on can be used; not checked: volume seed: Secret golden/login (NotRead)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReadyWaitsForThePolicies goes through a creation, a change of the spec, and a start of another leader.
func TestReadyWaitsForThePolicies(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", strings.Replace(sized, "lots", "2Gi", 1)))
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	unevaluated := true
	r.options.Unevaluated = func(*templatecache.Template) bool { return unevaluated }
	const waits, ready = "Unknown/NotEvaluated the policies have not been evaluated yet for this version of the template", "True/Reconciled " + v1beta1.MessageReady
	compliant := metav1.Condition{Type: "PolicyCompliant", Status: "True", Reason: "Compliant"}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a new template", func() {}, waits},
		{"no policy applies", func() { unevaluated = false }, ready},
		{"another leader has evaluated nothing yet", func() { unevaluated = true }, ready},
		{"the spec changes", func() { w.templates[box].Generation++ }, waits},
		{"a policy allows it", func() {
			compliant.ObservedGeneration = w.templates[box].Generation
			meta.SetStatusCondition(&w.templates[box].Status.Conditions, compliant)
		}, ready},
		{"the spec changes again, and the result is of the old one", func() {
			w.templates[box].Generation++
			meta.SetStatusCondition(&w.templates[box].Status.Conditions, compliant)
		}, waits},
	} {
		step.do()
		w.reconcile(r, "box")
		if got := w.condition("box", "Ready"); got != step.want {
			t.Errorf("%s: Ready is %q, want %q", step.what, got, step.want)
		}
	}
}
