package policyeval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	"github.com/vmstencil/stencil/webhooks/internal/policyeval"
)

func compile(t *testing.T, name, source string, kinds ...string) *rego.Policy {
	t.Helper()
	return fixture.Policy(t, name, "package p\nimport rego.v1\n"+source, kinds...)
}

// council holds the active policies.
type council struct {
	set       *policyset.Set
	evaluator *policyset.Evaluator
	unsynced  bool
}

func (c *council) Synced() bool                    { return !c.unsynced }
func (c *council) Set() *policyset.Set             { return c.set }
func (c *council) Evaluator() *policyset.Evaluator { return c.evaluator }

func policies(entries ...policyset.Entry) *council {
	return &council{set: policyset.NewSet(entries), evaluator: policyset.NewEvaluator(policyset.Options{})}
}

type cluster map[string]map[string]string

func (c cluster) Namespace(_ context.Context, name string) (labels, annotations map[string]string, found bool) {
	labels, found = c[name]
	return labels, map[string]string{"owner": "team of " + name}, found
}

type templates map[string]*templatecache.Template

func (s templates) Wait(_ context.Context, namespace, name string, _ time.Duration) *templatecache.Template {
	return s[namespace+"/"+name]
}

type catalogue map[string]map[string]any

func (c catalogue) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	if found := c[r.String()]; found != nil {
		return found, nil
	}
	return nil, errors.New("it does not exist")
}

func box(t *testing.T) *templatecache.Template {
	t.Helper()
	return templatecache.Compile(fixture.Decode[v1beta1.VirtualMachineTemplate](t, `
metadata: {namespace: golden, name: box, uid: uid, generation: 7, labels: {os: linux}}
spec:
  parameters:
  - {name: SIZE, value: small}
  - {name: PASSWORD, generate: expression, from: "[a-z]{8}", sensitive: true}
  virtualMachine:
    spec:
      runStrategy: Halted
      instancetype: {name: "${SIZE}"}
      template: {spec: {domain: {devices: {}}, volumes: [{name: init, cloudInitNoCloud: {userData: "password: ${PASSWORD}"}}]}}
`))
}

// web is a VM of template box.
const web = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
  namespace: team-a
  labels: {app: web}
  annotations:
    template.kubevirt.io/template-ref: golden/box
    template.kubevirt.io/rendered: '{"namespace":"golden","name":"box","uid":"uid","generation":7}'
spec:
  runStrategy: Halted
  instancetype: {name: huge}
  template: {spec: {domain: {devices: {}}, volumes: [{name: init, cloudInitNoCloud: {userData: "password: abcdefgh"}}]}}
`

func request(t *testing.T, operation admissionv1.Operation, kind, object, old string) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "request-1",
		Operation: operation,
		Name:      "web-1",
		Namespace: "team-a",
		Kind:      metav1.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: kind},
		Resource:  metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: strings.ToLower(kind) + "s"},
		UserInfo:  authenticationv1.UserInfo{Username: "ada", UID: "7", Groups: []string{"team-a"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"x"}}},
		Object:    runtime.RawExtension{Raw: fixture.JSON(t, object)},
		OldObject: runtime.RawExtension{Raw: fixture.JSON(t, old)},
		DryRun:    ptr.To(true),
	}}
}

func TestWhatIsForeseenLeavesNoTrace(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := policyeval.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	failing := policyset.Entry{Policy: compile(t, "fails", "deny contains \"x\" if 1 / (count(input.object.metadata.name) - 5) == 1"), Match: policyset.Match{Operations: []string{"CREATE"}}}
	e := evaluatorOf(t, policies(tell(t, "input.request.dryRun", "VirtualMachine"), failing), func(o *policyeval.Options) {
		o.Metrics, o.Log = metrics, policyeval.NewLog(funcr.NewJSON(func(line string) { log.WriteString(line) }, funcr.Options{}), 1, nil)
	})
	foreseen := e.Foresee(t.Context(), request(t, admissionv1.Create, "VirtualMachine", web, ""), nil)
	if len(foreseen.Denials) != 1 || foreseen.Denials[0].Message != "true" {
		t.Errorf("denials %v", foreseen.Denials)
	}
	if n, err := testutil.GatherAndCount(registry); err != nil || n > 0 || log.Len() > 0 {
		t.Errorf("%d metrics, %v, log %s", n, err, log)
	}
	unsynced := evaluatorOf(t, &council{unsynced: true})
	if foreseen := unsynced.Foresee(t.Context(), request(t, admissionv1.Create, "VirtualMachine", web, ""), nil); len(foreseen.Denials) > 0 {
		t.Errorf("before policies are compiled: %v", foreseen.Denials)
	}
}

// tell returns a policy that denies with the given part of its input as message.
func tell(t *testing.T, what string, kinds ...string) policyset.Entry {
	t.Helper()
	return policyset.Entry{
		Policy: compile(t, "tell", "deny contains sprintf(\"%v\", ["+what+"])", kinds...),
		Match:  policyset.Match{Operations: []string{"CREATE", "UPDATE", "DELETE"}, Kinds: kinds},
	}
}

func evaluatorOf(t *testing.T, evaluated *council, change ...func(*policyeval.Options)) *policyeval.Evaluator {
	t.Helper()
	o := policyeval.Options{
		Policies:   evaluated,
		Namespaces: cluster{"team-a": {"env": "prod"}},
		Templates:  templates{"golden/box": box(t)},
		Clock:      clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
		Instancetypes: catalogue{"VirtualMachineClusterInstancetype huge": {
			"kind": "VirtualMachineClusterInstancetype", "metadata": map[string]any{"name": "huge"}, "spec": map[string]any{"cpu": map[string]any{"guest": 64.0}},
		}},
	}
	for _, apply := range change {
		apply(&o)
	}
	return policyeval.New(o)
}

func messages(violations []policyset.Violation) []string {
	var texts []string
	for _, v := range violations {
		texts = append(texts, v.Message)
	}
	return texts
}

func TestWhatPoliciesSee(t *testing.T) {
	small := strings.Replace(web, "huge", "small", 1)
	for _, tc := range []struct {
		name        string
		operation   admissionv1.Operation
		kind        string
		object, old string
		what        string
		want        string
		// seenAs is the kind for which the policies are compiled; kind if empty.
		seenAs string
	}{
		{name: "who asks for what", operation: admissionv1.Create, object: web, what: `[input.request.operation, input.request.kind, input.request.namespace, input.request.name, input.request.dryRun]`, want: `["CREATE", "VirtualMachine", "team-a", "web-1", true]`},
		{name: "when", operation: admissionv1.Create, object: web, what: `input.request.time`, want: `2026-11-21T12:00:00Z`},
		{name: "the user", operation: admissionv1.Create, object: web, what: `[input.request.userInfo.username, input.request.userInfo.groups]`, want: `["ada", ["team-a"]]`},
		{name: "the namespace", operation: admissionv1.Create, object: web, what: `[input.namespace.name, input.namespace.labels.env, input.namespace.annotations.owner]`, want: `["team-a", "prod", "team of team-a"]`},
		{name: "the template and its labels", operation: admissionv1.Create, object: web, what: `[input.template.namespace, input.template.name, input.template.labels.os]`, want: `["golden", "box", "linux"]`},
		{name: "bound values, the sensitive one masked", operation: admissionv1.Create, object: web, what: `[input.parameters.SIZE, input.parameters.PASSWORD]`, want: `["huge", "***"]`},
		{name: "the size behind the name", operation: admissionv1.Create, object: web, what: `input.instancetype.spec.cpu.guest`, want: `64`},
		{name: "both objects of a change", operation: admissionv1.Update, object: web, old: strings.Replace(web, "app: web", "app: db", 1), what: `[input.object.metadata.labels.app, input.oldObject.metadata.labels.app]`, want: `["web", "db"]`},
		{name: "what is deleted", operation: admissionv1.Delete, old: web, what: `[input.object, input.oldObject.metadata.name, input.template.name, input.instancetype.metadata.name]`, want: `[null, "web-1", "box", "huge"]`},
		{name: "an instance type that is gone does not keep a machine", operation: admissionv1.Delete, old: small, what: `input.instancetype`, want: `null`},
		{name: "a request for a template", operation: admissionv1.Create, kind: "VirtualMachineTemplateRequest", object: `{spec: {virtualMachineRef: {namespace: team-b, name: db}}}`, what: `[input.object.spec.virtualMachineRef.namespace, input.template]`, want: `["team-b", null]`},
		{
			name: "an instance is a machine without a template, whatever it says", operation: admissionv1.Create, kind: "VirtualMachineInstance",
			object: strings.Replace(web, "spec:", "spec: {hostname: h}\nunused:", 1), seenAs: "VirtualMachine",
			what: `[input.request.kind, input.request.requestKind, input.object.spec.template.spec.hostname, input.object.spec.runStrategy, input.template]`, want: `["VirtualMachine", "VirtualMachineInstance", "h", "Once", null]`,
		},
		{
			name: "so is a pool, of its machines' size", operation: admissionv1.Update, kind: "VirtualMachinePool", seenAs: "VirtualMachine",
			object: `{metadata: {name: p}, spec: {virtualMachineTemplate: {metadata: {labels: {app: web}}, spec: {instancetype: {name: huge}, template: {spec: {}}}}}}`,
			old:    `{metadata: {name: p}, spec: {virtualMachineTemplate: {spec: {runStrategy: Halted, template: {spec: {}}}}}}`,
			what:   `[input.object.metadata.labels.app, input.instancetype.spec.cpu.guest, input.oldObject.spec.runStrategy]`, want: `["web", 64, "Halted"]`,
		},
		{name: "a template", operation: admissionv1.Delete, kind: "VirtualMachineTemplate", old: `{metadata: {labels: {os: linux}}, spec: {virtualMachine: {}}}`, what: `input.oldObject.metadata.labels.os`, want: `linux`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = "VirtualMachine"
			}
			if tc.seenAs == "" {
				tc.seenAs = tc.kind
			}
			evaluator := evaluatorOf(t, policies(tell(t, tc.what, tc.seenAs)))
			decision, err := evaluator.Evaluate(t.Context(), request(t, tc.operation, tc.kind, tc.object, tc.old), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, messages(decision.Denials)); diff != "" {
				t.Errorf("%s, %v", diff, decision.Evaluations)
			}
		})
	}
}

func TestWhichPoliciesAreAsked(t *testing.T) {
	no := `deny contains "no"`
	for _, tc := range []struct {
		name      string
		match     policyset.Match
		operation admissionv1.Operation
		object    string
		old       string
		want      bool
	}{
		{name: "the labels of the namespace are selected", match: policyset.Match{Namespaces: labels.SelectorFromSet(labels.Set{"env": "prod"})}, want: true},
		{name: "or not", match: policyset.Match{Namespaces: labels.SelectorFromSet(labels.Set{"env": "test"})}},
		{name: "the template is named", match: policyset.Match{Templates: []policyset.TemplateMatch{{Namespace: "golden", Name: "box"}}}, want: true},
		{name: "or another", match: policyset.Match{Templates: []policyset.TemplateMatch{{Namespace: "golden", Name: "other"}}}},
		{name: "by its labels", match: policyset.Match{Templates: []policyset.TemplateMatch{{Selector: labels.SelectorFromSet(labels.Set{"os": "linux"})}}}, want: true},
		{name: "the user is one of them", match: policyset.Match{Include: []v1alpha1.Subject{{Kind: "Group", Name: "team-a"}}}, want: true},
		{name: "or excluded", match: policyset.Match{Exclude: []v1alpha1.Subject{{Kind: "User", Name: "ada"}}}},
		{name: "other operations are not asked about", match: policyset.Match{Operations: []string{"DELETE"}}},
		{
			name: "a label is not taken away to escape", match: policyset.Match{Objects: labels.SelectorFromSet(labels.Set{"app": "web"})},
			operation: admissionv1.Update, object: strings.Replace(web, "{app: web}", "{}", 1), old: web, want: true,
		},
		{
			name: "nothing is asked about a machine on its way out", operation: admissionv1.Update,
			object: strings.Replace(web, "name: web-1", "name: web-1\n  deletionTimestamp: 2026-11-21T00:00:00Z", 1),
			old:    strings.Replace(web, "name: web-1", "name: web-1\n  deletionTimestamp: 2026-11-21T00:00:00Z\n  finalizers: [a]", 1),
		},
		{
			name: "unless its spec changes", operation: admissionv1.Update,
			object: strings.Replace(strings.Replace(web, "name: web-1", "name: web-1\n  deletionTimestamp: 2026-11-21T00:00:00Z", 1), "Halted", "Always", 1),
			old:    strings.Replace(web, "name: web-1", "name: web-1\n  deletionTimestamp: 2026-11-21T00:00:00Z", 1), want: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.object == "" {
				tc.operation, tc.object = admissionv1.Create, web
			}
			evaluator := evaluatorOf(t, policies(policyset.Entry{Policy: compile(t, "no", no), Match: tc.match}))
			decision, err := evaluator.Evaluate(t.Context(), request(t, tc.operation, "VirtualMachine", tc.object, tc.old), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(decision.Denials) == 1; got != tc.want {
				t.Errorf("asked: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhoCannotDecide(t *testing.T) {
	no := policyset.Entry{Policy: compile(t, "no", `deny contains "no"`)}
	unsynced := policies(no)
	unsynced.unsynced = true
	elsewhere := request(t, admissionv1.Create, "VirtualMachine", web, "")
	elsewhere.Namespace = "team-z"
	broken := request(t, admissionv1.Create, "VirtualMachine", web, "")
	broken.Object.Raw = []byte(`{"metadata":`)
	for _, tc := range []struct {
		name    string
		asked   *council
		request admission.Request
		want    string
	}{
		{"policies that are not compiled yet", unsynced, request(t, admissionv1.Create, "VirtualMachine", web, ""), "the policies have not been compiled yet"},
		{"a namespace that nobody knows", policies(no), elsewhere, "namespace team-z is not in the cache yet"},
		{"without a policy about such requests it does not matter", policies(), elsewhere, ""},
		{"an object that is none", policies(no), broken, "decoding the object: unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			metrics, err := policyeval.NewMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			evaluator := evaluatorOf(t, tc.asked, func(o *policyeval.Options) { o.Metrics = metrics })
			_, err = evaluator.Evaluate(t.Context(), tc.request, nil)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
			want := ""
			if tc.want != "" {
				want = "# HELP stencil_policy_decisions_total Admission requests that policies evaluated, by outcome: allowed, warned, denied, or unavailable if no decision was possible.\n# TYPE stencil_policy_decisions_total counter\n" +
					`stencil_policy_decisions_total{kind="VirtualMachine",operation="CREATE",outcome="unavailable"} 1` + "\n"
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnUnknownInstanceTypeIsAFailure(t *testing.T) {
	unknown := strings.Replace(web, "huge", "gone", 1)
	size := compile(t, "size", `deny contains "too large" if input.instancetype.spec.cpu.guest > 8`)
	label := compile(t, "label", `deny contains "no owner" if not input.object.metadata.labels.owner`)
	const failure = `could not be evaluated: Not found: "VirtualMachineClusterInstancetype gone": it does not exist`
	for _, tc := range []struct {
		name    string
		entries []policyset.Entry
		want    []string
	}{
		{"failing closed", []policyset.Entry{{Policy: size}}, []string{failure}},
		{"failing open", []policyset.Entry{{Policy: size, FailureMode: policyset.FailureModeAllow}}, nil},
		{"what else is wrong is said all the same", []policyset.Entry{{Policy: label}}, []string{"no owner", failure}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			decision, err := evaluatorOf(t, policies(tc.entries...)).Evaluate(t.Context(), request(t, admissionv1.Create, "VirtualMachine", unknown, ""), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, messages(decision.Denials)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDecisionLog(t *testing.T) {
	var out bytes.Buffer
	// The logger is configured as in stencil-manager.
	logger := zap.New(zap.WriteTo(&out), zap.JSONEncoder())
	draws := []float64{0.49, 0.5}
	log := policyeval.NewLog(logger, 0.5, func() float64 {
		next := draws[0]
		draws = draws[1:]
		return next
	})
	leak := compile(t, "leak", `deny contains input.object.spec.template.spec.volumes[0].cloudInitNoCloud.userData`)
	evaluator := evaluatorOf(t, policies(policyset.Entry{Policy: leak}, tell(t, `input.parameters.SIZE`)), func(o *policyeval.Options) { o.Log = log })
	for range 2 {
		if _, err := evaluator.Evaluate(t.Context(), request(t, admissionv1.Create, "VirtualMachine", web, ""), nil); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	if strings.Contains(lines[0], "abcdefgh") {
		t.Errorf("the password is in %s", lines[0])
	}
	record, err := policyinput.DecodeRecord([]byte(lines[0]))
	if err != nil {
		t.Fatal(err)
	}
	want := []policyinput.RecordedFinding{
		{Policy: "leak", Action: "deny", Finding: rego.Finding{Message: "***"}},
		{Policy: "tell", Action: "deny", Finding: rego.Finding{Message: "huge"}},
	}
	if diff := cmp.Diff(want, record.Findings); diff != "" {
		t.Error(diff)
	}
	if record.UID != "request-1" || record.Result != "denied" || len(record.Masked) != 1 || record.Policies[0].Digest != leak.Digest() {
		t.Errorf("got %+v", record)
	}
	document, err := record.Document()
	if err != nil {
		t.Fatal(err)
	}
	again, err := rego.NewInput(document)
	if err != nil {
		t.Fatal(err)
	}
	result, err := compile(t, "tell", `deny contains input.parameters.SIZE`).Evaluate(t.Context(), again)
	if err != nil || len(result.Deny) != 1 || result.Deny[0].Message != "huge" {
		t.Errorf("decided again: %+v, %v", result, err)
	}
}

func TestWithoutSamplesThereIsNoDecisionLog(t *testing.T) {
	logger := funcr.New(func(_, line string) { t.Errorf("logged %s", line) }, funcr.Options{})
	evaluator := evaluatorOf(t, policies(tell(t, `1`)), func(o *policyeval.Options) { o.Log = policyeval.NewLog(logger, 0, nil) })
	if _, err := evaluator.Evaluate(t.Context(), request(t, admissionv1.Create, "VirtualMachine", web, ""), nil); err != nil {
		t.Fatal(err)
	}
}

func TestHandler(t *testing.T) {
	entry := tell(t, `"never"`, "VirtualMachineTemplateRequest")
	evaluator := evaluatorOf(t, policies(entry))
	handler := policyeval.NewHandler(evaluator)
	response := handler.Handle(t.Context(), request(t, admissionv1.Create, "VirtualMachineTemplateRequest", `{spec: {}}`, ""))
	raw, _ := json.Marshal(response.Result)
	if response.Allowed || !strings.Contains(string(raw), `virtualmachinetemplaterequests.kubevirt.io \"web-1\" is forbidden: policy tell (medium): never`) {
		t.Errorf("got %s", raw)
	}
	status := request(t, admissionv1.Update, "VirtualMachineTemplateRequest", `{spec: {}}`, `{spec: {}}`)
	status.SubResource = "status"
	for name, allowed := range map[string]admission.Request{
		"a status is nobody's business": status,
		"another kind":                  request(t, admissionv1.Create, "VirtualMachine", web, ""),
	} {
		if response := handler.Handle(t.Context(), allowed); !response.Allowed {
			t.Errorf("%s: %v", name, response.Result)
		}
	}
	elsewhere := request(t, admissionv1.Create, "VirtualMachineTemplateRequest", `{spec: {}}`, "")
	elsewhere.Namespace = "team-z"
	if response := handler.Handle(t.Context(), elsewhere); response.Allowed || response.Result.Code != 503 {
		t.Errorf("got %v", response)
	}
}

func TestAnErrorDoesNotQuoteASensitiveValue(t *testing.T) {
	untemplated := strings.Replace(web, "    template.kubevirt.io/template-ref: golden/box\n", "", 1)
	for _, tc := range []struct {
		name, source, object string
		want                 string
	}{
		{"a function quotes what it cannot read", `deny contains "x" if to_number(input.object.spec.template.spec.volumes[0].cloudInitNoCloud.userData) > 1`, web, "could not be evaluated: 3:22: to_number failed"},
		{"a finding that is none is quoted", `deny contains json.unmarshal(json.marshal(input.object.spec.template.spec.volumes[0].cloudInitNoCloud))`, web, "could not be evaluated: 3:1: an error"},
		{"whoever wrote the value may see it", `deny contains "x" if to_number(input.object.spec.template.spec.volumes[0].cloudInitNoCloud.userData) > 1`, untemplated, `could not be evaluated: 3:22: to_number: strconv.ParseFloat: parsing "password: abcdefgh": invalid syntax`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			log := policyeval.NewLog(zap.New(zap.WriteTo(&out), zap.JSONEncoder()), 1, nil)
			evaluator := evaluatorOf(t, policies(policyset.Entry{Policy: compile(t, "leak", tc.source)}), func(o *policyeval.Options) { o.Log = log })
			decision, err := evaluator.Evaluate(t.Context(), request(t, admissionv1.Create, "VirtualMachine", tc.object, ""), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, messages(decision.Denials)); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(out.String(), "abcdefgh") || !strings.Contains(out.String(), "could not be evaluated: 3:") {
				t.Errorf("logged: %s", out.String())
			}
		})
	}
}
