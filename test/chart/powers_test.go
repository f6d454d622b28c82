package chart

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/test/product"
)

// everyPower are values with which the chart creates every account with all of its rights.
const everyPower = `{
	transfers: {enabled: true, sourceNamespaces: [golden], ingress: {domain: exports.example.com}},
	goldenImages: {namespaces: [golden], readable: [{kind: Secret, name: registry, namespace: golden}]},
	policySources: {enabled: true, readable: [{kind: Secret, name: registry}]},
	defaulting: {enabled: true, mac: generate}, readiness: {dryRun: true}, revisions: {write: true}, apiserver: {enabled: true}}`

// power reports whether a verb changes something, or reads Secrets.
func power(verb, resource string) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, verb) || resource == "secrets" || resource == "*"
}

// powersOf returns the rights of each account of the release that write, or read Secrets, as VERB RESOURCE[.GROUP].
func powersOf(t *testing.T, rendered objects) map[string]map[string]bool {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range rendered {
		if kind := object.GetKind(); kind == "Role" || kind == "ClusterRole" {
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
			// A Role and a ClusterRole of the same name are of the same account.
			rules[kind+"/"+role.Name] = append(rules[kind+"/"+role.Name], role.Rules...)
		}
	}
	found := map[string]map[string]bool{}
	for _, object := range rendered {
		if kind := object.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			t.Fatal(err)
		}
		for _, subject := range binding.Subjects {
			if subject.Kind != "ServiceAccount" {
				continue
			}
			if found[subject.Name] == nil {
				found[subject.Name] = map[string]bool{}
			}
			for _, rule := range rules[binding.RoleRef.Kind+"/"+binding.RoleRef.Name] {
				for _, right := range powers(rule) {
					found[subject.Name][right] = true
				}
			}
		}
	}
	return found
}

func powers(rule rbacv1.PolicyRule) (found []string) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if power(verb, resource) {
					found = append(found, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
				}
			}
		}
	}
	return found
}

var code = regexp.MustCompile("`([^`]+)`")

// TestEveryPowerOfTheChartIsListed compares the rights of all accounts with the table of powers, and requires of each row a policy that limits a stolen token, or
// RBAC by name or namespace, or a reason, and tests.
func TestEveryPowerOfTheChartIsListed(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "security", "powers.md"))
	if err != nil {
		t.Fatal(err)
	}
	rendered := render(t, "stencil", everyPower)
	want, listed, account := powersOf(t, rendered), map[string]map[string]bool{}, ""
	for line := range strings.Lines(string(page)) {
		if name, is := strings.CutPrefix(line, "## "); is {
			account = strings.TrimSpace(name)
			listed[account] = map[string]bool{}
		}
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 || !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		for _, span := range code.FindAllStringSubmatch(cells[0], -1) {
			words := strings.Fields(span[1])
			resource := words[len(words)-1]
			for _, verb := range words[:len(words)-1] {
				if power(verb, resource) {
					listed[account][verb+" "+resource] = true
				}
			}
		}
		limit := cells[3]
		for _, span := range code.FindAllStringSubmatch(limit, -1) {
			if policy := rendered["ValidatingAdmissionPolicy/stencil-"+span[1]]; policy == nil && !strings.ContainsAny(span[1], " ./") && span[1] != "exemptUsers" {
				t.Errorf("%s: there is no policy %s", account, span[1])
			}
		}
		if !strings.Contains(limit, "RBAC") && !strings.HasPrefix(limit, "none: ") && !code.MatchString(limit) {
			t.Errorf("%s: %q is no policy, no permission and no reason", account, limit)
		}
		if !strings.Contains(cells[4], "`Test") {
			t.Errorf("%s: no test shows %s", account, cells[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, right := range slices.Sorted(maps.Keys(want[name])) {
			if !listed[name][right] {
				t.Errorf("%s may %s, which docs/security/powers.md does not list", name, right)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		for _, right := range slices.Sorted(maps.Keys(listed[name])) {
			if !want[name][right] {
				t.Errorf("docs/security/powers.md lists that %s may %s, and it may not", name, right)
			}
		}
	}
}
