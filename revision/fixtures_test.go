package revision_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/vmstencil/stencil/revision"
)

// The formats as KubeVirt 0.5x to 1.9 stored them.
const (
	uid = "8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10"

	metadata         = `{"name":"six","uid":"` + uid + `","generation":2,"creationTimestamp":null}`
	sixSpec          = `{"cpu":{"guest":6},"memory":{"guest":"6Gi"}}`
	coresSpec        = `{"cpu":{"preferredCPUTopology":"preferCores"},"devices":{"preferredDiskBus":"virtio"}}`
	coresVolumesSpec = `{"cpu":{"preferredCPUTopology":"preferThreads"},"volumes":{"preferredStorageClassName":"fast"}}`
	fullSpec         = `{"cpu":{"guest":4,"model":"host-model","dedicatedCPUPlacement":true,"numa":{"guestMappingPassthrough":{}},"isolateEmulatorThread":true,"realtime":{"mask":"0-3"}},` +
		`"memory":{"guest":"4096Mi","hugepages":{"pageSize":"2Mi"}},"gpus":[{"name":"g","deviceName":"nvidia.com/T4","virtualGPUOptions":{"display":{"enabled":true,"ramFB":{"enabled":false}}}}],` +
		`"hostDevices":[{"name":"h","deviceName":"x/y","tag":"t"}],"ioThreadsPolicy":"auto","launchSecurity":{"sev":{"policy":{"encryptedState":true}}}}`
	betaSpec = `{"annotations":{"a":"b"},"cpu":{"guest":2,"maxSockets":8},"memory":{"guest":"2Gi","overcommitPercent":20,"maxGuest":"8Gi"},"nodeSelector":{"x":"y"},"schedulerName":"s","ioThreads":{"supplementalPoolThreadCount":2}}`
)

// largeSpec has more bytes than a Decider stores.
var largeSpec = `{"annotations":{"note":"` + strings.Repeat("x", 32<<10) + `"},"cpu":{"guest":6},"memory":{"guest":"6Gi"}}`

func specRevision(spec string) string {
	return fmt.Sprintf(`{"apiVersion":"instancetype.kubevirt.io/v1alpha1","spec":%q}`, base64.StdEncoding.EncodeToString([]byte(spec)))
}

func whole(version, kind, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"instancetype.kubevirt.io/%s","kind":%q,"metadata":%s,"spec":%s}`, version, kind, metadata, spec)
}

func labels(kind string, changes ...string) map[string]string {
	l := map[string]string{
		revision.LabelGeneration: "2", revision.LabelKind: kind, revision.LabelName: "six",
		revision.LabelUID: uid, revision.LabelVersion: "v1beta1",
	}
	for i := 0; i < len(changes); i += 2 {
		if l[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(l, changes[i])
		}
	}
	return maps.Clone(l)
}

const (
	clusterType       = "VirtualMachineClusterInstancetype"
	namespacedType    = "VirtualMachineInstancetype"
	clusterPreference = "VirtualMachineClusterPreference"
)

func reference(kind string, changes ...func(*revision.Reference)) revision.Reference {
	r := revision.Reference{Holder: revision.Holder{Kind: revision.VirtualMachine, Name: "web"}, Family: revision.Instancetype, ObjectKind: kind, ObjectName: "six", Revision: "web-six-" + uid + "-2"}
	switch kind {
	case clusterPreference:
		r.Family = revision.Preference
	case namespacedType:
		r.ObjectNamespace = "team-a"
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}
