package policies_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const transferUser = "system:serviceaccount:stencil-system:stencil-transfers"

// permits authorizes what is listed, as VERB RESOURCE NAMESPACE/NAME.
type permits []string

func (p permits) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	wanted := strings.TrimSpace(a.GetVerb() + " " + resource + " " + a.GetNamespace() + "/" + a.GetName())
	for _, each := range p {
		if each == wanted {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestRightsOfImports(t *testing.T) {
	const own, disks, secret, certificates = "create virtualmachinetemplates shop/", "create datavolumes shop/", "get secrets shop/web", "get configmaps shop/ca"
	policy := evaluate(t, "template-import", nil)
	for name, tc := range map[string]struct {
		source string
		may    permits
		want   string
	}{
		"all that is needed":        {`{pvc: {name: a, path: b}}`, permits{own, disks}, ""},
		"with a Secret":             {`{http: {url: "https://a", secretRef: {name: web}, certificatesRef: {name: ca}}}`, permits{own, disks, secret, certificates}, ""},
		"with that of a registry":   {`{registry: {image: a, secretRef: {name: web}}}`, permits{own, disks, secret}, ""},
		"without templates":         {`{pvc: {name: a, path: b}}`, permits{disks}, "User is not allowed to create VirtualMachineTemplates in namespace shop: ask an administrator of the namespace for verb create on virtualmachinetemplates.template.kubevirt.io"},
		"without disks":             {`{pvc: {name: a, path: b}}`, permits{own}, "User is not allowed to create DataVolumes in namespace shop, and an import creates the disks of the template there: ask an administrator of the namespace for verb create on datavolumes.cdi.kubevirt.io"},
		"without the Secret":        {`{http: {url: "https://a", secretRef: {name: web}}}`, permits{own, disks}, "User is not allowed to read Secret shop/web, whose content the import sends to the source: ask an administrator of the namespace for verb get on it"},
		"without that of registry":  {`{registry: {image: a, secretRef: {name: web}}}`, permits{own, disks}, "User is not allowed to read Secret shop/web, whose content the import sends to the source: ask an administrator of the namespace for verb get on it"},
		"without the certificates":  {`{registry: {image: a, certificatesRef: {name: ca}}}`, permits{own, disks}, "User is not allowed to read ConfigMap shop/ca: ask an administrator of the namespace for verb get on it"},
		"the right to other Secret": {`{http: {url: "https://a", secretRef: {name: web}}}`, permits{own, disks, "get secrets shop/other"}, "User is not allowed to read Secret shop/web, whose content the import sends to the source: ask an administrator of the namespace for verb get on it"},
	} {
		t.Run(name, func(t *testing.T) {
			kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplateImport"}, "virtualmachinetemplateimports"}
			r := written{as: "ada", after: "{spec: {source: " + tc.source + "}}"}.request(t, kind, kind.resource)
			r.namespace, r.authorizer = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, tc.may
			if got, _ := policy.decide(t, r); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestRightsOfEachSource denies each source that names a Secret or a ConfigMap, also one that is added to the API later.
func TestRightsOfEachSource(t *testing.T) {
	policy := evaluate(t, "template-import", nil)
	kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplateImport"}, "virtualmachinetemplateimports"}
	references := 0
	for source := range reflect.TypeFor[v1beta1.ImportSource]().Fields() {
		for field := range source.Type.Elem().Fields() {
			if !strings.HasSuffix(field.Name, "Ref") {
				continue
			}
			references++
			key := func(f reflect.StructField) string { name, _, _ := strings.Cut(f.Tag.Get("json"), ","); return name }
			t.Run(key(source)+"."+key(field), func(t *testing.T) {
				r := written{as: "ada", after: "{spec: {source: {" + key(source) + ": {" + key(field) + ": {name: web}}}}}"}.request(t, kind, kind.resource)
				r.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
				r.authorizer = permits{"create virtualmachinetemplates shop/", "create datavolumes shop/"}
				if got, _ := policy.decide(t, r); !strings.HasPrefix(got, "User is not allowed to read ") || !strings.Contains(got, " shop/web") {
					t.Errorf("got %q", got)
				}
			})
		}
	}
	if references < 6 {
		t.Errorf("%d references were found", references)
	}
}

func TestTheOrderOfAnImportDoesNotChange(t *testing.T) {
	policy := evaluate(t, "template-import", nil)
	kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplateImport"}, "virtualmachinetemplateimports"}
	const before = `{spec: {source: {http: {url: "https://a", secretRef: {name: web}}}, checksum: a}}`
	for name, tc := range map[string]struct{ after, want string }{
		"the decisions of the user": {`{spec: {source: {http: {url: "https://a", secretRef: {name: web}}}, checksum: a, approvedPlan: b, eulaAccepted: true}}`, ""},
		"the source":                {`{spec: {source: {http: {url: "https://a", secretRef: {name: other}}}, checksum: a}}`, "spec.source cannot be changed, only spec.approvedPlan and spec.eulaAccepted can: create another import"},
		"what is removed and added": {`{spec: {source: {http: {url: "https://a", secretRef: {name: web}}}, timeout: 1h}}`, "spec.checksum, spec.timeout cannot be changed, only spec.approvedPlan and spec.eulaAccepted can: create another import"},
	} {
		t.Run(name, func(t *testing.T) {
			written{as: "ada", before: before, after: tc.after, want: tc.want}.run(t, policy, kind, kind.resource)
		})
	}
}

// TestAllFieldsOfAnImportAreFixed finds fields that were added to the API and not to the policy.
func TestAllFieldsOfAnImportAreFixed(t *testing.T) {
	policy := evaluate(t, "template-import", nil)
	kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplateImport"}, "virtualmachinetemplateimports"}
	for field := range reflect.TypeFor[v1beta1.VirtualMachineTemplateImportSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want := "spec." + name + " cannot be changed, only spec.approvedPlan and spec.eulaAccepted can: create another import"
		if name == "approvedPlan" || name == "eulaAccepted" {
			want = ""
		}
		t.Run(name, func(t *testing.T) {
			written{as: "ada", before: "{spec: {" + name + ": before}}", after: "{spec: {" + name + ": after}}", want: want}.run(t, policy, kind, kind.resource)
		})
	}
}

func TestRightsOfExports(t *testing.T) {
	const own, disks, golden = "export virtualmachinetemplates shop/web", "create datavolumes shop/", "create datavolumes/source golden/"
	policy := evaluate(t, "template-export", nil)
	for name, tc := range map[string]struct {
		more string
		may  permits
		want string
	}{
		"all that is needed":        {"", permits{own, disks}, ""},
		"from other namespaces":     {", sourceNamespaces: [golden]", permits{own, disks, golden}, ""},
		"without the verb":          {"", permits{disks, "use virtualmachinetemplates shop/web", "export virtualmachinetemplates shop/other"}, "User is not allowed to export VirtualMachineTemplate shop/web: ask an administrator of the namespace for verb export on it"},
		"without disks":             {"", permits{own}, "User is not allowed to create DataVolumes in namespace shop, and an export copies the disks of the template there: ask an administrator of the namespace for verb create on datavolumes.cdi.kubevirt.io"},
		"to a registry":             {`, target: {registry: {image: a, secretRef: {name: web}, certificatesRef: {name: ca}}}`, permits{own, disks, "get secrets shop/web", "get configmaps shop/ca"}, ""},
		"without its Secret":        {`, target: {registry: {image: a, secretRef: {name: web}}}`, permits{own, disks, "get secrets shop/other"}, "User is not allowed to read Secret shop/web, whose content the export sends to the registry: ask an administrator of the namespace for verb get on it"},
		"without its certificates":  {`, target: {registry: {image: a, certificatesRef: {name: ca}}}`, permits{own, disks}, "User is not allowed to read ConfigMap shop/ca: ask an administrator of the namespace for verb get on it"},
		"from namespaces of others": {", sourceNamespaces: [golden, a, b, c]", permits{own, disks, golden, "create datavolumes/source b/"}, "User is not allowed to copy volumes of namespace a, which spec.sourceNamespaces names: ask an administrator of that namespace for verb create on datavolumes/source.cdi.kubevirt.io"},
	} {
		t.Run(name, func(t *testing.T) {
			kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplateExport"}, "virtualmachinetemplateexports"}
			r := written{as: "ada", after: "{spec: {templateRef: {name: web}" + tc.more + "}}"}.request(t, kind, kind.resource)
			r.namespace, r.authorizer = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, tc.may
			if got, _ := policy.decide(t, r); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestTransfersThatTheManagerWrites checks each field that the account of transfers must not choose.
func TestTransfersThatTheManagerWrites(t *testing.T) {
	const (
		owned = `labels: {template.kubevirt.io/transfer: u-1}, ownerReferences: [{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplateImport, name: web, uid: u-1}]`
		job   = `{metadata: {name: transfer-u-1, ` + owned + `}, spec: {template: {spec: {automountServiceAccountToken: false, securityContext: {runAsNonRoot: true},
			volumes: [{name: a, secret: {secretName: s}}, {name: b, persistentVolumeClaim: {claimName: c}}],
			containers: [{name: mover, image: ghcr.io/vmstencil/stencil-mover, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}}}`
		claim   = `{metadata: {name: root, ` + owned + `}, spec: {accessModes: [ReadWriteOnce]}}`
		ingress = `{metadata: {name: export-u-1, ` + owned + `}, spec: {rules: [{host: export-u-1.exports.example.com, http: {paths: [{backend: {service: {name: export-u-1, port: {name: https}}}}]}}]}}`
		leads   = "Stencil's manager creates Ingresses only that lead from a host name below transfers.ingress.domain to the Service of an import or export: create it as another user"
		create  = "Stencil's manager creates this for a VirtualMachineTemplateImport, VirtualMachineTemplateExport or VirtualMachineTemplateRequest only, with its UID in label template.kubevirt.io/transfer and with no other owner: create it as another user"
		named   = "Stencil's manager creates this with the UID of an import, export or request in its name only: create it as another user"
		plain   = "Stencil's manager creates Jobs only that run the image of stencil-mover, without root, without a token and without access to the node: create it as another user"
		copies  = "Stencil's manager creates DataVolumes only that copy one claim or VolumeSnapshot, in spec.source.pvc or spec.source.snapshot with its namespace, and that are filled in no other way: create it as another user"
		from    = "source: {pvc: {namespace: golden, name: a}}"
		deletes = "Stencil's manager deletes only what it has created for an import, export or request that still owns it: delete it as another user"
		changes = "Stencil's manager changes only ownerReferences of the claims and templates that it has created: change it as another user"
	)
	policy := evaluate(t, "manager-transfers", map[string]string{"transferDomain": "'exports.example.com'"})
	kinds := map[string]*kindOf{
		"jobs":                   {schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "jobs"},
		"persistentvolumeclaims": {schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims"},
		"secrets":                {schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets"},
		"ingresses":              {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, "ingresses"},
		"datavolumes":            {schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}, "datavolumes"},
	}
	change := func(in string, pairs ...string) string { return changed(t, in, pairs...) }
	for kind, cases := range map[string][]written{
		"jobs": {
			{name: "a mover", after: job},
			{name: "its deletion", before: job},
			{name: "a mover that examines a capture", after: change(job, "VirtualMachineTemplateImport", "VirtualMachineTemplateRequest")},
			{name: "another image", after: change(job, "ghcr.io/vmstencil/stencil-mover", "evil"), want: plain},
			{name: "a command", after: change(job, "name: mover,", "name: mover, command: [sh],"), want: plain},
			{name: "a second container", after: change(job, "containers: [", "containers: [{name: x, image: evil}, "), want: plain},
			{name: "an init container", after: change(job, "volumes:", "initContainers: [{name: x, image: evil}], volumes:"), want: plain},
			{name: "a token", after: change(job, "automountServiceAccountToken: false, ", ""), want: plain},
			{name: "a service account", after: change(job, "volumes:", "serviceAccountName: admin, volumes:"), want: plain},
			{name: "the network of the node", after: change(job, "volumes:", "hostNetwork: true, volumes:"), want: plain},
			{name: "a folder of the node", after: change(job, "secret: {secretName: s}", "hostPath: {path: /}"), want: plain},
			{name: "a projected token", after: change(job, "secret: {secretName: s}", "projected: {sources: [{serviceAccountToken: {path: t}}]}"), want: plain},
			{name: "root", after: change(job, "runAsNonRoot: true", "runAsUser: 0"), want: plain},
			{name: "a container as root", after: change(job, "allowPrivilegeEscalation: false,", "allowPrivilegeEscalation: false, runAsNonRoot: false,"), want: plain},
			{name: "a privileged container", after: change(job, "allowPrivilegeEscalation: false,", "allowPrivilegeEscalation: false, privileged: true,"), want: plain},
			{name: "a capability", after: change(job, "drop: [ALL]", "add: [SYS_ADMIN]"), want: plain},
			{name: "another name", after: change(job, "transfer-u-1", "backup"), want: named},
			{name: "without an owner", after: change(job, "ownerReferences", "x"), want: create},
			{name: "a change", before: job, after: change(job, "drop: [ALL]", "drop: [KILL]"), want: changes},
		},
		"persistentvolumeclaims": {
			{name: "a disk", after: claim},
			{name: "another owner later", before: claim, after: change(claim, "uid: u-1", "uid: u-2", "VirtualMachineTemplateImport", "VirtualMachineTemplate")},
			{name: "its deletion", before: claim},
			{name: "the deletion after it was handed over", before: change(claim, "uid: u-1}", "uid: u-2}", "kind: VirtualMachineTemplateImport", "kind: VirtualMachineTemplate"), want: deletes},
			{name: "the deletion of another claim", before: `{metadata: {name: root}}`, want: deletes},
			{name: "another UID than that of the owner", after: change(claim, "uid: u-1", "uid: u-2"), want: create},
			{name: "two owners", after: change(claim, "ownerReferences: [", "ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u-1}, "), want: create},
			{name: "an owner of another kind", after: change(claim, "VirtualMachineTemplateImport", "VirtualMachineTemplate"), want: create},
			{name: "a label", before: claim, after: change(claim, "u-1},", "u-1, a: b},"), want: changes},
			{name: "the size", before: claim, after: change(claim, "accessModes: [ReadWriteOnce]", "accessModes: [ReadWriteMany]"), want: changes},
			{name: "a change of another claim", before: `{metadata: {name: root}}`, after: `{metadata: {name: root, ownerReferences: []}}`, want: changes},
			{name: "another user writes anything", as: "system:serviceaccount:kube-system:pvc-protection-controller", before: claim, after: `{metadata: {name: root}}`},
		},
		"secrets": {
			{name: "a task", after: `{metadata: {name: transfer-u-1-inspect, ` + owned + `}, data: {a: b}}`},
			{name: "another name", after: `{metadata: {name: default-token, ` + owned + `}, data: {a: b}}`, want: named},
			{name: "a change", before: `{metadata: {name: transfer-u-1, ` + owned + `}}`, after: `{metadata: {name: transfer-u-1, ` + owned + `}, data: {a: b}}`, want: changes},
			{name: "the deletion of another", before: `{metadata: {name: s}}`, want: deletes},
		},
		"ingresses": {
			{name: "to a mover", after: ingress},
			{name: "its deletion", before: ingress},
			{name: "from another host", after: change(ingress, "u-1.exports.example.com", "shop.example.com"), want: leads},
			{name: "from a similar host", after: change(ingress, "u-1.exports.example.com", "fakeexports.example.com"), want: leads},
			{name: "from all hosts", after: change(ingress, "host: export-u-1.exports.example.com, ", ""), want: leads},
			{name: "to another Service", after: change(ingress, "service: {name: export-u-1", "service: {name: shop"), want: leads},
			{name: "to another object", after: change(ingress, "service: {name: export-u-1, port: {name: https}}", "resource: {kind: Bucket, name: a}"), want: leads},
			{name: "from all other hosts", after: change(ingress, "spec: {", "spec: {defaultBackend: {service: {name: shop}}, "), want: leads},
			{name: "another name", after: change(ingress, "{name: export-u-1, labels", "{name: shop, labels"), want: named},
			{name: "a change", before: ingress, after: change(ingress, "https", "http"), want: changes},
		},
		"datavolumes": {
			{name: "a copy of a claim", after: `{metadata: {name: a, ` + owned + `}, spec: {` + from + `}}`},
			{name: "a copy of a snapshot", after: `{metadata: {name: a, ` + owned + `}, spec: {source: {snapshot: {namespace: shop, name: a}}}}`},
			{name: "bound at once", after: `{metadata: {name: a, annotations: {cdi.kubevirt.io/storage.bind.immediate.requested: "", x: y}, ` + owned + `}, spec: {` + from + `, storage: {}}}`},
			{name: "its deletion", before: `{metadata: {name: a, ` + owned + `}, spec: {sourceRef: {kind: DataSource, name: a}}}`},
			{name: "what a DataSource leads to", after: `{metadata: {name: a, ` + owned + `}, spec: {sourceRef: {kind: DataSource, name: a}}}`, want: copies},
			{name: "a claim and what a DataSource leads to", after: `{metadata: {name: a, ` + owned + `}, spec: {` + from + `, sourceRef: {kind: DataSource, name: a}}}`, want: copies},
			{name: "a claim without its namespace", after: `{metadata: {name: a, ` + owned + `}, spec: {source: {pvc: {name: a}}}}`, want: copies},
			{name: "a claim and a download", after: `{metadata: {name: a, ` + owned + `}, spec: {source: {pvc: {namespace: golden, name: a}, http: {url: "https://a"}}}}`, want: copies},
			{name: "a download", after: `{metadata: {name: a, ` + owned + `}, spec: {source: {http: {url: "https://a"}}}}`, want: copies},
			{name: "a populator", after: `{metadata: {name: a, ` + owned + `}, spec: {` + from + `, storage: {dataSourceRef: {kind: X, name: a}}}}`, want: copies},
			{name: "a source of the claim", after: `{metadata: {name: a, ` + owned + `}, spec: {` + from + `, pvc: {dataSource: {kind: X, name: a}}}}`, want: copies},
			{name: "a volume of the cluster", after: `{metadata: {name: a, ` + owned + `}, spec: {` + from + `, storage: {volumeName: a}}}`, want: copies},
			{name: "nothing", after: `{metadata: {name: a, ` + owned + `}, spec: {}}`, want: copies},
			{name: "another way of filling", after: `{metadata: {name: a, annotations: {cdi.kubevirt.io/storage.import.endpoint: x}, ` + owned + `}, spec: {` + from + `}}`, want: copies},
			{name: "without an owner", after: `{metadata: {name: a}, spec: {` + from + `}}`, want: create},
			{name: "a change", before: `{metadata: {name: a, ` + owned + `}, spec: {` + from + `}}`, after: `{metadata: {name: a, ` + owned + `}, spec: {source: {pvc: {namespace: other, name: a}}}}`, want: changes},
		},
	} {
		for _, tc := range cases {
			if tc.as == "" {
				tc.as = transferUser
			}
			t.Run(kind+": "+tc.name, func(t *testing.T) { tc.run(t, policy, kinds[kind], kind) })
		}
	}
	written{as: transferUser, after: ingress, want: leads}.run(t, evaluate(t, "manager-transfers", nil), kinds["ingresses"], "ingresses")
	off := evaluate(t, "manager-transfers", map[string]string{"transferUser": "''"})
	written{as: transferUser, after: `{metadata: {name: root}}`}.run(t, off, kinds["persistentvolumeclaims"], "persistentvolumeclaims")
}
