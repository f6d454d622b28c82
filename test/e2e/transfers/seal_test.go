package transfers_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"

	"github.com/vmstencil/stencil/test/harness"
)

// sealed returns status, reason and message of the condition Sealed.
func (s *shop) sealed(t *testing.T, resource, name string) string {
	t.Helper()
	const condition = `.status.conditions[?(@.type=="Sealed")]`
	return s.does(t, "", "get", resource, name, "-o", "jsonpath={"+condition+".status} {"+condition+".reason} {"+condition+".message}")
}

// TestAnImportReportsADiskThatIsNotSealed imports a disk with keys and a machine ID: the template is created all the same.
func TestAnImportReportsADiskThatIsNotSealed(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.imports(t, "web", `{"source": {"http": {"url": "`+offer(t, "appliance.ova", packed(t, unsealedDisk(t)))+`"}}}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
	for _, resource := range []string{"vmti", "vmt"} {
		got := s.sealed(t, resource, "web")
		for _, want := range []string{"False NotSealed ", ": /etc/machine-id (machine ID); ", "/etc/ssh/ssh_host_rsa_key (SSH host key)", "/home/ann/.ssh/authorized_keys (authorized SSH keys)"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s has the condition %s, without %s", resource, got, want)
			}
		}
		if strings.Contains(got, "0123456789abcdef") {
			t.Errorf("%s has the content of a file: %s", resource, got)
		}
	}
	harness.Within(t, "there is an event", limit, func() error {
		events := s.does(t, "", "get", "events", "-o", `jsonpath={range .items[*]}{.involvedObject.kind} {.type} {.reason}{"\n"}{end}`)
		if !strings.Contains(events, "VirtualMachineTemplateImport Warning NotSealed\n") {
			return harness.Complaint("events: " + events)
		}
		return nil
	})
	s.does(t, "", "annotate", "vmti", "web", "template.kubevirt.io/seal-acknowledged=true")
	for _, resource := range []string{"vmti", "vmt"} {
		s.reaches(t, resource, "web", `{.status.conditions[?(@.type=="Sealed")].reason}`, "Acknowledged")
		if got := s.sealed(t, resource, "web"); !strings.HasPrefix(got, "False Acknowledged ") || !strings.Contains(got, "/etc/machine-id") {
			t.Errorf("%s has the condition %s after the acknowledgement", resource, got)
		}
	}
	s.does(t, "", "annotate", "vmti", "web", "template.kubevirt.io/seal-acknowledged-")
	s.reaches(t, "vmt", "web", `{.status.conditions[?(@.type=="Sealed")].reason}`, "NotSealed")
}

// unsealedDisk is a disk with SSH host keys and a machine ID.
func unsealedDisk(t *testing.T) []byte {
	t.Helper()
	disk := make([]byte, 64<<20)
	copy(disk, testfile.Expand(t, "../../../seal/testdata/ext4.zst"))
	return disk
}

// TestACaptureReportsADiskThatIsNotSealed captures a VM with keys and a machine ID: the template is created all the same, and nothing of the examination is left.
// An export of the template has the same report, which stays acknowledged.
func TestACaptureReportsADiskThatIsNotSealed(t *testing.T) {
	t.Parallel()
	disk := unsealedDisk(t)
	s := open(t)
	s.machine(t, disk)
	s.captured(t)
	const reason = `{.status.conditions[?(@.type=="Sealed")].reason}`
	s.reaches(t, "vmtr", "golden", reason, "NotSealed")
	s.nothing(t, s.uid(t, "vmtr", "golden"))
	claim := s.does(t, "", "get", "datavolumes", "-l", "template.kubevirt.io/RequestUID", "-o", "jsonpath={.items[*].metadata.name}")
	want := "False NotSealed " + claim + ": /etc/machine-id (machine ID); "
	report := s.sealed(t, "vmtr", "golden")
	if !strings.HasPrefix(report, want) || !strings.Contains(report, "/etc/ssh/ssh_host_rsa_key (SSH host key)") || strings.Contains(report, "0123456789abcdef") {
		t.Errorf("the request has the condition %s, want %s", report, want)
	}
	if got := s.sealed(t, "vmt", "golden"); got != report {
		t.Errorf("the template has the condition %s, and the request %s", got, report)
	}
	harness.Within(t, "there is an event", limit, func() error {
		events := s.does(t, "", "get", "events", "-o", `jsonpath={range .items[*]}{.involvedObject.kind} {.type} {.reason}{"\n"}{end}`)
		if !strings.Contains(events, "VirtualMachineTemplateRequest Warning NotSealed\n") {
			return harness.Complaint("events: " + events)
		}
		return nil
	})
	s.does(t, "", "annotate", "vmtr", "golden", "template.kubevirt.io/seal-acknowledged=true")
	s.reaches(t, "vmt", "golden", reason, "Acknowledged")
	s.export(t, "out", "")
	if got := s.sealed(t, "vmte", "out"); got != report {
		t.Errorf("the export has the condition %s, and the request %s", got, report)
	}
	if got := s.sealed(t, "vmt", "golden"); !strings.HasPrefix(got, "False Acknowledged ") {
		t.Errorf("the template has the condition %s after an export with the same report", got)
	}
	s.does(t, "", "annotate", "vmtr", "golden", "template.kubevirt.io/seal-acknowledged-")
	s.reaches(t, "vmt", "golden", reason, "NotSealed")
	s.does(t, "", "annotate", "vmte", "out", "template.kubevirt.io/seal-acknowledged=true")
	s.reaches(t, "vmt", "golden", reason, "Acknowledged")
	if got := s.boots(t, "golden", "web-1"); !bytes.Equal(got, disk) {
		t.Error("the disk of the VM has other bytes")
	}
}

// TestATemplateIsDeletedWhileItsDisksAreExamined requires that nothing of the examination is left.
func TestATemplateIsDeletedWhileItsDisksAreExamined(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.machine(t, unsealedDisk(t))
	s.captured(t)
	uid := s.uid(t, "vmtr", "golden")
	harness.Within(t, "the examination has begun", limit, func() error {
		if harness.Must(t, stencil.Plane, nil, "", "get", "datavolumes", "-n", s.namespace, "-l", "template.kubevirt.io/transfer="+uid, "-o", "name").Stdout == "" {
			return harness.Complaint(s.describe(t, "vmtr", "golden"))
		}
		return nil
	})
	s.does(t, "", "delete", "vmt", "golden")
	s.gone(t, "vmtr", "golden")
	s.nothing(t, uid)
	harness.Within(t, "the disks of the template are gone", limit, func() error {
		return harness.Complaint(s.does(t, "", "get", "vmt,pvc", "-o", "name"))
	})
}
