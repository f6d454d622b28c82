package rego

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func found(messages ...string) []Finding {
	var findings []Finding
	for _, message := range messages {
		findings = append(findings, Finding{Message: message})
	}
	return findings
}

func TestResults(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   Result
	}{
		"nothing against it": {
			`deny contains "x" if input.object.metadata.name == "other"`,
			Result{},
		},
		"texts are sorted": {
			"deny contains \"b\" if true\ndeny contains \"a\" if true\nwarn contains \"c\" if true",
			Result{Deny: found("a", "b"), Warn: found("c")},
		},
		"the same text twice is one finding": {
			"deny contains \"a\" if true\ndeny contains \"a\" if input.object",
			Result{Deny: found("a")},
		},
		"objects have a field and a fix": {
			`deny contains {"msg": "m", "field": "spec.x", "fix": "do y"} if true`,
			Result{Deny: []Finding{{Message: "m", Field: "spec.x", Fix: "do y"}}},
		},
		"objects need a message only": {
			`warn contains {"msg": "m"} if true`,
			Result{Warn: found("m")},
		},
		"texts and objects may be mixed": {
			"deny contains {\"msg\": \"a\", \"field\": \"spec.x\"} if true\ndeny contains \"b\" if true",
			Result{Deny: []Finding{{Message: "a", Field: "spec.x"}, {Message: "b"}}},
		},
		"values are of the machine": {
			"deny contains sprintf(\"%v %v %v\", [o.metadata.name, o.spec.template.spec.domain.cpu.cores, input.parameters.PASSWORD]) if o := input.object",
			Result{Deny: found("web-1 2 ***")},
		},
		"the old object is null on creation": {
			"deny contains \"x\" if is_null(input.oldObject)",
			Result{Deny: found("x")},
		},
		"fields of the old object are undefined on creation": {
			"deny contains \"x\" if not input.oldObject.metadata",
			Result{Deny: found("x")},
		},
		"there is no instance type": {
			"deny contains \"x\" if input.instancetype == null",
			Result{Deny: found("x")},
		},
		"the template and its parameters": {
			"deny contains sprintf(\"%s/%s %s\", [input.template.namespace, input.template.name, p.value]) if {\n\tsome p in input.template.parameters\n\tp.sensitive\n}",
			Result{Deny: found("golden/fedora ***")},
		},
		"who asks for what": {
			"deny contains concat(\" \", [r.operation, r.kind, r.namespace, r.name, r.userInfo.username]) if {\n\tr := input.request\n\t\"team-a\" in r.userInfo.groups\n\tr.dryRun == false\n\tr.time == null\n}",
			Result{Deny: found("CREATE VirtualMachine team-a web-1 jane")},
		},
		"undefined parameters do not exist": {
			"deny contains \"x\" if not data.parameters.missing",
			Result{Deny: found("x")},
		},
		"helpers": {
			"deny contains image.reference if some image in data.lib.images",
			Result{Deny: found("registry.example.com/tools/fedora:42")},
		},
		"a message of exactly the allowed length": {
			"deny contains concat(\"\", [\"a\" | some _ in numbers.range(1, 1024)]) if true",
			Result{Deny: found(strings.Repeat("a", 1024))},
		},
		"a longer message is cut": {
			"deny contains concat(\"\", [\"a\" | some _ in numbers.range(1, 1025)]) if true",
			Result{Deny: found(strings.Repeat("a", 1021) + "…"), Truncated: true},
		},
		"a cut does not halve a character": {
			"deny contains concat(\"\", [\"ä\" | some _ in numbers.range(1, 1025)]) if true",
			Result{Deny: found(strings.Repeat("ä", 510) + "…"), Truncated: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := mustCompile(t, Definition{Source: "package p\n\n" + tc.source + "\n"})
			got, err := policy.Evaluate(context.Background(), mustInput(t, vmDocument(t)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageBombIsCut(t *testing.T) {
	policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains sprintf(\"%04d\", [i]) if some i in numbers.range(1, 5000)\n\nwarn contains \"w\" if true\n"})
	got, err := policy.Evaluate(context.Background(), mustInput(t, vmDocument(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Deny) != MaxMessages || len(got.Warn) != 0 || !got.Truncated {
		t.Fatalf("%d denials, %d warnings, truncated %v", len(got.Deny), len(got.Warn), got.Truncated)
	}
	for i, finding := range got.Deny {
		if want := fmt.Sprintf("%04d", i+1); finding.Message != want {
			t.Fatalf("finding %d is %s, want %s", i, finding.Message, want)
		}
	}
}

// TestFindingsThatAreCutAreSorted has a finding with a field, which the set of the rule puts behind all strings.
func TestFindingsThatAreCutAreSorted(t *testing.T) {
	policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains sprintf(\"%04d\", [i]) if some i in numbers.range(2, " + strconv.Itoa(MaxMessages) + ")\n\n" +
		"deny contains {\"msg\": \"0001\", \"field\": \"spec\"} if true\n\ndeny contains {\"msg\": \"0002\", \"field\": \"spec\"} if true\n"})
	got, err := policy.Evaluate(context.Background(), mustInput(t, vmDocument(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Deny) != MaxMessages || !got.Truncated || got.Deny[0].Message != "0001" {
		t.Errorf("%d denials, truncated %v, the first is %+v", len(got.Deny), got.Truncated, got.Deny[0])
	}
}

// TestErrorsAreErrors checks that a policy which cannot be evaluated returns an error: a rule that fails silently would allow.
func TestErrorsAreErrors(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"a function that fails": {
			"deny contains \"x\" if to_number(input.object.metadata.name) > 1",
			`3:22: to_number: strconv.ParseFloat: parsing "web-1": invalid syntax`,
		},
		"a division by zero": {
			"deny contains \"x\" if 1 / (input.object.metadata.generation - 1) > 1",
			"3:22: div: divide by zero",
		},
		"text that is not base64": {
			"deny contains \"x\" if base64.decode(input.object.metadata.name)",
			"3:22: base64.decode: illegal base64 data at input byte 3",
		},
		"a pattern that is none": {
			"deny contains \"x\" if regex.match(\"(\", input.object.metadata.name)",
			"3:22: regex.match: error parsing regexp: missing closing ): `(`",
		},
		"two values of one rule": {
			"size := 1 if input.object\n\nsize := 2 if input.object.metadata\n\ndeny contains \"x\" if size == 1",
			"5:1: rule size produced conflicting values: 1 at broken:3 2 at broken:5",
		},
		"a message that is a number": {
			"deny contains json.unmarshal(\"2\") if true",
			"3:1: deny holds 2; its elements are texts, or objects with the texts msg, field and fix, of which msg is needed",
		},
		"an object without a message": {
			"deny contains json.unmarshal(`{\"message\": \"x\"}`) if true",
			"3:1: deny holds {\"message\": \"x\"}; its elements are texts, or objects with the texts msg, field and fix, of which msg is needed",
		},
		"an object with a field too many": {
			"warn contains json.unmarshal(`{\"msg\": \"x\", \"severity\": \"low\"}`) if true",
			"3:1: warn holds {\"msg\": \"x\", \"severity\": \"low\"}; its elements are texts, or objects with the texts msg, field and fix, of which msg is needed",
		},
		"an object whose field is no text": {
			"deny contains json.unmarshal(`{\"msg\": \"x\", \"field\": [\"spec\"]}`) if true",
			"3:1: deny holds {\"field\": [\"spec\"], \"msg\": \"x\"}; its elements are texts, or objects with the texts msg, field and fix, of which msg is needed",
		},
		"too many steps": {
			"deny contains \"x\" if {\n\tsome a in numbers.range(1, 10000)\n\tsome b in numbers.range(1, 10000)\n\ta + b < 0\n}",
			"the evaluation takes more than 262144 steps",
		},
		"a time zone that is a path": {
			"deny contains \"x\" if {\n\tzone := concat(\"\", [\"Europe/\", \"./Berlin\"])\n\ttime.clock([1, zone])[0] > 1\n}",
			`5:2: time.clock: there is no time zone "Europe/./Berlin"; time zones have the names of the IANA database, such as UTC and Europe/Zurich`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := mustCompile(t, Definition{Name: "broken", Source: "package p\n\n" + tc.source + "\n"})
			// Without a deadline of its own an evaluation has five seconds, which a busy host may need for so many steps.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			result, err := policy.Evaluate(ctx, mustInput(t, vmDocument(t)))
			var failed *EvaluationError
			if !errors.As(err, &failed) {
				t.Fatalf("got %v, %v", result, err)
			}
			if failed.Policy != "broken" || err.Error() != tc.want {
				t.Errorf("policy %s: got  %s\nwant %s", failed.Policy, err, tc.want)
			}
		})
	}
}

func TestAnEvaluationEndsWithItsContext(t *testing.T) {
	policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains \"x\" if {\n\tsome a in numbers.range(1, 10000)\n\tsome b in numbers.range(1, 10000)\n\ta + b < 0\n}\n"})
	in := mustInput(t, vmDocument(t))
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := policy.Evaluate(deadline, in); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "evaluating policy test") {
		t.Errorf("with a deadline: %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := policy.Evaluate(cancelled, in); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	later, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := policy.Evaluate(later, in); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled later: %v", err)
	}
}

func TestPoliciesOfOnePackageDoNotMeet(t *testing.T) {
	in := mustInput(t, vmDocument(t))
	first := mustCompile(t, Definition{Source: "package same\n\nallowed := \"first\"\n\ndeny contains data.same.allowed if true\n"})
	second := mustCompile(t, Definition{Source: "package same\n\nallowed := \"second\"\n\ndeny contains allowed if true\n"})
	for policy, want := range map[*Policy]string{first: "first", second: "second"} {
		got, err := policy.Evaluate(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Result{Deny: found(want)}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestPoliciesAreEvaluatedConcurrently is for the race detector: a policy, its input
// and the helpers' results are shared.
func TestPoliciesAreEvaluatedConcurrently(t *testing.T) {
	var policies []*Policy
	for i := range 4 {
		policies = append(policies, mustCompile(t, Definition{Source: fmt.Sprintf(
			"package p\n\nimport data.lib\n\ndeny contains image.reference if some image in lib.images\n\nwarn contains sprintf(\"%%v %%v %d\", [memory.bytes, data.parameters.x]) if some memory in lib.memory\n", i),
			Parameters: map[string]any{"x": i}}))
	}
	in := mustInput(t, vmDocument(t))
	var group sync.WaitGroup
	for range 4 {
		for i, policy := range policies {
			group.Go(func() {
				for range 20 {
					got, err := policy.Evaluate(context.Background(), in)
					want := Result{Deny: found("registry.example.com/tools/fedora:42"), Warn: found(fmt.Sprintf("4294967296 %d %d", i, i))}
					if diff := cmp.Diff(want, got); err != nil || diff != "" {
						t.Errorf("%v %s", err, diff)
						return
					}
				}
			})
		}
	}
	group.Go(func() {
		if in.Digest() == "" {
			t.Error("no digest")
		}
	})
	group.Wait()
}
