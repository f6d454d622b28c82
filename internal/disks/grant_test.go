package disks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/vmstencil/stencil/internal/fixture"
)

func TestAGrantIsReadAsItWasWritten(t *testing.T) {
	for want, grant := range map[string]Grant{
		"u1 s1 ada system:authenticated": {Template: "u1", Sources: "s1", User: authenticationv1.UserInfo{Username: "ada", Groups: []string{"system:authenticated"}}},
		// A name cannot be read as a name and a group.
		"u1 s1 ada%20system:masters %2520 x": {Template: "u1", Sources: "s1", User: authenticationv1.UserInfo{Username: "ada system:masters", Groups: []string{"%20", "x"}}},
		"u1 s1 ada":                          {Template: "u1", Sources: "s1", User: authenticationv1.UserInfo{Username: "ada"}},
	} {
		if got := grant.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		got, is := ParseGrant(want)
		if diff := cmp.Diff(grant, got); diff != "" || !is {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
	for _, text := range []string{"", "u1", "u1 s1", "u1 s1 ", " s1 ada", "u1  ada"} {
		if got, is := ParseGrant(text); is {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestBorrowedChangesWithWhatIsCopied(t *testing.T) {
	spec := func(templates string) map[string]any {
		return fixture.VM(t, `{"dataVolumeTemplates": [`+templates+`]}`)
	}
	const (
		root = `{"metadata": {"name": "root"}, "spec": {"source": {"pvc": {"namespace": "golden", "name": "fedora"}}, "storage": {}}}`
		data = `{"metadata": {"name": "data"}, "spec": {"sourceRef": {"kind": "DataSource", "namespace": "golden", "name": "data"}}}`
		own  = `{"metadata": {"name": "own"}, "spec": {"source": {"pvc": {"name": "fedora"}}}}`
	)
	if got := Borrowed(spec(own), "team"); got != "" {
		t.Errorf("got %s of a disk of the namespace", got)
	}
	want := Borrowed(spec(root+","+data), "team")
	for name, same := range map[string]string{
		"another order":     data + "," + root,
		"a disk of its own": root + "," + own + "," + data,
		"another size":      `{"metadata": {"name": "root"}, "spec": {"source": {"pvc": {"namespace": "golden", "name": "fedora"}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}},` + data,
	} {
		if got := Borrowed(spec(same), "team"); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name, other := range map[string]string{
		"fewer":         root,
		"another claim": `{"metadata": {"name": "root"}, "spec": {"source": {"pvc": {"namespace": "golden", "name": "payroll"}}}},` + data,
		"another name":  `{"metadata": {"name": "boot"}, "spec": {"source": {"pvc": {"namespace": "golden", "name": "fedora"}}}},` + data,
		"a snapshot":    `{"metadata": {"name": "root"}, "spec": {"source": {"snapshot": {"namespace": "golden", "name": "fedora"}}}},` + data,
	} {
		if got := Borrowed(spec(other), "team"); got == want || got == "" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
