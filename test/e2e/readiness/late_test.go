package readiness_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

// multus is the relevant part of Multus' definition.
const multus = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition, shortNames: [net-attach-def]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {config: {type: string}}}}}}
`

// Objects of the definitions that are installed later.
const (
	vlan       = `{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "vlan7"}, "spec": {"config": "{}"}}`
	small      = `{"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype", "metadata": {"name": "small"}, "spec": {"cpu": {"guest": 1}, "memory": {"guest": "1Gi"}}}`
	preference = `{"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterPreference", "metadata": {"name": "late"}, "spec": {}}`
	daily      = `{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "daily"}, "spec": {"source": {"persistentVolumeClaimName": "disk"}}}`
)

// install installs a definition, and then an object that it defines.
func (s *stage) install(t *testing.T, definition, namespace, object string) {
	t.Helper()
	s.must(t, definition, "create", "-f", "-")
	s.eventually(t, "the definition is served", func() error {
		if got := s.kubectl(t, nil, object, "create", "-n", namespace, "-f", "-"); got.Code != 0 {
			return errors.New(got.Stderr)
		}
		return nil
	})
}

// TestDefinitionsComeAndGoWhileTheManagerRuns starts a manager on a cluster without CDI, snapshots, instance types and Multus, and installs and
// deletes them while it runs.
//
//suite:long
func TestDefinitionsComeAndGoWhileTheManagerRuns(t *testing.T) {
	s := (&stage{options: platform.Options{ControllerManager: true, CDILater: true, Log: os.Stderr}}).on(t)
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	const sizes, preferences = "virtualmachineinstancetypes.instancetype.kubevirt.io", "virtualmachineclusterpreferences.instancetype.kubevirt.io"
	sizesDefinition, preferencesDefinition := harness.TakeAway(t, s.Plane, sizes), harness.TakeAway(t, s.Plane, preferences)
	if err := s.RestartManager(); err != nil {
		t.Fatal(err)
	}

	own := s.namespace(t)
	s.apply(t, own, withoutMemory("box", fedora, onVLAN,
		gen.Spec("{instancetype: {kind: VirtualMachineInstancetype, name: small}, preference: {kind: VirtualMachineClusterPreference, name: late}}")))
	s.apply(t, own, template("restored", fmt.Sprintf("source: {snapshot: {name: daily, namespace: %s}}", own)))
	const notServed = `"reason":"NotServed"`
	unknown := func(name, path, kind string) {
		t.Helper()
		s.becomes(t, own, name, path, `"state":"Unknown"`, notServed, "the cluster does not serve the kind "+kind)
	}
	unknown("box", ".status.volumes[0]", "DataSource")
	unknown("restored", ".status.volumes[0]", "VolumeSnapshot")
	unknown("box", ".status.instancetype", "VirtualMachineInstancetype")
	unknown("box", ".status.preference", "VirtualMachineClusterPreference")
	unknown("box", ".status.networks[0]", "NetworkAttachmentDefinition")
	for _, name := range []string{"box", "restored"} {
		s.becomes(t, own, name, condition("Ready"), `"status":"Unknown"`, `"reason":"Unknown"`, "the cluster does not serve the kind")
	}

	for _, reflector := range []string{"readiness-datasources", "capture-datavolumes"} {
		if strings.Contains(s.Manager.Logs(), reflector) {
			t.Errorf("a kind that is not there fills the log: %s", s.Manager.Logs())
		}
	}

	// The kinds are installed one by one, and the manager is not restarted.
	s.install(t, sizesDefinition, own, small)
	s.becomes(t, own, "box", ".status.instancetype", `"state":"Ready"`)
	s.install(t, preferencesDefinition, own, preference)
	s.becomes(t, own, "box", ".status.preference", `"state":"Ready"`)
	s.install(t, multus, own, vlan)
	s.becomes(t, own, "box", ".status.networks[0]", `"state":"Ready"`)
	s.becomes(t, own, "box", condition("Ready"), `"status":"Unknown"`, "the cluster does not serve the kind DataSource")
	if err := s.Plane.StartCDI(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"NotFound"`)
	s.becomes(t, own, "restored", ".status.volumes[0]", `"state":"NotFound"`)
	s.apply(t, own, image("disk"))
	s.apply(t, own, dataSource(own, "fedora", "disk"))
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`)
	s.snapshot(t, own, daily)
	s.becomes(t, own, "restored", condition("Ready"), `"status":"True"`)

	// Then they are deleted one by one. A definition is deleted with its objects.
	dataSources := harness.TakeAway(t, s.Plane, "datasources.cdi.kubevirt.io")
	unknown("box", ".status.volumes[0]", "DataSource")
	networks := harness.TakeAway(t, s.Plane, "network-attachment-definitions.k8s.cni.cncf.io")
	unknown("box", ".status.networks[0]", "NetworkAttachmentDefinition")
	sizesDefinition = harness.TakeAway(t, s.Plane, sizes)
	unknown("box", ".status.instancetype", "VirtualMachineInstancetype")
	s.becomes(t, own, "box", condition("Ready"), `"status":"Unknown"`)

	s.install(t, dataSources, own, dataSource(own, "fedora", "disk"))
	s.install(t, networks, own, vlan)
	s.install(t, sizesDefinition, own, small)
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`)
	select {
	case <-s.Manager.Done():
		t.Errorf("the manager has ended: %s", s.Manager.Logs())
	default:
	}
}
