package disks

import (
	"testing"

	"github.com/vmstencil/stencil/internal/fixture"
)

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
