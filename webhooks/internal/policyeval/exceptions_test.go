package policyeval_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/webhooks/internal/policyeval"
)

// grants holds the exceptions, and counts their use.
type grants struct {
	set  *policyset.Exceptions
	used []string
}

func (g *grants) Set() *policyset.Exceptions { return g.set }

func (g *grants) Used(excepted []policyset.Excepted) {
	for _, e := range excepted {
		g.used = append(g.used, e.Policy+"="+e.Exception.Name)
	}
}

// granted returns an exception from a policy for VM web-1 of team-a and user ada.
func granted(policy string) *grants {
	return &grants{set: policyset.NewExceptions([]*policyset.Exception{policyset.NewException(&v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy"},
		Spec: v1alpha1.PolicyExceptionSpec{
			Policies: []string{policy}, Namespaces: []string{"team-a"}, Names: []string{"web-1"}, Reason: "migration",
			Subjects:  []v1alpha1.Subject{{Kind: v1alpha1.SubjectKindUser, Name: "ada"}},
			ExpiresAt: metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC)),
		},
	})})}
}

func TestExceptions(t *testing.T) {
	no := policyset.Entry{
		Policy: compile(t, "sizes", `deny contains "no"`, "VirtualMachine", "VirtualMachineTemplate"),
		Match:  policyset.Match{Operations: []string{"CREATE", "UPDATE", "DELETE"}, Kinds: []string{"VirtualMachine", "VirtualMachineTemplate"}},
	}
	fails := policyset.Entry{Policy: compile(t, "sizes", `deny contains "x" if to_number(input.request.kind) > 1`)}
	other := policyset.Entry{Policy: compile(t, "other", `deny contains "neither"`)}
	const instance = `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: web-1, namespace: team-a}, spec: {domain: {devices: {}}}}`
	const failure = `could not be evaluated: Not found: "VirtualMachineClusterInstancetype gone": it does not exist`
	for _, tc := range []struct {
		name      string
		entries   []policyset.Entry
		operation admissionv1.Operation
		kind      string
		object    string
		old       string
		user      string
		dryRun    bool
		want      []string // denials
		wantUsed  []string
	}{
		{name: "a new VM", entries: []policyset.Entry{no}, operation: "CREATE", kind: "VirtualMachine", object: web, wantUsed: []string{"sizes=legacy"}},
		{name: "a changed VM", entries: []policyset.Entry{no}, operation: "UPDATE", kind: "VirtualMachine", object: web, old: web, wantUsed: []string{"sizes=legacy"}},
		{name: "a dry run is not counted", entries: []policyset.Entry{no}, operation: "CREATE", kind: "VirtualMachine", object: web, dryRun: true},
		{name: "neither is what another policy denies", entries: []policyset.Entry{no, other}, operation: "CREATE", kind: "VirtualMachine", object: web, want: []string{"neither"}},
		{name: "another user", entries: []policyset.Entry{no}, operation: "CREATE", kind: "VirtualMachine", object: web, user: "bob", want: []string{"no"}},
		{name: "a deletion", entries: []policyset.Entry{no}, operation: "DELETE", kind: "VirtualMachine", old: web, want: []string{"no"}},
		{name: "an instance of that name", entries: []policyset.Entry{no}, operation: "CREATE", kind: "VirtualMachineInstance", object: instance, want: []string{"no"}},
		{name: "a template of that name", entries: []policyset.Entry{no}, operation: "CREATE", kind: "VirtualMachineTemplate", object: `{metadata: {name: web-1, namespace: team-a}}`, want: []string{"no"}},
		{name: "a policy that fails", entries: []policyset.Entry{fails}, operation: "CREATE", kind: "VirtualMachine", object: web, want: []string{"failed"}},
		{name: "a size that is not known", entries: []policyset.Entry{no}, operation: "CREATE", kind: "VirtualMachine", object: strings.Replace(web, "huge", "gone", 1), want: []string{failure}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			exceptions := granted("sizes")
			evaluator := evaluatorOf(t, policies(tc.entries...), func(o *policyeval.Options) { o.Exceptions = exceptions })
			r := request(t, tc.operation, tc.kind, tc.object, tc.old)
			r.DryRun = &tc.dryRun
			if tc.user != "" {
				r.UserInfo.Username = tc.user
			}
			decision, err := evaluator.Evaluate(t.Context(), r, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := messages(decision.Denials)
			for i := range got {
				if len(tc.want) > 0 && tc.want[0] == "failed" && strings.HasPrefix(got[i], "could not be evaluated: ") {
					got[i] = "failed"
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("denials (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUsed, exceptions.used); diff != "" {
				t.Errorf("used (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDecisionLogNamesExceptions(t *testing.T) {
	var out bytes.Buffer
	log := policyeval.NewLog(zap.New(zap.WriteTo(&out), zap.JSONEncoder()), 1, nil)
	leak := policyset.Entry{Policy: compile(t, "leak", `deny contains input.object.spec.template.spec.volumes[0].cloudInitNoCloud.userData`)}
	evaluator := evaluatorOf(t, policies(leak, tell(t, `input.parameters.SIZE`)), func(o *policyeval.Options) { o.Log, o.Exceptions = log, granted("leak") })
	if _, err := evaluator.Evaluate(t.Context(), request(t, admissionv1.Create, "VirtualMachine", web, ""), nil); err != nil {
		t.Fatal(err)
	}
	record, err := policyinput.DecodeRecord(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := []policyinput.RecordedFinding{
		{Policy: "tell", Action: "deny", Finding: rego.Finding{Message: "huge"}},
		{Policy: "leak", Action: "deny", Exception: "legacy", Finding: rego.Finding{Message: "***"}},
	}
	if diff := cmp.Diff(want, record.Findings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(out.String(), "abcdefgh") {
		t.Errorf("the password is in %s", out.String())
	}
}
