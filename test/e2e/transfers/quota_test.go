package transfers_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

// quota limits the namespace, as its administrator.
func (s *shop) quota(t *testing.T, hard string) {
	t.Helper()
	harness.Must(t, stencil.Plane, nil, `{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": "`+s.namespace+`"}, "spec": {"hard": {`+hard+`}}}`, "apply", "-f", "-")
	harness.Within(t, "the quota is in force", limit, func() error {
		if harness.Must(t, stencil.Plane, nil, "", "get", "quota", "small", "-n", s.namespace, "-o", "jsonpath={.status.hard}").Stdout == "" {
			return harness.Complaint("it has no status")
		}
		return nil
	})
}

// progressHas waits until the message about the progress of a transfer has a part.
func (s *shop) progressHas(t *testing.T, resource, name, part string) {
	t.Helper()
	harness.Within(t, "the progress has the message "+part, limit, func() error {
		got := s.does(t, "", "get", resource, name, "-o", `jsonpath={.status.phase} {.status.conditions[?(@.type=="Progressing")].status} {.status.conditions[?(@.type=="Progressing")].message}`)
		if !strings.Contains(got, part) || strings.HasPrefix(got, "Failed") {
			return harness.Complaint(got)
		}
		return nil
	})
}

// TestTransfersWaitForQuota exhausts a quota: imports and exports say what they lack, and go on when there is more.
func TestTransfersWaitForQuota(t *testing.T) {
	t.Run("an import", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		ova, disk := appliance(t)
		s.quota(t, `"persistentvolumeclaims": "0"`)
		s.imports(t, "web", `{"source": {"http": {"url": "`+offer(t, "app.ova", ova)+`"}}}`)
		s.progressHas(t, "vmti", "web", "exceeded quota: small, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0")
		harness.Must(t, stencil.Plane, nil, "", "delete", "quota", "small", "-n", s.namespace)
		s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
		if got := s.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
			t.Error("the disk of the VM has other bytes")
		}
	})
	t.Run("an import without pods", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		ova, _ := appliance(t)
		s.quota(t, `"pods": "0"`)
		s.imports(t, "web", `{"source": {"http": {"url": "`+offer(t, "app.ova", ova)+`"}}}`)
		uid := s.uid(t, "vmti", "web")
		s.progressHas(t, "vmti", "web", "waiting for the pod of the mover: if there is none for long, the events of Job transfer-"+uid+"-inspect say why")
		if got := s.does(t, "", "get", "events", "--field-selector", "involvedObject.name=transfer-"+uid+"-inspect", "-o", "jsonpath={.items[*].message}"); !strings.Contains(got, "exceeded quota: small") {
			t.Errorf("the events of the Job are: %s", got)
		}
		s.does(t, "", "delete", "vmti", "web")
		s.nothing(t, uid)
	})
	t.Run("an export", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		disk := content(14)
		s.machine(t, disk)
		s.captured(t)
		s.quota(t, `"persistentvolumeclaims": "0"`)
		s.exports(t, "out", "")
		s.progressHas(t, "vmte", "out", "exceeded quota: small, requested: persistentvolumeclaims=1")
		harness.Must(t, stencil.Plane, nil, "", "delete", "quota", "small", "-n", s.namespace)
		s.reaches(t, "vmte", "out", "{.status.phase}", "Ready")
		s.does(t, "", "delete", "vmte", "out")
	})
}
