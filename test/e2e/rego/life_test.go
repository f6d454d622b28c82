package rego_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// fixture returns a test of a VirtualMachine with a label.
func fixture(name, label, expectation string) string {
	return fmt.Sprintf("- name: %s\n  input: {object: {kind: VirtualMachine, metadata: {name: a, namespace: b, labels: {test: %s}}}}\n  %s", name, label, expectation)
}

// TestARuleThatNoRequestReachesIsReported stores a policy about deletions that does not select them.
func TestARuleThatNoRequestReachesIsReported(t *testing.T) {
	const spec = "tests:\n- name: deleted\n  input: {oldObject: {kind: VirtualMachine, metadata: {name: a, labels: {test: unreached}}}}\n  deny: [kept]"
	const module = "package unreached\n\ndeny contains \"kept\" if {\n\tinput.request.operation == \"DELETE\"\n\tinput.oldObject.metadata.labels.test == \"unreached\"\n}\n"
	const lacks = "spec.match.operations is CREATE and UPDATE, without DELETE"
	told := applied(t, "unreached", spec, module)
	for _, want := range []string{
		`Warning: spec.tests[0].input: test "deleted" decides a request that the policy does not evaluate: ` + lacks,
		"Warning: spec.rego: 4:2: this is never true: " + lacks,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("told %q, want %s", told, want)
		}
	}
	if told := applied(t, "unreached", spec+"\nmatch: {operations: [DELETE]}", module); strings.Contains(told, "Warning") {
		t.Errorf("told: %s", told)
	}
}

func TestAGoodPolicyComesIntoForce(t *testing.T) {
	spec := "tests:\n" + fixture("refused", "good", `deny: ["no good here"]`) + "\n" + fixture("allowed", "other", "warn: []")
	if told := applied(t, "good", spec, denies("good")); strings.Contains(told, "Warning") {
		t.Errorf("told: %s", told)
	}
	object := becomes(t, "good", map[string]string{"Compiled": "True Compiled", "Tested": "True TestsPassed", "Active": "True Active"})
	status := object.Status
	if status.ActiveGeneration != 1 || !strings.HasPrefix(status.ActiveDigest, "sha256:") || status.Title != "No good" || status.Severity != "high" || status.ObservedGeneration != 1 {
		t.Errorf("status: %+v", status)
	}
	awaitDenial(t, "good", "no good here")
	passes(t, "other", "")
	columns := strings.Fields(strings.Split(must(t, "", "get", "vmpol", "good"), "\n")[1])
	if got := strings.Join(columns[:5], " "); got != "good Deny True True True" {
		t.Errorf("columns: %s", columns)
	}
	harness.Eventually(t, "the status counts evaluations", func() error {
		if status := get(t, "good").Status; status.Evaluations == nil || status.Evaluations.Count == 0 || status.Evaluations.P99Microseconds == 0 ||
			len(status.Replicas) != 1 || status.Replicas[0].Name != "one" {
			return fmt.Errorf("evaluations %+v, replicas %+v", status.Evaluations, status.Replicas)
		}
		return nil
	})
	harness.Eventually(t, "an event tells that the policy is in force", func() error {
		events := must(t, "", "get", "events", "--field-selector=involvedObject.name=good,involvedObject.kind=VirtualMachinePolicy",
			"-o", `jsonpath={range .items[*]}{.type} {.reason}: {.message}{"\n"}{end}`)
		if !strings.Contains(events, "Normal Active: it is active") {
			return fmt.Errorf("events: %q", events)
		}
		return nil
	})
	metrics, err := stencil.first.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`stencil_policies{state="active"} 1`, "stencil_policy_cache_synced 1", `stencil_policy_compile_seconds_count{result="good"}`,
		`stencil_policy_evaluations_total{outcome="deny",policy="good"}`, `stencil_policy_evaluation_seconds_count{policy="good"}`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	must(t, "", "delete", "vmpol", "good")
	passes(t, "good", "")
}

func TestWhatDoesNotCompileIsNotStored(t *testing.T) {
	cases := map[string]struct {
		spec, module string
		want         []string
	}{
		"a mistake in the syntax": {
			module: "package x\ndeny contains \"a\" if {\n  input.object.spec.running ==\n}",
			want:   []string{"spec.rego: 4:"},
		},
		"Rego of version 0": {
			module: "package x\ndeny[msg] {\n  msg := \"no\"\n}", want: []string{"spec.rego: 2:1", "in: deny[msg] {"},
		},
		"no rule that is asked": {
			module: "package x\nallow if input.object.spec.running", want: []string{"spec.rego: "},
		},
		"a field that does not exist": {
			module: "package x\n\ndeny contains \"many\" if input.object.spec.template.spec.domain.cpu.coress > 3",
			want:   []string{"spec.rego: 3:", "coress", "in: deny contains"},
		},
		"a function that is not available": {
			module: "package x\n\ndeny contains \"no\" if {\n  http.send({\"url\": \"https://example.com\"}).status == 200\n}",
			want:   []string{"spec.rego: 4:3", "http.send", "in: http.send("},
		},
		"parameters that violate their schema": {
			spec:   "parameters: {maximum: many}\nparametersSchema: {type: object, properties: {maximum: {type: integer}}}",
			module: "package x\ndeny contains \"no\" if input.object.spec.running",
			want:   []string{"spec.parameters.maximum: "},
		},
		"several mistakes at once": {
			module: "package x\n\ndeny contains \"a\" if input.objekt\n\ndeny contains \"b\" if data.other.thing",
			want:   []string{"spec.rego: 3:", "spec.rego: 5:"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := kubectl(t, policy("refused", tc.spec, tc.module), "apply", "-f", "-")
			for _, want := range append(tc.want, "VirtualMachinePolicy", "invalid") {
				if got.Code == 0 || !strings.Contains(got.Stderr, want) {
					t.Errorf("exit code %d, want a refusal with %q:\n%s", got.Code, want, got.Stderr)
				}
			}
			if left := kubectl(t, "", "get", "vmpol", "refused"); left.Code == 0 {
				t.Error("it is stored")
			}
		})
	}
}

func TestAFirstVersionWhoseTestsFailIsRejected(t *testing.T) {
	spec := "tests:\n" + fixture("the machine is refused", "other", `deny: ["no failing here"]`)
	got := kubectl(t, policy("failing", spec, denies("failing")), "apply", "-f", "-")
	for _, want := range []string{"1 of 1 tests fail, and no earlier version is active", `test "the machine is refused"`, v1alpha1.AnnotationStoreFailing} {
		if got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("exit code %d, want a denial with %q, got %q", got.Code, want, got.Stderr)
		}
	}
	if left := kubectl(t, "", "get", "vmpol", "failing"); left.Code == 0 {
		t.Error("it is stored")
	}
}

func TestAPolicyWhoseTestsFailIsStoredWithAnAnnotationAndNotActive(t *testing.T) {
	spec := "tests:\n" + fixture("the machine is refused", "other", `deny: ["no failing here"]`)
	t.Cleanup(func() { must(t, "", "delete", "vmpol", "failing", "--ignore-not-found") })
	manifest := gen.Manifest(gen.Policy("failing", denies("failing")+"\n", gen.Spec(spec), gen.Annotation(v1alpha1.AnnotationStoreFailing, "true")))
	told := harness.Must(t, stencil.Plane, nil, manifest, "apply", "-f", "-").Stderr
	for _, want := range []string{"1 of 1 tests fail", `test "the machine is refused"`} {
		if !strings.Contains(told, want) {
			t.Errorf("want a warning with %q, got %q", want, told)
		}
	}
	object := becomes(t, "failing", map[string]string{"Compiled": "True Compiled", "Tested": "False TestsFailed", "Active": "False NeverActive"})
	if tests := object.Status.FailedTests; len(tests) != 1 || tests[0].Name != "the machine is refused" || object.Status.ActiveGeneration != 0 {
		t.Errorf("status: %+v", object.Status)
	}
	passes(t, "failing", "")
}

// TestAPolicyIsTriedOnStoredVMs applies versions of a policy beside stored VMs, as the admin, and as a user who may write policies only.
func TestAPolicyIsTriedOnStoredVMs(t *testing.T) {
	namespace := harness.Namespace(t, stencil.Plane, "tried")
	must(t, gen.Manifest(
		gen.VM("small", gen.InNamespace(namespace), gen.Label("size", "1"), gen.RunStrategy("Halted"), gen.Spec("template: {spec: {domain: {devices: {}}}}")),
		gen.VM("large", gen.InNamespace(namespace), gen.Label("size", "9"), gen.RunStrategy("Halted"), gen.Spec("template: {spec: {domain: {devices: {}}}}")),
	), "apply", "-f", "-")
	spec := "match: {operations: [CREATE], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + namespace + "}}}"
	larger := func(than int) string {
		return fmt.Sprintf("package tried\n\ndeny contains \"too large\" if to_number(input.object.metadata.labels.size) > %d\n", than)
	}
	if told := applied(t, "tried", spec, larger(10)); told != "" {
		t.Errorf("a policy that allows all: %s", told)
	}
	active(t, "tried")
	want := "Warning: this version newly denies 1 of all 2 stored VirtualMachines that the policy selects, if they were created now: " + namespace + "/large\n"
	if told := applied(t, "tried", spec, larger(5)); told != want {
		t.Errorf("got  %swant %s", told, want)
	}
	harness.Eventually(t, "the second version is active", func() error {
		if status := get(t, "tried").Status; status.ActiveGeneration != 2 {
			return fmt.Errorf("active is generation %d", status.ActiveGeneration)
		}
		return nil
	})
	want = "Warning: this version newly denies 1 of all 2 stored VirtualMachines that the policy selects, if they were created now: " + namespace + "/small\n"
	if told := applied(t, "tried", spec, larger(0)); told != want {
		t.Errorf("got  %swant %s", told, want)
	}
	author := harness.User(t, stencil.Plane, "author")
	harness.Grant(t, stencil.Plane, author, "", rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"virtualmachinepolicies"}, Verbs: []string{"*"},
	})
	want = "Warning: this version newly denies 2 of all 2 stored VirtualMachines that the policy selects, if they were created now\n"
	if got := harness.Kubectl(t, stencil.Plane, author, policy("other", spec, larger(0)), "create", "--dry-run=server", "-f", "-"); got.Code != 0 || got.Stderr != want {
		t.Errorf("for a user who may not list VirtualMachines: %d %s", got.Code, got.Stderr)
	}
	for enforcement, verb := range map[string]string{"Warn": "warns about", "Audit": "records violations of"} {
		want := "Warning: this version newly " + verb + " 2 of all 2 stored VirtualMachines that the policy selects, if they were created now: " + namespace + "/large, " + namespace + "/small\n"
		got := harness.Must(t, stencil.Plane, nil, policy("other", spec+"\nenforcement: "+enforcement, larger(0)), "create", "--dry-run=server", "-f", "-")
		if got.Stderr != want {
			t.Errorf("under %s: got  %swant %s", enforcement, got.Stderr, want)
		}
	}

	must(t, "", "label", "-n", namespace, "vm", "small", "--overwrite", "size=one")
	got := kubectl(t, policy("other", spec, larger(3)), "create", "-f", "-")
	if want := "it cannot be evaluated for the stored VirtualMachine " + namespace + "/small (CREATE): 3:30: to_number failed"; got.Code == 0 || !strings.Contains(got.Stderr, want) {
		t.Errorf("exit code %d, want a denial with %q:\n%s", got.Code, want, got.Stderr)
	}
}

func TestTheLastGoodVersionStaysInForce(t *testing.T) {
	applied(t, "kept", "", denies("first"))
	active(t, "kept")
	awaitDenial(t, "first", "no first here")

	broken := "tests:\n" + fixture("wrong", "other", `deny: ["something"]`)
	applied(t, "kept", broken, denies("second"))
	object := becomes(t, "kept", map[string]string{"Tested": "False TestsFailed", "Active": "False LastGoodVersion"})
	if status := object.Status; status.ActiveGeneration != 1 || status.LastGood == nil || status.LastGood.Generation != 1 || status.Title != "No first" {
		t.Errorf("status: %+v", status)
	}
	awaitDenial(t, "first", "no first here")
	passes(t, "second", "")

	// A manager that has never read the first version finds it in the status.
	restart(t, nil)
	becomes(t, "kept", map[string]string{"Active": "False LastGoodVersion"})
	awaitDenial(t, "first", "no first here")
	passes(t, "second", "")

	applied(t, "kept", "", denies("third"))
	if status := active(t, "kept").Status; status.LastGood != nil || status.ActiveGeneration != 3 {
		t.Errorf("status: %+v", status)
	}
	awaitDenial(t, "third", "no third here")
	passes(t, "first", "")
}

func TestTwoPoliciesOfOnePackageAreTwoPolicies(t *testing.T) {
	applied(t, "a", "", denies("twin"))
	applied(t, "b", "", strings.ReplaceAll(denies("twin"), "no twin here", "not a twin again"))
	active(t, "a")
	active(t, "b")
	awaitDenial(t, "twin", "no twin here")
	awaitDenial(t, "twin", "not a twin again")
}
