package transfers_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/packages"
)

// TestFromOutsideOfTheCluster downloads a package by the Ingress of its export, with TLS that is passed through and TLS that the controller ends, and uploads it
// by the Ingress of an import.
func TestFromOutsideOfTheCluster(t *testing.T) {
	t.Parallel()
	s := open(t)
	disk := content(12)
	s.machine(t, disk)
	s.captured(t)
	e := s.export(t, "out", "")
	uid := s.uid(t, "vmte", "out")
	host := "export-" + uid + "." + domain
	if want := "https://" + host + "/package/golden.ova"; e.ExternalURL != want {
		t.Errorf("the URL is %s, want %s", e.ExternalURL, want)
	}
	if got := s.does(t, "", "get", "ingress", "export-"+uid, "-o", `jsonpath={.metadata.annotations.example\.com/passthrough} {.spec.tls[0].hosts[0]}`); got != "yes, please "+host {
		t.Errorf("the Ingress has %s", got)
	}
	whole := e.download(t)
	for name, ends := range map[string]bool{"passed through": false, "ended": true} {
		outside := packages.NewOutside(stencil.Plane, ends)
		defer outside.Close()
		from := &exported{e.From(outside)}
		if got := from.download(t); !bytes.Equal(got, whole) {
			t.Errorf("%s: the package differs", name)
		}
		if got := from.get(t, http.Header{"Authorization": {"Bearer wrong"}}); got.Code != http.StatusUnauthorized {
			t.Errorf("%s: with another token: status %d", name, got.Code)
		}
	}

	outside := packages.NewOutside(stencil.Plane, false)
	defer outside.Close()
	folder, proxy := t.TempDir(), "HTTPS_PROXY="+outside.Proxy
	if ran := s.runs(t, s.owner.Kubeconfig, folder, "ova export --export out golden.ova", proxy); ran.Code != 0 || !strings.HasPrefix(ran.Output, "golden.ova written: ") {
		t.Fatalf("%+v", ran)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "golden.ova")); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("the file differs: %v", err)
	}
	s.gone(t, "vmte", "out")
	s.nothing(t, uid)
	s.removed(t)

	ran := s.runs(t, s.owner.Kubeconfig, folder, "ova import golden.ova --poll-interval 200ms --verification Require", proxy)
	if ran.Code != 0 || ran.Output != "virtualmachinetemplate.template.kubevirt.io "+s.namespace+"/golden ready\n" {
		t.Fatalf("%+v", ran)
	}
	if got := s.boots(t, "golden", "web-2"); !bytes.Equal(got, disk) {
		t.Error("the disk of the new VM has other bytes")
	}
	harness.Within(t, "no Ingress is left", limit, func() error {
		return harness.Complaint(s.does(t, "", "get", "ingress", "-o", "name"))
	})
}
