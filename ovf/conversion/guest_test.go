package conversion

import (
	"testing"

	"github.com/vmstencil/stencil/ovf"
)

// TestFreeTextDoesNotOverrideTheNumber has descriptions that name another family than the number.
func TestFreeTextDoesNotOverrideTheNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		os         ovf.OperatingSystem
		family     family
		preference string
	}{
		"Solaris":                        {ovf.OperatingSystem{ID: 29, Description: "Oracle Solaris 11"}, familyOther, ""},
		"Solaris by its name":            {ovf.OperatingSystem{Description: "Oracle Solaris 11"}, familyOther, ""},
		"Linux that mentions Windows":    {ovf.OperatingSystem{ID: 80, Description: "replaces the Windows server"}, familyLinux, "linux"},
		"Windows that mentions Linux":    {ovf.OperatingSystem{ID: 103, Description: "domain controller for Linux clients"}, familyWindows, ""},
		"a description that is narrower": {ovf.OperatingSystem{ID: 80, Description: "rhel_9x64"}, familyLinux, "rhel.9"},
		"a number that says nothing":     {ovf.OperatingSystem{ID: 1, Description: "Ubuntu 24.04"}, familyLinux, "ubuntu"},
		"an identifier of VMware":        {ovf.OperatingSystem{ID: 36, VMware: "windows2019srv_64Guest"}, familyWindows, "windows.2k19"},
	} {
		if got := guestOf(tc.os); got.family != tc.family || got.preference != tc.preference {
			t.Errorf("%s: %s, %q", name, got.family, got.preference)
		}
	}
}
