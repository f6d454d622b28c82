package chart

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/install"
)

func catalogueFolder(t testing.TB) string {
	t.Helper()
	folder, err := install.CatalogueFolder()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// catalogueArguments of `helm template` for a release of the chart golden-images with values on standard input.
func catalogueArguments(t testing.TB) []string {
	t.Helper()
	return []string{"template", "images", catalogueFolder(t), "--namespace", "golden", "--kube-version", "1.30.0", "--values", "-"}
}

// catalogue returns the objects that the chart golden-images renders from values, given in YAML.
func catalogue(t *testing.T, values string) objects {
	t.Helper()
	stdout, stderr, ok := helm(t, values, catalogueArguments(t)...)
	if !ok {
		t.Fatalf("helm template: %s", stderr)
	}
	return decode(t, stdout)
}

// names returns the names of the objects of a kind.
func (o objects) names(kind string) []string {
	var found []string
	for key := range maps.Keys(o) {
		if name, is := strings.CutPrefix(key, kind+"/"); is {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func TestCatalogueLint(t *testing.T) {
	for name, values := range map[string]string{
		"the defaults":          `{}`,
		"everything optional":   `{architectures: [amd64, arm64], windows: {sysprep: ConfigMap}, users: {groups: [all]}, approval: {enabled: true, namespaces: [team-a]}}`,
		"no images are public":  `{goldenImages: {enabled: false}}`,
		"login with an SSH key": `{login: SSHKey}`,
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, ok := helm(t, values, "lint", "--strict", "--kube-version", "1.30.0", "--values", "-", catalogueFolder(t))
			if !ok {
				t.Errorf("helm lint: %s%s", stdout, stderr)
			}
		})
	}
}

func TestCatalogueHasOneTemplateForEachSystemAndArchitecture(t *testing.T) {
	cases := map[string]struct {
		values                               string
		templates, goldenImages, dataSources []string
	}{
		"the defaults": {
			values: `{}`,
			templates: []string{
				"centos-stream10", "centos-stream9", "debian12", "debian13", "fedora", "opensuse-leap", "rhel10", "rhel8", "rhel9",
				"ubuntu2204", "ubuntu2404", "windows11", "windows2k19", "windows2k22", "windows2k25",
			},
			goldenImages: []string{"centos-stream10", "centos-stream9", "debian12", "debian13", "fedora", "opensuse-leap", "ubuntu2204", "ubuntu2404"},
			dataSources:  []string{"rhel10", "rhel8", "rhel9", "windows11-iso", "windows2k19-iso", "windows2k22-iso", "windows2k25-iso"},
		},
		"some systems": {
			values:       `{systems: [debian13, windows2k25]}`,
			templates:    []string{"debian13", "windows2k25"},
			goldenImages: []string{"debian13"},
			dataSources:  []string{"windows2k25-iso"},
		},
		"two architectures; a system that has one of them is not duplicated": {
			values:       `{systems: [fedora, rhel8, rhel9, windows11], architectures: [amd64, arm64]}`,
			templates:    []string{"fedora", "fedora-arm64", "rhel8", "rhel9", "rhel9-arm64", "windows11"},
			goldenImages: []string{"fedora"},
			dataSources:  []string{"rhel8", "rhel9", "rhel9-arm64", "windows11-iso"},
		},
		"an architecture that a system does not have": {
			values:       `{systems: [fedora, rhel8, windows11], architectures: [arm64]}`,
			templates:    []string{"fedora"},
			goldenImages: []string{"fedora"},
		},
		"images that users bring": {
			values:      `{systems: [fedora], architectures: [amd64, arm64], goldenImages: {enabled: false}}`,
			templates:   []string{"fedora", "fedora-arm64"},
			dataSources: []string{"fedora", "fedora-arm64"},
		},
		"a registry for a system without public image": {
			values:       `{systems: [rhel9], sources: {rhel9: {registry: {url: registry.redhat.io/rhel9/rhel-guest-image}}}}`,
			templates:    []string{"rhel9"},
			goldenImages: []string{"rhel9"},
		},
		"a file for a system without public image": {
			values:       `{systems: [rhel9], architectures: [amd64], sources: {rhel9: {http: {url: "https://images.example.com/rhel9.qcow2", checksumFile: "https://images.example.com/SHA256SUMS"}}}}`,
			templates:    []string{"rhel9"},
			goldenImages: []string{"rhel9"},
		},
		"a claim": {
			values:       `{systems: [fedora], architectures: [amd64], sources: {fedora: {pvc: {name: uploaded}}}}`,
			templates:    []string{"fedora"},
			goldenImages: []string{"fedora"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rendered := catalogue(t, tc.values)
			for kind, want := range map[string][]string{
				"VirtualMachineTemplate": tc.templates, "GoldenImage": tc.goldenImages, "DataSource": tc.dataSources, "RoleBinding": nil, "TemplateApproval": nil,
			} {
				if diff := cmp.Diff(want, rendered.names(kind)); diff != "" {
					t.Errorf("%ss (-want +got):\n%s", kind, diff)
				}
			}
		})
	}
}

func TestCatalogueValuesReachTheirFields(t *testing.T) {
	const machine = "{.spec.virtualMachine.spec"
	cases := map[string]struct {
		values string
		object string
		// want are values by JSONPath.
		want map[string]any
	}{
		"a template boots from the DataSource of its name": {
			values: `{systems: [fedora], architectures: [amd64, arm64]}`,
			object: "VirtualMachineTemplate/fedora-arm64",
			want: map[string]any{
				`{.spec.parameters[?(@.name=="DATA_SOURCE_NAME")].value}`:      "fedora-arm64",
				`{.spec.parameters[?(@.name=="DATA_SOURCE_NAMESPACE")].value}`: "golden",
				machine + `.preference.name}`:                                  "fedora.arm64",
				machine + `.template.spec.architecture}`:                       "arm64",
				`{.metadata.labels.template\.kubevirt\.io/architecture}`:       "arm64",
			},
		},
		"labels and annotations for consoles": {
			values: `{systems: [windows2k22]}`,
			object: "VirtualMachineTemplate/windows2k22",
			want: map[string]any{
				`{.metadata.labels.os\.template\.kubevirt\.io/win2k22}`:                              "true",
				`{.metadata.labels.workload\.template\.kubevirt\.io/server}`:                         "true",
				`{.metadata.labels.template\.kubevirt\.io/type}`:                                     "base",
				`{.metadata.labels.stencil\.kubevirt\.io/disk-access}`:                               "Lend",
				`{.metadata.annotations.iconClass}`:                                                  "icon-windows",
				`{.metadata.annotations.name\.os\.template\.kubevirt\.io/win2k22}`:                   "Microsoft Windows Server 2022",
				`{.metadata.annotations.openshift\.io/documentation-url}`:                            "https://learn.microsoft.com/en-us/windows-server/",
				machine + `.template.metadata.annotations.vm\.kubevirt\.io/os}`:                      "windows2k22",
				machine + `.template.metadata.annotations.vm\.kubevirt\.io/workload}`:                "server",
				machine + `.template.spec.volumes[?(@.name=="virtio-drivers")].containerDisk.image}`: "quay.io/kubevirt/virtio-container-disk:v1.8.2",
			},
		},
		"the settings of a system": {
			values: `{systems: [fedora], settings: {fedora: {instancetype: u1.large, diskSize: 50Gi}}}`,
			object: "VirtualMachineTemplate/fedora",
			want: map[string]any{
				`{.spec.parameters[?(@.name=="INSTANCETYPE")].value}`: "u1.large",
				`{.spec.parameters[?(@.name=="DISK_SIZE")].value}`:    "50Gi",
			},
		},
		"the size of an image": {
			values: `{systems: [fedora], settings: {fedora: {imageSize: 20Gi}}, storage: {images: {storageClassName: slow, accessModes: [ReadWriteMany]}}}`,
			object: "GoldenImage/fedora",
			want: map[string]any{
				`{.spec.storage}`: map[string]any{"size": "20Gi", "storageClassName": "slow", "accessModes": []any{"ReadWriteMany"}},
			},
		},
		"a password": {
			values: `{systems: [debian13]}`,
			object: "VirtualMachineTemplate/debian13",
			want: map[string]any{
				`{.spec.secretize}`: true,
				`{.spec.parameters[?(@.name=="CLOUD_USER_PASSWORD")].sensitive}`:                          true,
				machine + `.template.spec.volumes[?(@.name=="cloudinitdisk")].cloudInitNoCloud.userData}`: "#cloud-config\nuser: debian\npassword: ${CLOUD_USER_PASSWORD|yaml}\nchpasswd: {expire: false}\n",
			},
		},
		"an SSH key": {
			values: `{systems: [ubuntu2404], login: SSHKey}`,
			object: "VirtualMachineTemplate/ubuntu2404",
			want: map[string]any{
				`{.spec.parameters[?(@.name=="CLOUD_USER_PASSWORD")].name}`:                               nil,
				`{.spec.parameters[?(@.name=="SSH_KEY")].required}`:                                       true,
				machine + `.template.spec.volumes[?(@.name=="cloudinitdisk")].cloudInitNoCloud.userData}`: "#cloud-config\nuser: ubuntu\nssh_authorized_keys:\n- ${SSH_KEY|yaml}\n",
			},
		},
		"storage of disks": {
			values: `{systems: [windows11], storage: {disks: {storageClassName: fast, accessModes: [ReadWriteMany]}}}`,
			object: "VirtualMachineTemplate/windows11",
			want: map[string]any{
				machine + `.dataVolumeTemplates[*].spec.storage.storageClassName}`: []any{"fast", "fast"},
				machine + `.dataVolumeTemplates[*].spec.storage.accessModes[0]}`:   []any{"ReadWriteMany", "ReadWriteMany"},
				// The copy of the ISO image is as large as the image.
				machine + `.dataVolumeTemplates[*].spec.storage.resources.requests.storage}`: "${DISK_SIZE}",
			},
		},
		"answer files for setup": {
			values: `{systems: [windows11], windows: {sysprep: Secret}}`,
			object: "VirtualMachineTemplate/windows11",
			want: map[string]any{
				`{.spec.parameters[?(@.name=="SYSPREP")].required}`:                           true,
				machine + `.template.spec.volumes[?(@.name=="sysprep")].sysprep.secret.name}`: "${SYSPREP}",
				machine + `.template.spec.domain.devices.disks[*].name}`:                      []any{"rootdisk", "installation", "virtio-drivers", "sysprep"},
			},
		},
		"the longest prefix of a mirror": {
			values: `{systems: [fedora, windows11], mirror: {quay.io: registry.example.com/quay, quay.io/containerdisks: registry.example.com/disks}}`,
			object: "GoldenImage/fedora",
			want:   map[string]any{`{.spec.source.registry.url}`: "registry.example.com/disks/fedora"},
		},
		"a mirror of the drivers": {
			values: `{systems: [windows11], mirror: {quay.io: registry.example.com/quay, quay.io/kube: no.example.com}}`,
			object: "VirtualMachineTemplate/windows11",
			want: map[string]any{
				machine + `.template.spec.volumes[?(@.name=="virtio-drivers")].containerDisk.image}`: "registry.example.com/quay/kubevirt/virtio-container-disk:v1.8.2",
			},
		},
		"how a GoldenImage is kept fresh": {
			values: `{systems: [centos-stream9], goldenImages: {schedule: {cron: "30 4 * * 1", window: 1h}, registry: {pullMethod: node, certConfigMap: ca}, importsToKeep: 2, staleAfter: 720h, adopt: IfNotReady, suspended: true}}`,
			object: "GoldenImage/centos-stream9",
			want: map[string]any{`{.spec}`: map[string]any{
				"source":        map[string]any{"registry": map[string]any{"url": "quay.io/containerdisks/centos-stream", "tag": "9", "pullMethod": "node", "certConfigMap": "ca"}},
				"architectures": []any{"amd64"}, "schedule": map[string]any{"cron": "30 4 * * 1", "window": "1h"},
				"storage": map[string]any{"size": "12Gi"}, "importsToKeep": float64(2), "retention": "Keep", "staleAfter": "720h", "adopt": "IfNotReady", "suspended": true,
				"defaults": map[string]any{"instancetype": "u1.medium", "preference": "centos.stream9"},
			}},
		},
		"DataSources of two architectures have no preference if it differs": {
			values: `{systems: [fedora], architectures: [amd64, arm64]}`,
			object: "GoldenImage/fedora",
			want:   map[string]any{`{.spec.defaults}`: map[string]any{"instancetype": "u1.medium"}},
		},
		"a DataSource stands for a claim of its name": {
			values: `{systems: [rhel9], namespace: images}`,
			object: "DataSource/rhel9",
			want: map[string]any{
				`{.spec.source.pvc}`:    map[string]any{"name": "rhel9", "namespace": "images"},
				`{.metadata.namespace}`: "images",
				`{.metadata.labels.instancetype\.kubevirt\.io/default-preference}`: "rhel.9",
			},
		},
		"who may use the templates": {
			values: `{users: {groups: [devs], users: [ada], serviceAccounts: [{namespace: ci, name: robot}]}}`,
			object: "RoleBinding/images-stencil-template-user",
			want: map[string]any{
				`{.roleRef.name}`: "stencil-template-user",
				`{.subjects}`: []any{
					map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"},
					map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"},
					map[string]any{"kind": "ServiceAccount", "namespace": "ci", "name": "robot"},
				},
			},
		},
		"an approval": {
			values: `{systems: [fedora, windows11], architectures: [amd64, arm64], approval: {enabled: true, namespaceSelector: {}, maxDiskSize: 80Gi}}`,
			object: "TemplateApproval/images",
			want: map[string]any{
				`{.spec.namespaceSelector}`:                             map[string]any{},
				`{.spec.templates[*].name}`:                             []any{"fedora", "fedora-arm64", "windows11"},
				`{.spec.parameters[?(@.name=="DISK_SIZE")].expression}`: "quantity(value).compareTo(quantity('80Gi')) <= 0",
				`{.spec.parameters[*].name}`:                            []any{"INSTANCETYPE", "DISK_SIZE", "CLOUD_USER_PASSWORD"},
				`{.spec.overrides}`:                                     []any{"spec.runStrategy"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rendered := catalogue(t, tc.values)
			for path, want := range tc.want {
				if diff := cmp.Diff(want, plain(t, rendered.field(t, tc.object, path))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

// The table, values.yaml and the schema list the same systems.
func TestCatalogueChoosesAllSystemsOfTheTable(t *testing.T) {
	read := func(file string, into any) {
		t.Helper()
		if err := yaml.Unmarshal(testfile.Read(t, filepath.Join(catalogueFolder(t), file)), into); err != nil {
			t.Fatal(err)
		}
	}
	var table map[string]any
	read("files/systems.yaml", &table)
	var values struct{ Systems []string }
	read("values.yaml", &values)
	var schema struct {
		Properties struct {
			Systems struct{ Items struct{ Enum []string } }
		}
	}
	read("values.schema.json", &schema)
	if diff := cmp.Diff(values.Systems, schema.Properties.Systems.Items.Enum); diff != "" {
		t.Errorf("systems of values.schema.json (-values.yaml +schema):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(table)), slices.Sorted(slices.Values(values.Systems))); diff != "" {
		t.Errorf("systems of values.yaml (-table +values.yaml):\n%s", diff)
	}
}

// The table of systems in docs/catalogue.md is generated from that of the chart: go test ./chart -run Catalogue -update
func TestCatalogueDocumentListsEverySystem(t *testing.T) {
	var values struct{ Systems []string }
	var table map[string]struct {
		DisplayName, InstanceType, DiskSize, User string
		Preferences                               map[string]string
		Image                                     *struct {
			URL, Tag string
			Tags     struct{ Pattern string }
		}
	}
	for file, into := range map[string]any{"values.yaml": &values, "files/systems.yaml": &table} {
		if err := yaml.Unmarshal(testfile.Read(t, filepath.Join(catalogueFolder(t), file)), into); err != nil {
			t.Fatal(err)
		}
	}
	text := "| template | system | boot image | user | preference | instance type | disk |\n|---|---|---|---|---|---|---|\n"
	for _, name := range values.Systems {
		system := table[name]
		image := "you bring it"
		switch {
		case system.Image == nil && system.User == "":
			image = "you bring an ISO image"
		case system.Image != nil && system.Image.Tag != "":
			image = "`" + system.Image.URL + ":" + system.Image.Tag + "`"
		case system.Image != nil:
			image = "`" + system.Image.URL + "`, newest tag `" + system.Image.Tags.Pattern + "`"
		}
		preference := "`" + system.Preferences["amd64"] + "`"
		switch arm, exists := system.Preferences["arm64"]; {
		case !exists:
			preference += "; not for arm64"
		case arm != system.Preferences["amd64"]:
			preference += ", `" + arm + "`"
		}
		text += fmt.Sprintf("| `%s` | %s | %s | %s | %s | `%s` | %s |\n", name, system.DisplayName, image, system.User, preference, system.InstanceType, system.DiskSize)
	}
	testfile.Generated{
		Path: filepath.Join(catalogueFolder(t), "..", "..", "docs", "catalogue.md"), Begin: "<!-- systems:begin -->\n", End: "<!-- systems:end -->",
		Update: *update, Command: "go test ./chart -run Catalogue -update",
	}.Compare(t, text)
}

// A release of the catalogue deletes no imported image and no template of others: nothing of it is cluster-scoped but the approval.
func TestCatalogueIsInOneNamespace(t *testing.T) {
	for key, object := range catalogue(t, `{namespace: images, users: {groups: [all]}, approval: {enabled: true, namespaces: [a]}}`) {
		if want := "images"; object.GetNamespace() != want && object.GetKind() != "TemplateApproval" {
			t.Errorf("%s is in namespace %q, want %q", key, object.GetNamespace(), want)
		}
	}
}
