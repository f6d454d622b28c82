package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// sizes has the instance types u1.small to u1.large, with 1, 2 and 4 CPUs.
type sizes struct{}

func (sizes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	i := slices.Index([]string{"u1.small", "u1.medium", "u1.large"}, r.Name)
	if i < 0 {
		return nil, errors.New("there is none")
	}
	return map[string]any{"kind": r.Kind, "metadata": map[string]any{"name": r.Name}, "spec": map[string]any{"cpu": map[string]any{"guest": json.Number(fmt.Sprint(1 << i))}}}, nil
}

// box is a template with parameters of every sort.
const box = `
spec:
  parameters:
  - {name: NAME, required: true}
  - {name: SIZE, value: u1.medium, enum: [u1.small, u1.medium, u1.large]}
  - {name: CORES, type: int, value: "1", minimum: 1, maximum: 8}
  - {name: SPARE, type: bool, value: "false"}
  - {name: IMAGE, value: fedora, pattern: "[a-z]+"}
  - {name: PIN, sensitive: true, value: "1", enum: ["1", "2"]}
  virtualMachine:
    metadata: {name: "${NAME}", annotations: {spare: "${SPARE}", pin: "${PIN}"}}
    spec:
      runStrategy: Halted
      instancetype: {name: "${SIZE}"}
      template:
        metadata: {labels: {image: "${IMAGE}"}}
        spec: {domain: {cpu: {cores: "${{CORES}}"}, devices: {}}}
`

const cores = "input.object.spec.template.spec.domain.cpu.cores"

// rule is a policy with one rule.
func rule(body, message string) string {
	return "package p\n\ndeny contains " + message + " if {\n\t" + body + "\n}\n"
}

func question(t testing.TB, text string, a *approval.Approval, entries ...policyset.Entry) Question {
	return Question{
		Template: templatecache.Compile(fixture.Template(t, "box", text)), Approval: a, Policies: policyset.NewSet(entries),
		Namespace: rego.Namespace{Name: "team-a"}, Sizes: sizes{},
	}
}

func evaluator() *policyset.Evaluator {
	return policyset.NewEvaluator(policyset.Options{Deadline: time.Hour, Quarantine: policyset.QuarantineOptions{Strikes: 1 << 30}})
}

func prove(t testing.TB, q Question) *Proof {
	t.Helper()
	found, err := Prove(t.Context(), q, evaluator())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// text returns a result in one line.
func text(r Result) string {
	s := fmt.Sprintf("%s: %d of %d, %d distinct", r.Status, r.Approved, r.Combinations, r.Distinct)
	if r.Example != nil {
		s += fmt.Sprintf("; %d denied: %v %q", r.Denied, r.Example.Values, r.Example.Messages)
	}
	for _, part := range []struct {
		name string
		of   any
		some bool
	}{{"failures", r.Failures, r.Failures > 0 && r.Denied > 0}, {"unread", r.Unread, r.Unread != nil}, {"held", r.Held, r.Held != nil}, {"reads", r.Reads, r.Reads != nil}, {"because", r.Reason, r.Reason != ""}} {
		if part.some {
			s += fmt.Sprintf("; %s %v", part.name, part.of)
		}
	}
	return s
}

func TestProve(t *testing.T) {
	const teamA = "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [%s]}"
	for name, tc := range map[string]struct {
		template, approval string
		policy             string
		enforcement        policyset.Enforcement
		match              policyset.Match
		limit              int
		user               string
		at                 time.Time
		want               string
		never              []Value
	}{
		"a policy that holds": {
			policy: rule(cores+" > 8", `"x"`), want: "holds: 96 of 96, 8 distinct",
		},
		"the smallest change from the defaults": {
			policy: rule(cores+" > 6\n\tinput.instancetype.spec.cpu.guest > 2", `sprintf("%d cores", [`+cores+`])`),
			want:   `counterexample: 96 of 96, 24 distinct; 8 denied: [{SIZE u1.large} {CORES 7}] ["7 cores"]`,
		},
		"the defaults": {
			policy: rule(cores+" > 0", `"x"`), want: `counterexample: 96 of 96, 8 distinct; 96 denied: [] ["x"]`,
		},
		"what an approval allows": {
			approval: "{name: CORES, maximum: 4}, {name: SIZE, allowed: [u1.large, u1.small]}", policy: rule(cores+" > 4", `"x"`),
			want: "holds: 8 of 8, 4 distinct",
		},
		"a default that the approval does not allow": {
			approval: "{name: CORES, minimum: 3, maximum: 4}", policy: rule(cores+" > 3", `"x"`),
			want: `counterexample: 2 of 2, 2 distinct; 1 denied: [{CORES 4}] ["x"]`, never: []Value{{"CORES", "4"}},
		},
		"a value that is never admitted": {
			approval: "{name: SIZE, allowed: [u1.medium, u1.large]}, {name: SPARE, anyValue: true}", policy: rule("input.instancetype.spec.cpu.guest > 2", `"x"`),
			want: `counterexample: 4 of 4, 2 distinct; 2 denied: [{SIZE u1.large}] ["x"]`, never: []Value{{"SIZE", "u1.large"}},
		},
		"a warning is no counterexample": {
			policy: strings.Replace(rule(cores+" > 0", `"x"`), "deny", "warn", 1), want: "holds: 96 of 96, 8 distinct",
		},
		"a policy that only audits": {
			policy: rule(cores+" > 7", `"x"`), enforcement: policyset.EnforcementAudit, want: `counterexample: 96 of 96, 8 distinct; 12 denied: [{CORES 8}] ["x"]`,
		},
		"values that the approval relates": {
			approval: "{name: CORES, maximum: 8}, {name: SIZE, expression: \"value != 'u1.large' || int(params.CORES) < 3\"}",
			policy:   rule(cores+" > 2\n\tinput.instancetype.spec.cpu.guest > 2", `"x"`), want: "holds: 18 of 24, 18 distinct; held [{{NAME policy-check} its values are not listed false}]",
		},
		"an approval that allows nothing": {
			approval: "{name: CORES, minimum: 9, maximum: 10}", policy: rule(cores+" > 0", `"x"`),
			want: `holds: 0 of 1, 0 distinct; because no VirtualMachine is approved: parameters[CORES]: Invalid value: "1": must be at least 9 (approval "box")`,
		},
		"an approval of another default": {
			approval: "{name: IMAGE, pattern: d.*}", policy: rule(cores+" > 0", `"x"`),
			want: `not decided: 0 of 1, 0 distinct; because no VirtualMachine is approved with the values at which parameters are held: parameters[IMAGE]: Invalid value: "fedora": must match d.* as a whole (approval "box")`,
		},
		"parameters with other values": {
			policy: rule(`input.object.spec.template.metadata.labels.image == "x"`, `"x"`), want: "holds: 96 of 96, 1 distinct; held [{{IMAGE fedora} a pattern does not list its values false}]",
		},
		"a policy that reads all": {
			policy: rule("count(input) == 0", `"x"`),
			want: "holds: 96 of 96, 96 distinct; held [{{NAME policy-check} its values are not listed false} {{IMAGE fedora} a pattern does not list its values false}]; " +
				"reads [time user labels of the namespace annotations of the namespace]",
		},
		"a sensitive value": {
			policy: rule(`input.object.metadata.annotations.pin == "2"`, `"x"`), want: `counterexample: 96 of 96, 2 distinct; 48 denied: [{PIN ***}] ["x"]`, never: []Value{{"PIN", "***"}},
		},
		"a message with a sensitive value": {
			policy: rule(`input.object.metadata.annotations.pin == "2"`, `sprintf("PIN %s", [input.object.metadata.annotations.pin])`),
			want:   `counterexample: 96 of 96, 2 distinct; 48 denied: [{PIN ***}] ["***"]`, never: []Value{{"PIN", "***"}},
		},
		"a message of a policy that reads no sensitive value": {
			policy: rule(cores+" > 7", `"more than 1"`), want: `counterexample: 96 of 96, 8 distinct; 12 denied: [{CORES 8}] ["more than 1"]`, never: []Value{{"CORES", "8"}},
		},
		"a policy that fails": {
			policy: rule(`to_number(sprintf("%s", [input.parameters.SPARE])) > 0`, `"x"`),
			want:   `error: 96 of 96, 2 distinct; 0 denied: [] ["4:2: to_number: strconv.ParseFloat: parsing \"false\": invalid syntax"]`,
		},
		"a policy that fails for one value": {
			policy: rule("1 / (8 - "+cores+") > 0.5", `"x"`),
			want:   `counterexample: 96 of 96, 8 distinct; 12 denied: [{CORES 7}] ["x"]; failures 12`, never: []Value{{"CORES", "7"}},
		},
		"an instance type that does not exist": {
			template: strings.Replace(box, "enum: [u1.small,", "enum: [u2.small,", 1), policy: rule("input.instancetype.spec.cpu.guest > 9", `"x"`),
			want: `not decided: 96 of 96, 3 distinct; because spec.instancetype: Not found: "VirtualMachineClusterInstancetype u2.small": there is none`,
		},
		"a policy without instance types": {
			template: strings.Replace(box, "enum: [u1.small,", "enum: [u2.small,", 1), policy: rule(cores+" > 8", `"x"`), want: "holds: 96 of 96, 8 distinct",
		},
		"too many combinations, of which the policy reads few": {
			policy: rule(cores+" > 7", `"x"`), limit: 8, want: `counterexample: 8 of 8, 8 distinct; 1 denied: [{CORES 8}] ["x"]; unread [SIZE SPARE PIN]`, never: []Value{{"CORES", "8"}},
		},
		"too many combinations": {
			policy: rule(cores+" > 8", `"x"`), limit: 7, want: "not decided: 0 of 8, 0 distinct; because 8 combinations of values, the limit is 7",
		},
		"parameters in one text": {
			template: strings.Replace(box, `pin: "${PIN}"`, `pin: "${PIN}${SPARE}"`, 1), policy: rule(`input.parameters.SPARE == "x"`, `"x"`), limit: 8,
			want: "holds: 4 of 4, 2 distinct; unread [SIZE CORES]",
		},
		"a bound beyond all limits": {
			template: strings.Replace(box, "maximum: 8", "maximum: 9223372036854775807", 1), policy: rule(cores+" > 8", `"x"`),
			want: "not decided: 0 of 9223372036854775807, 0 distinct; because 9223372036854775807 combinations of values, the limit is 100000",
		},
		"a bound beyond all limits, of which the policy reads nothing": {
			template: strings.Replace(box, "minimum: 1, maximum: 8", "minimum: -9223372036854775808, maximum: 9223372036854775807", 1), policy: rule(`input.instancetype.spec.cpu.guest > 4`, `"x"`),
			want: "holds: 3 of 3, 3 distinct; unread [CORES SPARE PIN]",
		},
		"as many values as the limit": {
			template: strings.Replace(strings.Replace(box, "maximum: 8", "maximum: 100000", 1), `"${{CORES}}"`, "1", 1), policy: rule("input.parameters.SPARE == \"x\"", `"x"`),
			want: "holds: 2 of 2, 2 distinct; unread [SIZE CORES PIN]",
		},
		"an integer without a maximum": {
			template: strings.Replace(box, ", maximum: 8", "", 1), policy: rule(cores+" > 8", `"x"`), want: "holds: 12 of 12, 1 distinct; held [{{CORES 1} it has no minimum or no maximum false}]",
		},
		"a required parameter without values": {
			template: strings.Replace(box, "{name: IMAGE, value: fedora,", "{name: IMAGE, required: true,", 1), policy: rule(cores+" > 8", `"x"`),
			want: "not decided: 0 of 0, 0 distinct; because no VirtualMachine can be rendered from its defaults: required parameters have neither a default nor a list of values: IMAGE",
		},
		"a template that does not compile": {
			template: strings.Replace(box, "enum: [u1.small,", "enum: [u1.small, u1.small,", 1), policy: rule(cores+" > 8", `"x"`),
			want: `not decided: 0 of 0, 0 distinct; because the template does not compile: spec.parameters[1].enum[1]: Duplicate value: "u1.small"`,
		},
		"two spellings of zero": {
			template: strings.Replace(box, `type: bool, value: "false"`, `type: int, value: "0", minimum: 0, maximum: 1`, 1), policy: rule(`input.parameters.SPARE == "-0"`, `"x"`),
			want: `counterexample: 144 of 144, 3 distinct; 48 denied: [{SPARE -0}] ["x"]`, never: []Value{{"SPARE", "-0"}},
		},
		"values that the template cannot render": {
			template: strings.Replace(box, "minimum: 1, maximum: 8", "minimum: -1, maximum: 1", 1), policy: rule(cores+" > 1", `"x"`), want: "holds: 24 of 48, 2 distinct",
		},
		"an empty value": {
			template: strings.Replace(box, `{name: SPARE, type: bool, value: "false"}`, `{name: SPARE, enum: [a, b]}`, 1), policy: rule(`input.parameters.SPARE in {"a", "b"}`, `"x"`),
			want: `counterexample: 144 of 144, 3 distinct; 96 denied: [{SPARE a}] ["x"]`, never: []Value{{"SPARE", "a"}, {"SPARE", "b"}},
		},
		"a user whom the approval does not serve": {
			approval: "], subjects: [{kind: User, name: ada}], overrides: [", policy: rule(cores+" > 0", `"x"`), user: "bob",
			want: `holds: 0 of 1, 0 distinct; because no VirtualMachine is approved: metadata.annotations[template.kubevirt.io/template-ref]: it does not serve user "bob" (approval "box")`,
		},
		"the user and the time": {
			policy: rule(`input.request.userInfo.username == "ada"`+"\n\t"+`input.request.time == "2026-11-27T08:00:00Z"`, `"x"`), user: "ada", at: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC),
			want: `counterexample: 96 of 96, 1 distinct; 96 denied: [] ["x"]; reads [time user]`,
		},
		"labels that the policy matches": {
			policy: rule("input.object.kind", `"x"`), match: policyset.Match{Objects: labels.SelectorFromSet(labels.Set{"spare": "true"})},
			template: strings.Replace(box, "annotations: {spare", "labels: {spare: \"${SPARE}\"}, annotations: {other", 1),
			want:     `counterexample: 96 of 96, 2 distinct; 48 denied: [{SPARE true}] ["x"]`, never: []Value{{"SPARE", "true"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.template == "" {
				tc.template = box
			}
			var approved *approval.Approval
			if tc.approval != "" {
				approved = fixture.Approval(t, "box", fmt.Sprintf(teamA, tc.approval))
			}
			q := question(t, tc.template, approved, policyset.Entry{Policy: fixture.Policy(t, "p", tc.policy), Enforcement: tc.enforcement, Match: tc.match, Timeout: time.Minute})
			q.Limit, q.User.Username, q.Time = tc.limit, tc.user, tc.at
			found := prove(t, q)
			if len(found.Policies) != 1 {
				t.Fatalf("got %d results", len(found.Policies))
			}
			if got := text(found.Policies[0]); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.never, found.Never); diff != "" {
				t.Errorf("never (-want +got):\n%s", diff)
			}
		})
	}
}

// canceling cancels a context while it evaluates the third VirtualMachine.
type canceling struct {
	Evaluator
	cancel    func()
	evaluated int
}

func (c *canceling) Evaluate(ctx context.Context, entries []policyset.Entry, in *rego.Input) policyset.Decision {
	if c.evaluated++; c.evaluated == 3 {
		c.cancel()
	}
	return c.Evaluator.Evaluate(ctx, entries, in)
}

func TestProveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &canceling{Evaluator: evaluator(), cancel: cancel}
	q := question(t, box, nil, policyset.Entry{Policy: fixture.Policy(t, "p", rule(cores+" > 8", `"x"`)), Timeout: time.Minute})
	if found, err := Prove(ctx, q, c); !errors.Is(err, context.Canceled) || c.evaluated != 3 {
		t.Errorf("got %v and %v after %d evaluations", found, err, c.evaluated)
	}
}

func TestVaries(t *testing.T) {
	const teamA = "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: IMAGE, allowed: [%s]}]}"
	fixed := strings.NewReplacer(", enum: [u1.small, u1.medium, u1.large]", "", ", minimum: 1, maximum: 8", "", "type: bool, ", "", `, enum: ["1", "2"]`, "").Replace(box)
	for name, tc := range map[string]struct {
		template, approval string
		want               bool
	}{
		"a template with listed values":       {template: box, want: true},
		"a template without":                  {template: fixed},
		"values that an approval lists":       {template: fixed, approval: "fedora, debian", want: true},
		"one that an approval lists":          {template: fixed, approval: "fedora"},
		"an approval that closes all but one": {template: box, approval: "fedora"},
		"a template that does not compile":    {template: strings.Replace(box, "enum: [u1.small,", "enum: [u1.small, u1.small,", 1)},
		"more values than the limit":          {template: strings.Replace(fixed, "{name: CORES, type: int,", "{name: CORES, type: int, minimum: 1, maximum: 9223372036854775807,", 1), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var approved *approval.Approval
			if tc.approval != "" {
				approved = fixture.Approval(t, "box", fmt.Sprintf(teamA, tc.approval))
			}
			if got := question(t, tc.template, approved).Varies(); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// source has a value that no proof may read.
type source struct{ t *testing.T }

func (s source) Value(rego.ObjectKey) (*rego.Value, error) {
	s.t.Error("a proof reads the objects of the namespace")
	return nil, errors.New("no")
}

func TestWhatDependsOnOtherObjectsIsNotDecided(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	reading := func(name string, reference rego.Reference, body string) *rego.Policy {
		reference.Name = "x"
		policy, err := compiler.Compile(t.Context(), rego.Definition{Name: name, Source: rule(body, `"no"`), Data: []rego.Reference{reference}})
		if err != nil {
			t.Fatal(err)
		}
		return policy
	}
	counts := reading("counts", rego.Reference{VirtualMachines: &rego.VirtualMachines{}}, "data.cluster.x.count > 1")
	quota := reading("quota", rego.Reference{ResourceQuota: "team"}, "data.cluster.x.used.pods")
	number, err := rego.NewValue(map[string]any{"count": 2})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := compiler.Compile(t.Context(), rego.Definition{Name: "plain", Source: rule(cores+" > 4", `"no"`)})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		policies []*rego.Policy
		want     string
	}{
		"numbers of VirtualMachines": {
			policies: []*rego.Policy{counts.WithData([]rego.Binding{{Name: "x", Source: source{t}}})},
			want:     "counts: not decided: data.cluster.x depends on the other VirtualMachines of the namespace",
		},
		"numbers that have not been read": {
			policies: []*rego.Policy{counts.WithData([]rego.Binding{{Name: "x", Missing: "not read"}})},
			want:     "counts: not decided: data.cluster.x depends on the other VirtualMachines of the namespace",
		},
		"a quota, beside a policy that is decided": {
			policies: []*rego.Policy{quota.WithData([]rego.Binding{{Name: "x", Source: source{t}}}), plain},
			want:     "plain: counterexample: \nquota: not decided: data.cluster.x depends on ResourceQuota team of the namespace",
		},
		"a number that is given": {policies: []*rego.Policy{counts.WithData([]rego.Binding{{Name: "x", Value: number}})}, want: "counts: counterexample: "},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []policyset.Entry
			for _, policy := range tc.policies {
				entries = append(entries, policyset.Entry{Policy: policy})
			}
			q := question(t, box, nil, entries...)
			q.Values = map[string]string{"NAME": "web"}
			var got []string
			for _, r := range prove(t, q).Policies {
				got = append(got, fmt.Sprintf("%s: %s: %s", r.Policy, r.Status, r.Reason))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
