package readiness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestStatusesAreNoWayToWhatOthersHave refers, as a user with edit in one namespace, to objects of another one in which the user has no right.
func TestStatusesAreNoWayToWhatOthersHave(t *testing.T) {
	s := full.on(t)
	foreign := s.namespace(t)
	s.apply(t, foreign, image("ledger"))
	s.apply(t, foreign, dataSource(foreign, "fedora", "ledger"))
	own := harness.Namespace(t, s.Plane, "spy")
	spy := harness.User(t, s.Plane, "spy", gen.Role(own, "edit"))
	as := func(manifest string) {
		t.Helper()
		harness.Must(t, s.Plane, spy, manifest, "apply", "-n", own, "-f", "-")
	}
	volume := func(name string) string {
		return harness.Must(t, s.Plane, spy, "", "get", "vmt", name, "-n", own, "-o", "jsonpath={.status.volumes[0].state} {.status.volumes[0].reason}: {.status.volumes[0].message}").Stdout
	}
	hidden := func(when, name string) {
		t.Helper()
		const want = "Unknown NotPermitted: it is in another namespace, and who last wrote the template may not get it, or is not recorded: write the template with that permission"
		s.eventually(t, when+", nothing is reported", func() error {
			if got := volume(name); got != want {
				return fmt.Errorf("the status of %s is %s", name, got)
			}
			return nil
		})
	}
	from := func(name string) string {
		return "sourceRef: {kind: DataSource, namespace: " + foreign + ", name: " + name + "}"
	}
	as(template("real", from("fedora")))
	as(template("absent", from("nothing")))
	as(template("claim", "source: {pvc: {namespace: "+foreign+", name: ledger}}"))
	for _, name := range []string{"real", "absent", "claim"} {
		hidden("at first", name)
		if got := harness.Must(t, s.Plane, spy, "", "get", "vmt", name, "-n", own, "-o", "jsonpath={"+condition("Ready")+".status}").Stdout; got != "True" {
			t.Errorf("template %s has Ready %s", name, got)
		}
	}
	if real, absent := volume("real"), volume("absent"); real != absent {
		t.Errorf("what exists is reported as %s, and what does not as %s", real, absent)
	}

	// The owner's name is no way: neither copied, nor kept over another specification.
	s.apply(t, foreign, template("theirs", "source: {pvc: {namespace: "+own+", name: x}}"))
	writer := s.must(t, "", "get", "vmt", "theirs", "-n", foreign, "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/written-by}`)
	if !strings.HasPrefix(writer, "1 ") {
		t.Fatalf("the owner's template was written by %q", writer)
	}
	harness.Must(t, s.Plane, spy, "", "annotate", "--overwrite", "vmt", "real", "-n", own, "template.kubevirt.io/written-by="+writer)
	hidden("with another user's name", "real")
	copied := strings.Replace(template("copied", from("fedora")), "\n  name: copied\n", "\n  annotations: {template.kubevirt.io/written-by: '"+writer+"'}\n  name: copied\n", 1)
	if !strings.Contains(copied, writer) {
		t.Fatalf("the manifest has no annotation:\n%s", copied)
	}
	as(copied)
	hidden("with another user's name from the beginning", "copied")

	// With the right, and a template that is written again.
	harness.Grant(t, s.Plane, spy, foreign, rbacv1.PolicyRule{
		APIGroups: []string{"cdi.kubevirt.io", ""}, Resources: []string{"datasources", "datavolumes", "persistentvolumeclaims"}, Verbs: []string{"get"},
	})
	// The webhook records who writes if it answers within two seconds, which it may not on a machine that is overloaded.
	memory := 2048
	for name, source := range map[string]string{"real": "fedora", "absent": "nothing"} {
		s.eventually(t, "who writes template "+name+" is recorded", func() error {
			memory++
			as(template(name, from(source), gen.Memory(fmt.Sprintf("%dMi", memory))))
			stored := harness.Must(t, s.Plane, spy, "", "get", "vmt", name, "-n", own, "-o", `jsonpath={.metadata.generation},{.metadata.annotations.template\.kubevirt\.io/written-by}`).Stdout
			if generation, writer, _ := strings.Cut(stored, ","); !strings.HasPrefix(writer, generation+" "+spy.Name+" ") {
				return errors.New(stored)
			}
			return nil
		})
	}
	s.eventually(t, "the status reports what the user may get", func() error {
		if got := volume("absent"); got != "NotFound NotFound: DataSource "+foreign+"/nothing does not exist" {
			return errors.New(got)
		}
		if got := volume("real"); strings.Contains(got, "NotPermitted") {
			return errors.New(got)
		}
		return nil
	})
}
