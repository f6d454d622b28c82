package readiness_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// TestPoliciesSeeObjects evaluates policies about the objects of a template, for a user with the role edit.
func TestPoliciesSeeObjects(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.apply(t, l.golden, gen.Manifest(gen.Template("complete", append(withObjects(), gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec()))...)))
	policy := gen.Manifest(gen.Policy("objects-"+l.team, `package objects

deny contains sprintf("Service %v selects %v", [object.metadata.name, object.spec.selector]) if {
	some object in input.objects
	object.kind == "Service"
	startswith(object.metadata.name, "no-")
}

warn contains sprintf("%v %v: %v", [object.kind, object.metadata.name, object.stringData]) if {
	some object in input.objects
	object.kind == "Secret"
}
`, gen.Spec(`{match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "`+l.team+`"}}}}`)))
	s.must(t, policy, "apply", "-f", "-")
	t.Cleanup(func() { s.must(t, policy, "delete", "-f", "-") })
	vm := func(name string) string { return gen.Manifest(gen.VM(name, gen.FromTemplate(l.golden+"/complete"))) }

	l.eventually(t, "the policy denies the Service", func() error {
		got := l.kubectl(t, l.user, vm("no-1"), "create", "--dry-run=server", "-n", l.team, "-f", "-")
		if got.Code == 0 || !strings.Contains(got.Stderr, `Service no-1 selects {"vm.kubevirt.io/name": "no-1"}`) {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
	for _, how := range [][]string{{"create"}, {"apply"}, {"apply", "--server-side"}} {
		if got := l.kubectl(t, l.user, vm("no-1"), append(how, "-n", l.team, "-f", "-")...); got.Code == 0 || !strings.Contains(got.Stderr, "Service no-1 selects") {
			t.Errorf("%v: exit code %d: %s%s", how, got.Code, got.Stdout, got.Stderr)
		}
	}
	got := l.kubectl(t, l.user, vm("yes-1"), "create", "-n", l.team, "-f", "-")
	if got.Code != 0 || !strings.Contains(got.Stderr, `Secret yes-1-login: {"userdata": "***"}`) {
		t.Errorf("exit code %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	l.released(t, "yes-1")
	l.exists(t, "secret", "yes-1-login", "{.metadata.name}")
	if got := l.kubectl(t, l.user, "", "annotate", "vm", "yes-1", "-n", l.team, "example.org/a=b"); got.Code != 0 || strings.Contains(got.Stderr, "yes-1-login") {
		t.Errorf("an update has objects: exit code %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
}
