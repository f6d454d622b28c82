package readiness_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
)

// TestATemplateLendsTheRightToCreateObjects creates VMs with objects as a user who may create VMs and use the template, and nothing else. The
// cluster permits templates to lend ConfigMaps.
func TestATemplateLendsTheRightToCreateObjects(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	user, err := gen.User(t.Context(), s.Plane, "borrower-"+l.team, gen.UsesTemplates(l.golden), gen.Permits(l.team,
		rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	l.user = user
	publish := func(name, objects string) {
		l.apply(t, l.golden, gen.Manifest(gen.Template(name, gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec()), gen.Spec("objects: "+objects))))
	}
	publish("lends", `[{apiVersion: v1, kind: ConfigMap, rights: Template, metadata: {name: "${NAME}"}, data: {a: b}}]`)
	publish("own", `[{apiVersion: v1, kind: ConfigMap, rights: User, metadata: {name: "${NAME}"}, data: {a: b}}]`)
	publish("secrets", `[{apiVersion: v1, kind: Secret, rights: Template, metadata: {name: "${NAME}"}}]`)
	create := func(name, template string) controlplane.Result {
		return l.kubectl(t, user, gen.Manifest(gen.VM(name, gen.FromTemplate(l.golden+"/"+template))), "create", "-n", l.team, "-f", "-")
	}
	denied := func(got controlplane.Result, want string) {
		t.Helper()
		if got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("exit code %d: %s%s\nwant %s", got.Code, got.Stdout, got.Stderr, want)
		}
	}
	l.create(t, "web", "lends")
	l.released(t, "web")
	if got := l.exists(t, "configmap", "web", "{.data}{.rights}{.metadata.ownerReferences[*].name}"); got != `{"a":"b"}web` {
		t.Errorf("the ConfigMap is %s", got)
	}
	denied(l.kubectl(t, user, "", "create", "configmap", "mine", "-n", l.team), "forbidden")
	denied(create("own", "own"), "template["+l.golden+"/own].spec.objects[0]: Forbidden: ConfigMap ${NAME}: user \""+user.Name+"\" may not create configmaps")
	denied(create("secrets", "secrets"), "Secret ${NAME}: templates lend no right to create secrets in this cluster")

	approve := func(objects string) {
		t.Helper()
		s.must(t, gen.Manifest(gen.Approval(l.team, gen.Governs(l.team), gen.Approves(l.golden+"/*"), gen.Spec("objects: "+objects))), "apply", "-f", "-")
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)
		s.must(t, "", "wait", "templateapproval/"+l.team, "--for=condition=Ready")
	}
	const lent = "template[%].spec.objects[0]: ConfigMap ${NAME}: the template lends the right to create it, which the approval does not allow"
	approve("{policy: Allow}")
	denied(create("governed", "lends"), strings.Replace(lent, "%", l.golden+"/lends", 1))
	approve("{allowed: [{kinds: [ConfigMap]}]}")
	denied(create("governed", "lends"), strings.Replace(lent, "%", l.golden+"/lends", 1))
	approve("{allowed: [{kinds: [ConfigMap], rights: Template}]}")
	l.create(t, "governed", "lends")
	l.released(t, "governed")
	l.exists(t, "configmap", "governed", "{.metadata.name}")
}
