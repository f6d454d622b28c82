package readiness_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// TestApprovalsLimitObjects creates VMs with objects where an approval lists kinds and names, as a user with the role edit.
func TestApprovalsLimitObjects(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	publish := func(name string, modifiers ...gen.Modifier) {
		l.apply(t, l.golden, gen.Manifest(gen.Template(name, append([]gen.Modifier{gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec())}, modifiers...)...)))
	}
	publish("complete", withObjects()...)
	publish("named", gen.Declares("TOKEN", "{value: s3cretvalue, sensitive: true}"), gen.Spec(`objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-${TOKEN}"}}]`))
	publish("plain")
	approve := func(t *testing.T, objects string) {
		t.Helper()
		approval := gen.Approval(l.team, gen.Governs(l.team), gen.Approves(l.golden+"/*"), gen.Spec("objects: "+objects))
		s.must(t, gen.Manifest(approval), "apply", "-f", "-")
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)
		s.must(t, "", "wait", "templateapproval/"+l.team, "--for=condition=Ready")
	}
	manifest := func(name, template string) string {
		return gen.Manifest(gen.VM(name, gen.FromTemplate(l.golden+"/"+template)))
	}
	denied := func(t *testing.T, manifest string, want ...string) {
		t.Helper()
		for _, how := range [][]string{{"create"}, {"create", "--dry-run=server"}, {"apply"}, {"apply", "--server-side"}} {
			got := l.kubectl(t, l.user, manifest, append(how, "-n", l.team, "-f", "-")...)
			for _, text := range want {
				if got.Code == 0 || !strings.Contains(got.Stderr, text) {
					t.Errorf("%v: exit code %d: %s%s\nwant %s", how, got.Code, got.Stdout, got.Stderr, text)
				}
			}
			if strings.Contains(got.Stderr, "s3cretvalue") {
				t.Errorf("the message contains a value: %s", got.Stderr)
			}
		}
	}
	login, service := "template["+l.golden+"/complete].spec.objects[0]: Secret ${NAME}-login: the approval allows ", "template["+l.golden+"/complete].spec.objects[1]: Service ${NAME}: the approval allows "
	advice := "; use another template, or ask a cluster admin to list the object in objects (approval \"" + l.team + "\")"

	approve(t, "{policy: Deny}")
	denied(t, manifest("none", "complete"), login+"no objects of templates"+advice, service+"no objects of templates"+advice)
	l.create(t, "plain", "plain")

	const some = "only Secret named *-login, *-key; Service named db-*"
	approve(t, "{allowed: [{kinds: [Secret], names: ['*-login', '*-key']}, {kinds: [Service], names: ['db-*']}]}")
	denied(t, manifest("web", "complete"), service+some+advice)
	denied(t, manifest("web", "named"), "template["+l.golden+"/named].spec.objects[0]: Secret ${NAME}-${TOKEN}: the approval allows "+some+advice)
	if left := s.must(t, "", "get", "vm,secrets,services", "-n", l.team, "-o", "name"); strings.TrimSpace(left) != "virtualmachine.kubevirt.io/plain" {
		t.Errorf("what was denied has left %s", left)
	}
	l.create(t, "db-1", "complete")
	l.released(t, "db-1")
	l.exists(t, "secret", "db-1-login", "{.metadata.name}")
}
