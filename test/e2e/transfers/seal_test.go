package transfers_test

import (
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
	disk := make([]byte, 64<<20)
	copy(disk, testfile.Expand(t, "../../../seal/testdata/ext4.zst"))
	s := open(t)
	s.imports(t, "web", `{"source": {"http": {"url": "`+offer(t, "appliance.ova", packed(t, disk))+`"}}}`)
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
