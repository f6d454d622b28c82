package defaults_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/reconcilers/capture/conversion"
	"github.com/vmstencil/stencil/test/harness"
)

// TestACaptureOfAMachineWithDefaultsMakesAFreshLayout captures a VM whose layout has grown, makes a VM of the template, and compares its layout with
// that of a VM with the same devices from the start. The conversion is the one that captures use; copying disks needs CDI and is tested elsewhere.
func TestACaptureOfAMachineWithDefaultsMakesAFreshLayout(t *testing.T) {
	disks, interfaces := []string{"root", "data", "first"}, []string{"default"}
	discard(t, "team-a", "source", "fresh", "of-a-capture", "of-a-kept-capture")
	mustKubectl(t, ada, vmWith("source", ""), "apply", "-f", "-")
	grown := func(name string) string {
		manifest := strings.Replace(vmWith(name, ""), "disks:\n", "disks:\n          - {name: first, disk: {bus: virtio}}\n", 1)
		return strings.Replace(manifest, "volumes:\n", "volumes:\n      - {name: first, emptyDisk: {capacity: 1Gi}}\n", 1)
	}
	mustKubectl(t, ada, grown("source"), "apply", "-f", "-")
	mustKubectl(t, ada, grown("fresh"), "create", "-f", "-")
	old, fresh := addresses(t, "team-a", "source", disks, interfaces), addresses(t, "team-a", "fresh", disks, interfaces)
	if cmp.Equal(old, fresh) {
		t.Fatalf("the layout of the source is a fresh one: %v", old)
	}
	for name, tc := range map[string]struct {
		keep bool
		want map[string]string
	}{
		"of-a-capture":      {false, fresh},
		"of-a-kept-capture": {true, old},
	} {
		result, err := conversion.Convert(stored(t, "team-a", "source").Object, conversion.Options{Spec: v1beta1.VirtualMachineTemplateRequestSpec{KeepLayout: tc.keep}})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := json.Marshal(result.Spec)
		if err != nil {
			t.Fatal(err)
		}
		mustKubectl(t, nil, fmt.Sprintf(`{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":%q,"namespace":"golden"},"spec":%s}`, name, spec), "--namespace=golden", "create", "-f", "-")
		machine := vmObject(name, "team-a", "golden/"+name, "")
		harness.Eventually(t, "the template can be used", func() error {
			if got := kubectl(t, ada, machine, "create", "-f", "-"); got.Code != 0 {
				return fmt.Errorf("%s", got.Stderr)
			}
			return nil
		})
		if diff := cmp.Diff(tc.want, addresses(t, "team-a", name, disks, interfaces)); diff != "" {
			t.Errorf("layout of %s (-want +got):\n%s", name, diff)
		}
		if got := domain(t, stored(t, "team-a", name), "machine", "type"); !version.MatchString(got) {
			t.Errorf("the machine type of %s is %q", name, got)
		}
	}
}
