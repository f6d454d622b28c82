package definitions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

func TestAnExceptionIsStoredAsItIsWritten(t *testing.T) {
	const full = `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: PolicyException
metadata: {name: full}
spec:
  policies: [sizes, owners.v2]
  namespaces: [team-a, team-b]
  names: [db, web-1.example, "legacy-*", "*"]
  subjects: [{kind: User, name: ada}, {kind: ServiceAccount, namespace: ci, name: bot}]
  reason: change 4711
  expiresAt: "2026-11-29T03:58:15Z"
`
	must(t, full, "apply", "--server-side", "-f", "-")
	got := kubectl(t, "", "get", "polex", "full", "-o", "json")
	var stored, written v1alpha1.PolicyException
	if err := yaml.UnmarshalStrict([]byte(got.Stdout), &stored); err != nil {
		t.Fatal(err, got.Stderr)
	}
	if err := yaml.UnmarshalStrict([]byte(full), &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.Spec, stored.Spec); diff != "" {
		t.Errorf("spec (-written +stored):\n%s", diff)
	}
}

func TestWhatTheAPIServerRefusesOfAnException(t *testing.T) {
	list := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	valid := map[string]string{"policies": "[sizes]", "namespaces": "[team-a]", "names": "[db]", "reason": "why", "expiresAt": `"2026-11-29T03:58:15Z"`}
	for name, tc := range map[string]struct {
		field, value string
		want         string // in the rejection; none is expected when empty
	}{
		"all that is required":         {},
		"the most policies":            {"policies", list(16, "p#"), ""},
		"the most namespaces":          {"namespaces", list(64, "n#"), ""},
		"the most names":               {"names", list(64, "n#-*"), ""},
		"the most subjects":            {"subjects", list(128, "{kind: Group, name: g#}"), ""},
		"the longest reason":           {"reason", strings.Repeat("x", 1024), ""},
		"a time of another zone":       {"expiresAt", `"2026-11-29T03:58:15+02:00"`, ""},
		"no policies":                  {"policies", "", "spec.policies: Required value"},
		"an empty list of policies":    {"policies", "[]", `spec.policies: Invalid value: 0: spec.policies in body should have at least 1 items`},
		"too many policies":            {"policies", list(17, "p#"), "spec.policies: Too many: 17: must have at most 16 items"},
		"a policy twice":               {"policies", "[a, a]", `spec.policies[1]: Duplicate value: "a"`},
		"every policy":                 {"policies", `["*"]`, `spec.policies[0]: Invalid value: "*": spec.policies[0] in body should match`},
		"no namespaces":                {"namespaces", "", "spec.namespaces: Required value"},
		"an empty list of namespaces":  {"namespaces", "[]", `spec.namespaces: Invalid value: 0: spec.namespaces in body should have at least 1 items`},
		"too many namespaces":          {"namespaces", list(65, "n#"), "spec.namespaces: Too many: 65: must have at most 64 items"},
		"every namespace":              {"namespaces", `["*"]`, `spec.namespaces[0]: Invalid value: "*": spec.namespaces[0] in body should match`},
		"a prefix of namespaces":       {"namespaces", `["team-*"]`, `spec.namespaces[0]: Invalid value: "team-*": spec.namespaces[0] in body should match`},
		"no names":                     {"names", "", "spec.names: Required value"},
		"an empty list of names":       {"names", "[]", `spec.names: Invalid value: 0: spec.names in body should have at least 1 items`},
		"too many names":               {"names", list(65, "n#"), "spec.names: Too many: 65: must have at most 64 items"},
		"an empty name":                {"names", `[""]`, "spec.names[0]: Invalid value"},
		"a * within a name":            {"names", `["a*b"]`, `spec.names[0]: Invalid value: "a*b": spec.names[0] in body should match`},
		"a * at the beginning":         {"names", `["*-db"]`, `spec.names[0]: Invalid value: "*-db": spec.names[0] in body should match`},
		"two of them":                  {"names", `["db**"]`, `spec.names[0]: Invalid value: "db**": spec.names[0] in body should match`},
		"capital letters":              {"names", `[DB]`, `spec.names[0]: Invalid value: "DB": spec.names[0] in body should match`},
		"too many subjects":            {"subjects", list(129, "{kind: Group, name: g#}"), "spec.subjects: Too many: 129: must have at most 128 items"},
		"an account without namespace": {"subjects", "[{kind: ServiceAccount, name: x}]", "spec.subjects[0].namespace: Invalid value: a ServiceAccount needs a namespace, a User or Group takes none"},
		"no reason":                    {"reason", "", "spec.reason: Required value"},
		"an empty reason":              {"reason", `""`, "spec.reason: Invalid value"},
		"a reason of spaces":           {"reason", `"  "`, `spec.reason: Invalid value: "  ": spec.reason in body should match '\S'`},
		"a long reason":                {"reason", strings.Repeat("x", 1025), "spec.reason: Too long: may not be more than 1024 bytes"},
		"no end":                       {"expiresAt", "", "spec.expiresAt: Required value"},
		"an end that is no time":       {"expiresAt", "tomorrow", `spec.expiresAt: Invalid value: "tomorrow": spec.expiresAt in body must be of type date-time: "tomorrow"`},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for field, value := range valid {
				if field != tc.field {
					fields = append(fields, field+": "+value)
				}
			}
			if tc.value != "" {
				fields = append(fields, tc.field+": "+tc.value)
			}
			got := kubectl(t, "{apiVersion: stencil.kubevirt.io/v1alpha1, kind: PolicyException, metadata: {name: refused}, spec: {"+strings.Join(fields, ", ")+"}}", "create", "--dry-run=server", "-f", "-")
			switch {
			case tc.want == "" && got.Code != 0:
				t.Error(got.Stderr)
			case tc.want != "" && (got.Code == 0 || !strings.Contains(got.Stderr, tc.want)):
				t.Errorf("got exit code %d and %q, want a refusal with %q", got.Code, got.Stderr, tc.want)
			}
		})
	}
}
