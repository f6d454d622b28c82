package audit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// timeout is the timeout for the result of an audit.
const timeout = 30 * time.Second

// approve returns the manifest of an approval of the templates of a namespace.
func approve(name, templates string, modifiers ...gen.Modifier) string {
	return gen.Manifest(gen.Approval(name, append(modifiers, gen.Approves(templates+"/*"))...))
}

// finding is the result of an audit in the status of an approval.
type finding struct {
	Conforming, Violating int32
	Causes                []string
}

// awaitFinding waits until the status of an approval contains the finding.
func awaitFinding(t *testing.T, plane *controlplane.Plane, approval string, want finding) {
	t.Helper()
	harness.Within(t, "approval "+approval+" has its findings", timeout, func() error {
		object, err := read(t, plane, approval)
		if err != nil {
			return err
		}
		status := object.Status
		if status.ObservedGeneration != object.Generation || status.Conforming == nil || status.Violating == nil {
			return fmt.Errorf("%s was not audited yet: %+v", approval, status)
		}
		got := finding{Conforming: *status.Conforming, Violating: *status.Violating}
		for _, violation := range status.Violations {
			got.Causes = append(got.Causes, violation.Name+": "+violation.Cause)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("status of %s (-want +got):\n%s", approval, diff)
		}
		return nil
	})
}

func read(t *testing.T, plane *controlplane.Plane, approval string) (*v1alpha1.TemplateApproval, error) {
	t.Helper()
	text, err := lookup(t, plane, "get", "templateapproval", approval, "-o", "yaml")
	if err != nil {
		return nil, err
	}
	object := &v1alpha1.TemplateApproval{}
	return object, yaml.Unmarshal([]byte(text), object)
}

// start runs the reconcilers of approvals until the test ends.
func start(t *testing.T) (*controlplane.Plane, *leader) {
	t.Helper()
	plane := shared.Plane(t)
	l := newLeader(t, plane)
	l.addGoverning(t)
	l.run(t)
	return plane, l
}

func TestAuditFindsWhatIsNotApproved(t *testing.T) {
	plane, leader := start(t)
	golden, other, team := namespace(t, plane), namespace(t, plane), namespace(t, plane)
	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	own(t, plane, small(golden, "doomed", 2), "apply", "-f", "-")
	own(t, plane, small(other, "foreign", 2), "apply", "-f", "-")
	vmOf := func(name, from string, values map[string]string) *unstructured.Unstructured {
		return rendered(t, plane, team, name, from, values)
	}
	cores := []string{"spec", "template", "spec", "domain", "cpu", "cores"}

	store(t, plane,
		vmOf("good", golden+"/small", nil),
		set(t, vmOf("by-override", golden+"/small", nil), "Always", "spec", "runStrategy"),
		set(t, vmOf("resized", golden+"/small", nil), int64(64), cores...),
		vmOf("huge", golden+"/small", map[string]string{"MEMORY": "64Gi"}),
		vmOf("orphan", golden+"/doomed", nil),
		vmOf("stranger", other+"/foreign", nil),
		gen.VM("handmade", gen.InNamespace(team), gen.LeastSpec()),
	)
	own(t, plane, "", "delete", "virtualmachinetemplate", "doomed", "--namespace", golden)
	name := "finds-" + team
	apply(t, plane, approve(name, golden, gen.Governs(team), gen.Overrides("spec.runStrategy"), gen.Spec("parameters: [{name: MEMORY, allowed: [1Gi, 2Gi]}]")))

	awaitFinding(t, plane, name, finding{Conforming: 2, Violating: 5, Causes: []string{
		"handmade: it names no template",
		`huge: parameters[MEMORY]: Invalid value: "64Gi": must be one of "1Gi", "2Gi"`,
		"orphan: its template " + golden + "/doomed no longer exists",
		"resized: differs from template " + golden + "/small at spec.template.spec.domain.cpu.cores",
		fmt.Sprintf("stranger: approval %q: it does not approve template %s/foreign", name, other),
	}})

	t.Run("kubectl shows it in columns", func(t *testing.T) {
		lines := strings.Split(kubectl(t, plane, "", "get", "tapp", name), "\n")
		wantHead := []string{"NAME", "ENFORCEMENT", "TEMPLATES", "NAMESPACES", "CONFORMING", "VIOLATING", "READY", "AGE"}
		want := []string{name, "Deny", "1", "1", "2", "5", "True"}
		if diff := cmp.Diff(wantHead, strings.Fields(lines[0])); diff != "" {
			t.Errorf("columns (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, strings.Fields(lines[1])[:len(want)]); diff != "" {
			t.Errorf("row (-want +got):\n%s", diff)
		}
	})
	t.Run("metrics show it", func(t *testing.T) {
		for result, want := range map[string]float64{"conforming": 2, "violating": 5} {
			if got := leader.metric(t, "stencil_audit_machines", map[string]string{"approval": name, "result": result}); got != want {
				t.Errorf("%s: got %v, want %v", result, got, want)
			}
		}
		if got := leader.metric(t, "stencil_audit_last_success_timestamp_seconds", nil); time.Since(time.Unix(int64(got), 0)) > time.Minute {
			t.Errorf("the last audit was at %v", got)
		}
	})
	t.Run("an event tells of the first violations", func(t *testing.T) {
		harness.Within(t, "an event tells of the violations", timeout, func() error {
			got, err := lookup(t, plane, "get", "events", "--namespace=default", "-o",
				`jsonpath={range .items[?(@.involvedObject.name=="`+name+`")]}{.type} {.reason}: {.message}{"\n"}{end}`)
			want := "Warning ViolationsFound: 5 VirtualMachines are not approved, " + team + "/handmade first: it names no template"
			if !strings.Contains(got, want) {
				return fmt.Errorf("%w: the events are\n%s", errors.Join(err, errors.New("missing")), got)
			}
			return nil
		})
	})
	t.Run("nothing is written while nothing changes", func(t *testing.T) {
		before, err := read(t, plane, name)
		if err != nil {
			t.Fatal(err)
		}
		audits := leader.metric(t, "stencil_audit_last_success_timestamp_seconds", nil)
		// An unrelated change triggers an audit.
		kubectl(t, plane, "", "label", "namespace", other, "touched=yes")
		harness.Within(t, "there is another audit", timeout, func() error {
			if leader.metric(t, "stencil_audit_last_success_timestamp_seconds", nil) == audits {
				return errors.New("there was no audit")
			}
			return nil
		})
		after, err := read(t, plane, name)
		if err != nil {
			t.Fatal(err)
		}
		if before.ResourceVersion != after.ResourceVersion {
			t.Errorf("the status was written: %s", cmp.Diff(before.Status, after.Status))
		}
	})
}

func TestAuditFollowsChanges(t *testing.T) {
	plane, _ := start(t)
	golden, team := namespace(t, plane), namespace(t, plane)
	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	store(t, plane, rendered(t, plane, team, "one", golden+"/small", nil), rendered(t, plane, team, "two", golden+"/small", map[string]string{"MEMORY": "8Gi"}))
	name := "follows-" + team
	apply(t, plane, approve(name, golden, gen.Spec("namespaceSelector: {matchLabels: {tenant: "+team+"}}")))
	condition := func(want string) {
		t.Helper()
		harness.Within(t, "the condition is as wanted", timeout, func() error {
			object, err := read(t, plane, name)
			if err != nil {
				return err
			}
			got := "none"
			if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.ObservedGeneration == object.Generation {
				got = fmt.Sprintf("%s %s, %d templates, %d namespaces", ready.Status, ready.Reason, ptr.Deref(object.Status.Templates, -1), ptr.Deref(object.Status.Namespaces, -1))
			}
			if got != want {
				return fmt.Errorf("condition %q, want %q", got, want)
			}
			return nil
		})
	}
	differs := func(name string) string {
		return name + ": template " + golden + "/small has changed since the VM was rendered from it (generation 1, now 2) and is different at spec.template.spec.domain.cpu.cores"
	}

	condition("False NoNamespaces, 1 templates, 0 namespaces")
	kubectl(t, plane, "", "label", "namespace", team, "tenant="+team)
	condition("True Enforced, 1 templates, 1 namespaces")
	awaitFinding(t, plane, name, finding{Conforming: 2})

	// The approval does not list MEMORY, and one VM has another value than the default.
	harness.Within(t, "there is a warning", timeout, func() error {
		object, err := read(t, plane, name)
		if err != nil {
			return err
		}
		want := []v1alpha1.Violation{{Namespace: team, Name: "two", Cause: `closedParameter: parameters[MEMORY]: Invalid value: "8Gi": must be "1Gi", the default of the template, ` +
			"because the approval does not list this parameter; leave it out, or ask a cluster admin to list it"}}
		if diff := cmp.Diff(want, object.Status.Warnings); diff != "" || object.Status.Warned != 1 {
			return fmt.Errorf("%d warned, warnings (-want +got):\n%s", object.Status.Warned, diff)
		}
		return nil
	})

	own(t, plane, small(golden, "small", 4), "apply", "-f", "-")
	awaitFinding(t, plane, name, finding{Violating: 2, Causes: []string{differs("one"), differs("two")}})

	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	awaitFinding(t, plane, name, finding{Conforming: 2})

	kubectl(t, plane, "", "patch", "templateapproval", name, "--type=merge", `-p={"spec":{"parameters":[{"name":"MEMORY","expression":"quantity(value).compareTo(quantity('4Gi')) <= 0","message":"at most 4Gi"}]}}`)
	awaitFinding(t, plane, name, finding{Conforming: 1, Violating: 1, Causes: []string{`two: parameters[MEMORY]: Invalid value: "8Gi": at most 4Gi`}})

	kubectl(t, plane, "", "patch", "templateapproval", name, "--type=merge", `-p={"spec":{"templates":[{"namespace":"`+golden+`","selector":{"matchLabels":{"tier":"gold"}}}],"parameters":null}}`)
	awaitFinding(t, plane, name, finding{Conforming: 2})
	own(t, plane, "", "label", "virtualmachinetemplate", "small", "--namespace", golden, "tier-")
	condition("False NoTemplates, 0 templates, 1 namespaces")
	notApproved := fmt.Sprintf("approval %q: it does not approve template %s/small", name, golden)
	awaitFinding(t, plane, name, finding{Violating: 2, Causes: []string{"one: " + notApproved, "two: " + notApproved}})

	kubectl(t, plane, "", "patch", "templateapproval", name, "--type=merge", `-p={"spec":{"overrides":["spec.template.spec..oops"]}}`)
	condition("False InvalidConfiguration, 0 templates, 1 namespaces")
	kubectl(t, plane, "", "patch", "templateapproval", name, "--type=merge", `-p={"spec":{"overrides":null,"templates":[{"namespace":"`+golden+`","name":"small"}]}}`)
	condition("True Enforced, 1 templates, 1 namespaces")

	kubectl(t, plane, "", "label", "namespace", team, "tenant-")
	condition("False NoNamespaces, 1 templates, 0 namespaces")
	awaitFinding(t, plane, name, finding{})
}

func TestAMachineSatisfiesOneOfSeveralApprovals(t *testing.T) {
	plane, _ := start(t)
	golden, team := namespace(t, plane), namespace(t, plane)
	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	store(t, plane,
		rendered(t, plane, team, "plain", golden+"/small", nil),
		set(t, rendered(t, plane, team, "resized", golden+"/small", nil), int64(64), "spec", "template", "spec", "domain", "cpu", "cores"),
		set(t, rendered(t, plane, team, "running", golden+"/small", nil), "Always", "spec", "runStrategy"),
	)
	strict, lax := "a-strict-"+team, "b-lax-"+team
	apply(t, plane, approve(strict, golden, gen.Governs(team), gen.Spec("{enforcement: Audit, subjects: [{kind: User, name: nobody}]}")))
	apply(t, plane, approve(lax, golden, gen.Governs(team), gen.Overrides("spec.template.spec.domain.cpu"),
		gen.Spec(`{enforcement: Warn, exemptSubjects: [{kind: Group, name: "system:masters"}]}`)))
	cause := "running: differs from template " + golden + "/small at spec.runStrategy"
	awaitFinding(t, plane, strict, finding{Conforming: 1, Violating: 1, Causes: []string{cause}})
	awaitFinding(t, plane, lax, finding{Conforming: 2, Violating: 1, Causes: []string{cause}})
}

func TestAuditPages(t *testing.T) {
	plane := shared.Plane(t)
	golden, team := namespace(t, plane), namespace(t, plane)
	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	model := rendered(t, plane, team, "x", golden+"/small", nil)
	const vms = 1203
	var all []*unstructured.Unstructured
	for i := range vms {
		vm := model.DeepCopy()
		vm.SetName(fmt.Sprintf("m%04d", i))
		if i%2 == 1 {
			set(t, vm, int64(3), "spec", "template", "spec", "domain", "cpu", "cores")
		}
		all = append(all, vm)
	}
	store(t, plane, all...)
	name := "pages-" + team
	apply(t, plane, approve(name, golden, gen.Governs(team)))
	l := newLeader(t, plane)
	l.addGoverning(t)
	l.run(t)
	want := finding{Conforming: (vms + 1) / 2, Violating: vms / 2}
	for i := range v1alpha1.MaxViolations {
		want.Causes = append(want.Causes, fmt.Sprintf("m%04d: differs from template %s/small at spec.template.spec.domain.cpu.cores", 2*i+1, golden))
	}
	awaitFinding(t, plane, name, want)
	t.Logf("the audit took %v s", l.metric(t, "stencil_audit_duration_seconds", nil))
	own(t, plane, "", "delete", "virtualmachine", "--all", "--namespace", team, "--wait=false")
}
