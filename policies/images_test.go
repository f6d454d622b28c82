package policies_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const imageUser = "system:serviceaccount:stencil-system:stencil-images"

// TestImagesThatTheManagerWrites checks each field that the account of golden images must not choose.
func TestImagesThatTheManagerWrites(t *testing.T) {
	const (
		volume  = `{metadata: {name: fedora-1, labels: {stencil.kubevirt.io/golden-image: fedora}}, spec: {source: {http: {url: "https://a"}}, storage: {}}}`
		cron    = `{metadata: {name: fedora, labels: {stencil.kubevirt.io/golden-image: fedora}}, spec: {managedDataSource: fedora, template: {spec: {source: {registry: {url: "docker://a"}}, storage: {}}}}}`
		source  = `{metadata: {name: fedora, annotations: {stencil.kubevirt.io/golden-image: fedora}}, spec: {source: {pvc: {namespace: golden, name: fedora-1}}}}`
		claim   = `{metadata: {name: fedora-1, labels: {cdi.kubevirt.io/dataImportCron: fedora}}}`
		adopted = `{metadata: {name: fedora, annotations: {stencil.kubevirt.io/golden-image: fedora, stencil.kubevirt.io/previous-source: '{"pvc":{"name":"old","namespace":"images"}}'}}, spec: {source: {pvc: {namespace: golden, name: fedora-1}}}}`
		create  = "Stencil's manager creates this for a GoldenImage only, with its name in label or annotation stencil.kubevirt.io/golden-image: create it as another user"
		imports = "Stencil's manager creates DataVolumes and DataImportCrons only that import one image from a server, a registry or a claim of their namespace, and that are filled in no other way: create it as another user"
		leads   = "Stencil's manager lets a DataSource lead to a disk of its namespace only, or to where it led before: change it as another user"
		changes = "Stencil's manager changes DataSources, and annotations of DataImportCrons, and nothing else: change it as another user"
		deletes = "Stencil's manager deletes only what it has made for a GoldenImage, and the disks that a DataImportCron has imported: delete it as another user"
	)
	policy := evaluateMatched(t, "manager-images", nil)
	kinds := map[string]*kindOf{
		"persistentvolumeclaims": {schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims"},
		"volumesnapshots":        {schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}, "volumesnapshots"},
		"datavolumes":            {schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}, "datavolumes"},
		"dataimportcrons":        {schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataImportCron"}, "dataimportcrons"},
		"datasources":            {schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataSource"}, "datasources"},
	}
	change := func(in string, pairs ...string) string { return changed(t, in, pairs...) }
	for kind, cases := range map[string][]written{
		"datavolumes": {
			{name: "a file", after: volume},
			{name: "a file of a bucket, bound at once", after: change(volume, "http:", "s3:", "{name: fedora-1,", `{name: fedora-1, annotations: {cdi.kubevirt.io/storage.bind.immediate.requested: "true"},`)},
			{name: "its deletion", before: volume},
			{name: "without the label", after: change(volume, "stencil.kubevirt.io/golden-image", "a"), want: create},
			{name: "with the label of a DataImportCron only", after: change(volume, "stencil.kubevirt.io/golden-image", "cdi.kubevirt.io/dataImportCron"), want: create},
			{name: "a disk of another namespace", after: change(volume, `http: {url: "https://a"}`, "pvc: {namespace: finance, name: a}"), want: imports},
			{name: "a snapshot", after: change(volume, `http: {url: "https://a"}`, "snapshot: {namespace: golden, name: a}"), want: imports},
			{name: "an upload", after: change(volume, `http: {url: "https://a"}`, "upload: {}"), want: imports},
			{name: "what a DataSource leads to", after: change(volume, `source: {http: {url: "https://a"}}`, "sourceRef: {kind: DataSource, name: a}"), want: imports},
			{name: "a populator", after: change(volume, "storage: {}", "storage: {dataSourceRef: {kind: X, name: a}}"), want: imports},
			{name: "a claim that is described", after: change(volume, "storage: {}", "pvc: {dataSource: {kind: X, name: a}}"), want: imports},
			{name: "a volume of the cluster", after: change(volume, "storage: {}", "storage: {volumeName: a}"), want: imports},
			{name: "another way of filling", after: change(volume, "{name: fedora-1,", "{name: fedora-1, annotations: {cdi.kubevirt.io/storage.import.endpoint: a},"), want: imports},
			{name: "a change", before: volume, after: change(volume, "golden-image: fedora", "golden-image: other"), want: changes},
			{name: "the deletion of another", before: `{metadata: {name: a}}`, want: deletes},
		},
		"dataimportcrons": {
			{name: "of a registry", after: cron},
			{name: "of a claim", after: change(cron, `registry: {url: "docker://a"}`, "pvc: {namespace: golden, name: a}")},
			{name: "another image", before: cron, after: change(cron, "{name: fedora,", "{name: fedora, annotations: {cdi.kubevirt.io/storage.import.sourceDesiredDigest: b},")},
			{name: "of a claim of another namespace", after: change(cron, `registry: {url: "docker://a"}`, "pvc: {namespace: finance, name: a}"), want: imports},
			{name: "without the label", after: change(cron, "stencil.kubevirt.io/golden-image", "a"), want: create},
			{name: "another spec", before: cron, after: change(cron, "docker://a", "docker://b"), want: changes},
			{name: "the deletion of one of CDI's users", before: `{metadata: {name: a, labels: {cdi.kubevirt.io/dataImportCron: a}}}`, want: deletes},
		},
		"datasources": {
			{name: "to its namespace", after: source},
			{name: "without a namespace", after: change(source, "namespace: golden, ", "")},
			{name: "to another image", before: source, after: change(source, "fedora-1", "fedora-2")},
			{name: "its deletion", before: source},
			{name: "one that was taken over, which leads elsewhere", before: change(adopted, "pvc: {namespace: golden", "pvc: {namespace: images"), after: change(adopted, "pvc: {namespace: golden", "pvc: {namespace: images", "fedora, st", "other, st")},
			{name: "back to where it led", before: adopted, after: `{metadata: {name: fedora}, spec: {source: {pvc: {name: old, namespace: images}}}}`},
			{name: "back to another disk there", before: adopted, after: `{metadata: {name: fedora}, spec: {source: {pvc: {name: ledger, namespace: images}}}}`, want: leads},
			{name: "to another namespace", after: change(source, "namespace: golden", "namespace: finance"), want: leads},
			{name: "to a DataSource of another namespace", after: change(source, "pvc: {namespace: golden", "dataSource: {namespace: finance"), want: leads},
			{name: "later to another namespace", before: source, after: change(source, "namespace: golden", "namespace: finance"), want: leads},
			{name: "without the annotation", after: change(source, "stencil.kubevirt.io/golden-image", "a"), want: create},
			{name: "a finalizer", before: source, after: change(source, "{name: fedora,", "{name: fedora, finalizers: [a/b],"), want: changes},
			{name: "the deletion of another", before: `{metadata: {name: a, labels: {stencil.kubevirt.io/golden-image: fedora}}}`, want: deletes},
			{name: "another user writes anything", as: "system:serviceaccount:team-a:my-images", before: source, after: change(source, "namespace: golden", "namespace: finance")},
		},
		"persistentvolumeclaims": {
			{name: "the deletion of an import", before: claim},
			{name: "the deletion of another", before: `{metadata: {name: ledger}}`, want: deletes},
			{name: "a creation", after: `{metadata: {name: a}}`, want: create},
			{name: "a change", before: claim, after: change(claim, "{name: fedora-1,", "{name: fedora-1, annotations: {a: b},"), want: changes},
		},
		"volumesnapshots": {
			{name: "the deletion of an import", before: claim},
			{name: "the deletion of another", before: `{metadata: {name: ledger}}`, want: deletes},
		},
	} {
		for _, tc := range cases {
			if tc.as == "" {
				tc.as = imageUser
			}
			t.Run(kind+": "+tc.name, func(t *testing.T) {
				r := tc.request(t, kinds[kind], kind)
				r.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "golden"}}
				if got := policy.conditions.holds(t, r); !got {
					t.Error("its conditions do not match")
				}
				if got, _ := policy.policy.decide(t, r); got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
			})
		}
	}
}
