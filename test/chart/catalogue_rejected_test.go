package chart

import (
	"strings"
	"testing"
)

func TestCatalogueValuesThatAreRejected(t *testing.T) {
	cases := map[string]struct{ values, want string }{
		"an unknown value":                       {`{system: [fedora]}`, "additional properties 'system' not allowed"},
		"a system that the catalogue lacks":      {`{systems: [gentoo]}`, "at '/systems/0': value must be one of 'fedora'"},
		"no system":                              {`{systems: []}`, "at '/systems': minItems: got 0, want 1"},
		"an architecture without templates":      {`{architectures: [s390x]}`, "at '/architectures/0': value must be one of 'amd64', 'arm64'"},
		"no system exists for the architectures": {`{systems: [windows11], architectures: [arm64]}`, "none of the systems windows11 exists for the architectures arm64"},
		"a login that there is not":              {`{login: key}`, "at '/login': value must be one of 'Password', 'SSHKey'"},
		"settings of an unknown system":          {`{settings: {gentoo: {}}}`, "at '/settings': additional properties 'gentoo' not allowed"},
		"settings of a system that is not chosen": {
			`{systems: [fedora], settings: {rhel9: {diskSize: 40Gi}}}`, "settings.rhel9: the system is not in systems",
		},
		"an unknown setting":                      {`{settings: {fedora: {disk: 40Gi}}}`, "at '/settings/fedora': additional properties 'disk' not allowed"},
		"a size in another unit":                  {`{settings: {fedora: {diskSize: 30G}}}`, "at '/settings/fedora/diskSize': '30G' does not match pattern"},
		"a mirror with a scheme":                  {`{mirror: {quay.io: "https://registry.example.com"}}`, "at '/mirror/quay.io': 'https://registry.example.com' does not match pattern"},
		"a prefix that ends in a slash":           {`{mirror: {"quay.io/": registry.example.com}}`, "at '/mirror': additional properties 'quay.io/' not allowed"},
		"a schedule that is no cron expression":   {`{goldenImages: {schedule: {cron: daily}}}`, "at '/goldenImages/schedule/cron': 'daily' does not match pattern"},
		"a window without unit":                   {`{goldenImages: {schedule: {window: "4"}}}`, "at '/goldenImages/schedule/window': '4' does not match pattern"},
		"no images to keep":                       {`{goldenImages: {importsToKeep: 0}}`, "at '/goldenImages/importsToKeep': minimum: got 0, want 1"},
		"a Secret for nodes that pull":            {`{goldenImages: {registry: {pullMethod: node, secretRef: a}}}`, "goldenImages.registry.secretRef needs goldenImages.registry.pullMethod pod"},
		"a source without registry":               {`{sources: {rhel9: {}}}`, "at '/sources/rhel9': minProperties: got 0, want 1"},
		"a source without address":                {`{sources: {rhel9: {registry: {tag: "9"}}}}`, "at '/sources/rhel9/registry': missing property 'url'"},
		"a source of a system that is not chosen": {`{systems: [fedora], sources: {rhel9: {registry: {url: a/b}}}}`, "sources.rhel9: the system is not in systems"},
		"two sources":                             {`{systems: [fedora], sources: {fedora: {registry: {url: a/b}, pvc: {name: a}}}}`, "sources/fedora"},
		"a file for two architectures": {
			`{systems: [fedora], architectures: [amd64, arm64], sources: {fedora: {http: {url: "https://a.example/a"}}}}`,
			"sources.fedora: a file or a claim is for one architecture, and the system is chosen for amd64, arm64: bring the images of a system for several by a registry",
		},
		"a boot image of Windows":             {`{sources: {windows11: {registry: {url: a/b}}}}`, "sources.windows11: Windows is installed from an ISO image, which is no boot image; upload it to the PersistentVolumeClaim windows11-iso"},
		"an access mode in short":             {`{storage: {disks: {accessModes: [RWX]}}}`, "at '/storage/disks/accessModes/0': value must be one of 'ReadWriteOnce'"},
		"answer files of another kind":        {`{windows: {sysprep: File}}`, "at '/windows/sysprep': value must be one of '', 'ConfigMap', 'Secret'"},
		"a group without name":                {`{users: {groups: [""]}}`, "at '/users/groups/0': minLength: got 0, want 1"},
		"a service account without namespace": {`{users: {serviceAccounts: [{name: robot}]}}`, "at '/users/serviceAccounts/0': missing property 'namespace'"},
		"an approval of no namespace":         {`{approval: {enabled: true}}`, "approval.enabled needs approval.namespaces or approval.namespaceSelector"},
		"an approval without a default": {
			`{systems: [windows11], approval: {enabled: true, namespaces: [a], instancetypes: [u1.small]}}`,
			"approval.instancetypes lacks u1.large, the default of windows11",
		},
		"an enforcement that there is not": {`{approval: {enforcement: Refuse}}`, "at '/approval/enforcement': value must be one of 'Deny', 'Warn', 'Audit'"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, ok := helm(t, tc.values, catalogueArguments(t)...)
			if ok {
				t.Fatalf("accepted:\n%s", stdout)
			}
			if !strings.Contains(stderr, tc.want) {
				t.Errorf("rejected with\n%s\nwhich does not contain\n%s", stderr, tc.want)
			}
		})
	}
}
