package readiness_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// objectRequests is an audit policy that records the content of all requests that could contain an object of a template.
const objectRequests = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
	{"level": "RequestResponse", "resources": [{"group": "", "resources": ["secrets", "services", "configmaps", "pods", "events"]}, {"group": "events.k8s.io"}, {"group": "kubevirt.io"}, {"group": "cdi.kubevirt.io"}]},
	{"level": "None"}]}`

const (
	pendingAt = `{.metadata.annotations.objects\.template\.kubevirt\.io/pending}`
	heldAt    = `{.spec.template.metadata.annotations.objects\.template\.kubevirt\.io/hold}`
)

// withObjects is a template whose VM takes its cloud-init data from a Secret of the template, and has a Service.
func withObjects(modifiers ...gen.Modifier) []gen.Modifier {
	return append([]gen.Modifier{
		gen.Declares("PASSWORD", "{generate: expression, from: '[a-zA-Z0-9]{24}', sensitive: true}"),
		gen.Spec(`objects:
- {apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-login"}, stringData: {userdata: "#cloud-config\npassword: ${PASSWORD}"}}
- {apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {selector: {vm.kubevirt.io/name: "${NAME}"}, ports: [{port: 22}]}}`),
	}, modifiers...)
}

// exists waits until an object exists, and returns a field of it.
func (l *loan) exists(t *testing.T, kind, name, path string) (value string) {
	t.Helper()
	l.eventually(t, kind+" "+name+" exists", func() error {
		got := l.kubectl(t, nil, "", "get", kind, name, "-n", l.team, "-o", "jsonpath="+path)
		if got.Code != 0 {
			return errors.New(got.Stderr + l.kubectl(t, nil, "", "get", "vm,vmi,secrets,services,events", "-n", l.team).Stdout)
		}
		value = got.Stdout
		return nil
	})
	return value
}

// released waits until a VM is not held back any more.
func (l *loan) released(t *testing.T, vm string) {
	t.Helper()
	l.eventually(t, "VM "+vm+" is not held back", func() error {
		got := l.kubectl(t, nil, "", "get", "vm", vm, "-n", l.team, "-o", "jsonpath="+pendingAt+heldAt)
		if got.Code != 0 || got.Stdout != "" {
			return errors.New(got.Stdout + got.Stderr + l.kubectl(t, nil, "", "get", "vm,secrets,services,events", "-n", l.team).Stdout)
		}
		return nil
	})
}

// reports waits for a warning about a VM.
func (l *loan) reports(t *testing.T, vm string, want ...string) {
	t.Helper()
	l.eventually(t, "an event of VM "+vm+" says why", func() error {
		got := l.kubectl(t, l.user, "", "get", "events", "-n", l.team, "--field-selector=type=Warning,involvedObject.name="+vm, "-o", "jsonpath={.items[*].message}")
		for _, text := range want {
			if !strings.Contains(got.Stdout, text) {
				return errors.New(got.Stdout + got.Stderr)
			}
		}
		return nil
	})
}

// nothingLeft waits until no VM, no disk and no object is left in the user's namespace.
func (l *loan) nothingLeft(t *testing.T) {
	t.Helper()
	l.eventually(t, "nothing is left in the namespace", func() error {
		if got := l.must(t, "", "get", "vm,vmi,dv,pvc,pods,secrets,services", "-n", l.team, "-o", "name"); got != "" {
			return errors.New(got)
		}
		return nil
	})
}

// TestFromOneManifestToAVMThatStarts creates a VM with its disk and its objects by one manifest of eight lines, as a user with the role edit in the
// namespace, who may use templates of another one and has no other permission.
func TestFromOneManifestToAVMThatStarts(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.publish(t, "complete", fromDataSource(l.golden, "fedora"), withObjects(gen.Renders("${NAME}", gen.SmallSpec(),
		gen.DataVolumeDisk("root", "${NAME}-root", fromDataSource(l.golden, "fedora")), gen.CloudInitSecret("cloudinit", "${NAME}-login")))...)
	manifest := `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
  annotations:
    template.kubevirt.io/template-ref: ` + l.golden + `/complete
spec:
  runStrategy: Always
`
	l.eventually(t, "the VM is created", func() error {
		if got := l.kubectl(t, l.user, manifest, "create", "-n", l.team, "-f", "-"); got.Code != 0 {
			return errors.New(got.Stderr)
		}
		return nil
	})
	uid := l.exists(t, "vm", "web", "{.metadata.uid}")
	for kind, name := range map[string]string{"secret": "web-login", "service": "web"} {
		owner := l.exists(t, kind, name, `{.metadata.ownerReferences[*].kind} {.metadata.ownerReferences[*].uid} {.metadata.labels.objects\.template\.kubevirt\.io/owner}`)
		if want := "VirtualMachine " + uid + " " + uid; owner != want {
			t.Errorf("the owner of %s %s is %q, want %q", kind, name, owner, want)
		}
	}
	l.released(t, "web")
	l.filled(t, l.team, "web-root")
	l.eventually(t, "the pod of the VM exists", func() error {
		if got := l.kubectl(t, l.user, "", "get", "pods", "-n", l.team, "-l", "vm.kubevirt.io/name=web", "-o", "name"); got.Stdout == "" {
			return errors.New(got.Stderr + l.kubectl(t, nil, "", "get", "vm,vmi,dv,pvc,events", "-n", l.team).Stdout)
		}
		return nil
	})

	data, err := base64.StdEncoding.DecodeString(l.exists(t, "secret", "web-login", "{.data.userdata}"))
	if err != nil {
		t.Fatal(err)
	}
	password := strings.TrimPrefix(string(data), "#cloud-config\npassword: ")
	const length = 24
	if len(password) != length {
		t.Fatalf("the Secret contains %q", data)
	}
	l.onlyInSecrets(t, password, base64.StdEncoding.EncodeToString(data))

	harness.Must(t, s.Plane, l.user, "", "delete", "vm", "web", "-n", l.team)
	l.nothingLeft(t)
}

// TestUserDataStandInASecretOnly creates VMs from a template with secretize, as a user with the role edit, in an ungoverned and in a governed namespace.
func TestUserDataStandInASecretOnly(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.apply(t, l.golden, gen.Manifest(gen.Template("secretized", gen.Declares("NAME"), gen.Declares("PASSWORD", "{generate: expression, from: '[a-zA-Z0-9]{24}', sensitive: true}"),
		gen.Spec("secretize: true"), gen.Renders("vm-${NAME}", gen.SmallSpec(), gen.CloudInit("cloudinit", "#cloud-config\npassword: ${PASSWORD|yaml}\n")))))
	const reference = "{.spec.template.spec.volumes[?(@.name=='cloudinit')].cloudInitNoCloud}"
	// inSecret checks the Secret of a VM, and returns its password and its user data.
	inSecret := func(t *testing.T, vm string) []string {
		t.Helper()
		l.released(t, vm)
		if got, want := l.exists(t, "vm", vm, reference), `{"secretRef":{"name":"`+vm+`-cloudinit"}}`; got != want {
			t.Errorf("the volume of %s is %s, want %s", vm, got, want)
		}
		if owner := l.exists(t, "secret", vm+"-cloudinit", "{.metadata.ownerReferences[*].uid}"); owner != l.exists(t, "vm", vm, "{.metadata.uid}") {
			t.Errorf("the Secret of %s belongs to %s", vm, owner)
		}
		encoded := l.exists(t, "secret", vm+"-cloudinit", "{.data.userdata}")
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		password, found := strings.CutPrefix(string(data), "#cloud-config\npassword: \"")
		const length = 24
		if password = strings.TrimSuffix(password, "\"\n"); !found || len(password) != length {
			t.Fatalf("the Secret of %s contains %q", vm, data)
		}
		return []string{password, encoded}
	}
	denied := func(t *testing.T, got controlplane.Result, want string) {
		t.Helper()
		if got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("exit code %d: %s%s\nwant %s", got.Code, got.Stdout, got.Stderr, want)
		}
	}

	// One name fits the template's, the other does not, and the third is generated.
	l.create(t, "vm-web", "secretized", gen.RunStrategy("Always"))
	l.create(t, "other", "secretized")
	made := harness.Must(t, s.Plane, l.user, gen.Manifest(gen.VM("", gen.GenerateName("many-"), gen.FromTemplate(l.golden+"/secretized"))), "create", "-n", l.team, "-o", "name", "-f", "-").Stdout
	generated := strings.TrimSpace(made[strings.Index(made, "/")+1:])
	var values []string
	for _, vm := range []string{"vm-web", "other", generated} {
		values = append(values, inSecret(t, vm)...)
	}
	l.eventually(t, "the pod of the VM exists", func() error {
		if got := l.kubectl(t, l.user, "", "get", "pods", "-n", l.team, "-l", "vm.kubevirt.io/name=vm-web", "-o", "name"); got.Stdout == "" {
			return errors.New(got.Stderr + l.kubectl(t, nil, "", "get", "vm,vmi,events", "-n", l.team).Stdout)
		}
		return nil
	})
	inline := gen.Manifest(gen.VM("inline", gen.FromTemplate(l.golden+"/secretized"), gen.Spec("template: {spec: {volumes: [{name: cloudinit, cloudInitNoCloud: {userData: '#cloud-config'}}]}}")))
	denied(t, l.kubectl(t, l.user, inline, "create", "-n", l.team, "-f", "-"), "spec.template.spec.volumes[0].cloudInitNoCloud.userData: Forbidden: the template has it in a Secret, and KubeVirt takes only one of both")

	t.Run("a governed namespace", func(t *testing.T) {
		s.must(t, gen.Manifest(gen.Approval(l.team, gen.Governs(l.team), gen.Approves(l.golden+"/secretized"), gen.Overrides("spec.runStrategy"))), "apply", "-f", "-")
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)
		l.create(t, "governed", "secretized")
		values = append(values, inSecret(t, "governed")...)
		denied(t, l.kubectl(t, l.user, gen.Manifest(gen.VM("mine", gen.FromTemplate(l.golden+"/secretized"),
			gen.Spec("template: {spec: {volumes: [{name: cloudinit, cloudInitNoCloud: {secretRef: {name: vm-web-cloudinit}}}]}}"))), "create", "-n", l.team, "-f", "-"),
			"spec.template.spec.volumes[name=cloudinit].cloudInitNoCloud.secretRef.name")
		patch := func(patch string) controlplane.Result {
			return l.kubectl(t, l.user, "", "patch", "vm", "governed", "-n", l.team, "--type=json", "-p", patch)
		}
		if got := patch(`[{"op": "replace", "path": "/spec/runStrategy", "value": "Always"}]`); got.Code != 0 {
			t.Errorf("an approved change: %s", got.Stderr)
		}
		denied(t, patch(`[{"op": "replace", "path": "/spec/template/spec/volumes/0/cloudInitNoCloud/secretRef/name", "value": "vm-web-cloudinit"}]`), "spec.template.spec.volumes[name=cloudinit].cloudInitNoCloud.secretRef.name")
		l.eventually(t, "the audit finds all VMs approved", func() error {
			got := l.kubectl(t, nil, "", "get", "templateapproval", l.team, "-o", "jsonpath={.status.conforming} {.status.violating}")
			if want := fmt.Sprintf("%d 0", len(values)/2); got.Stdout != want {
				return fmt.Errorf("%s%s, want %s", got.Stderr, l.kubectl(t, nil, "", "get", "templateapproval", l.team, "-o", "yaml").Stdout, want)
			}
			return nil
		})
		s.must(t, "", "delete", "templateapproval", l.team)
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=false`)
	})
	l.onlyInSecrets(t, values...)
}

// onlyInSecrets checks that values are in no request and no stored object but Secrets: VirtualMachines, instances, pods, events and managed fields, of
// now and of before.
func (l *loan) onlyInSecrets(t *testing.T, values ...string) {
	t.Helper()
	events, err := l.Plane.AuditEvents()
	if err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for _, event := range events {
		raw, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(values, func(value string) bool { return bytes.Contains(raw, []byte(value)) }) {
			continue
		}
		recorded++
		if event.ObjectRef == nil || event.ObjectRef.Resource != "secrets" {
			t.Errorf("a request contains the value: %s %s", event.Verb, event.RequestURI)
		}
	}
	if recorded == 0 {
		t.Error("the audit log has no request with the value, so this test tests nothing")
	}
	stored := 0
	err = filepath.WalkDir(l.Plane.EtcdData(), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, value := range values {
			for start := 0; ; {
				i := bytes.Index(raw[start:], []byte(value))
				if i < 0 {
					break
				}
				start += i + len(value)
				stored++
				// A record of etcd begins with its key.
				before := raw[:start]
				if key := before[bytes.LastIndex(before, []byte("/registry/")):]; !bytes.HasPrefix(key, []byte("/registry/secrets/")) {
					t.Errorf("etcd stores the value in %.100q", key)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if stored == 0 {
		t.Error("etcd has not stored the value, so this test tests nothing")
	}
}

// barrier denies the creation of objects of VMs with this prefix to all but the user, until lift is called: between the creation of a VM and that of
// its objects are milliseconds. What is tried in dry runs is not denied.
func (l *loan) barrier(t *testing.T, prefix string) (lift func()) {
	t.Helper()
	name := "barrier-" + prefix
	manifest := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets, services]}]}
  matchConditions: [{name: prefix, expression: "object.metadata.name.startsWith('` + prefix + `') && !request.?dryRun.orValue(false) && request.userInfo.username != '` + l.user.Name + `'"}]
  validations: [{expression: "false", message: not now}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `, validationActions: [Deny]}
`
	l.must(t, manifest, "apply", "-f", "-")
	lift = func() { l.must(t, manifest, "delete", "--ignore-not-found", "-f", "-") }
	t.Cleanup(lift)
	l.eventually(t, "the policy is in effect", func() error {
		if got := l.kubectl(t, nil, "", "create", "secret", "generic", prefix+"-probe", "-n", l.team); got.Code == 0 {
			l.must(t, "", "delete", "secret", prefix+"-probe", "-n", l.team)
			return errors.New("a Secret was created")
		}
		return nil
	})
	return lift
}

// TestNobodyGainsByObjects attacks the creation of objects as a user with the role edit, and as one with less.
func TestNobodyGainsByObjects(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	vm := gen.Renders("${NAME}", gen.SmallSpec(), gen.CloudInitSecret("cloudinit", "${NAME}-login"))
	publish := func(name string, modifiers ...gen.Modifier) {
		l.apply(t, l.golden, gen.Manifest(gen.Template(name, append([]gen.Modifier{gen.Declares("NAME"), vm}, modifiers...)...)))
	}
	publish("complete", withObjects()...)
	publish("plain")
	publish("account", gen.Spec(`objects: [{apiVersion: v1, kind: ServiceAccount, metadata: {name: "${NAME}"}}]`))
	publish("space", gen.Spec(`objects: [{apiVersion: v1, kind: Namespace, metadata: {name: "${NAME}"}}]`))
	publish("unserved", gen.Spec(`objects: [{apiVersion: example.org/v1, kind: Thing, metadata: {name: "${NAME}"}}]`))
	publish("invalid", gen.Declares("PASSWORD", "{value: s3cretvalue}"), gen.Spec(`objects: [{apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {clusterIP: "${PASSWORD}", ports: [{port: 22}]}}]`))
	create := func(t *testing.T, name, template string, modifiers ...gen.Modifier) controlplane.Result {
		t.Helper()
		return l.kubectl(t, l.user, gen.Manifest(gen.VM(name, append([]gen.Modifier{gen.FromTemplate(l.golden + "/" + template), gen.RunStrategy("Always")}, modifiers...)...)), "create", "-n", l.team, "-f", "-")
	}
	l.create(t, "control", "complete")
	l.released(t, "control")

	denied := func(t *testing.T, got controlplane.Result, want string) {
		t.Helper()
		if got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("exit code %d: %s%s\nwant %s", got.Code, got.Stdout, got.Stderr, want)
		}
	}
	t.Run("kinds", func(t *testing.T) {
		at := "template[" + l.golden + "/%s].spec.objects[0]: Forbidden: "
		for template, want := range map[string]string{
			"account":  at + "ServiceAccount ${NAME}: templates create no serviceaccounts in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources",
			"space":    at + "Namespace ${NAME}: kind Namespace has no namespace, and a VirtualMachine owns objects of its namespace only",
			"unserved": at + "Thing ${NAME}: this cluster does not serve kind Thing in apiVersion example.org/v1",
		} {
			denied(t, create(t, "kind-"+template, template), fmt.Sprintf(want, template))
		}
	})
	t.Run("a user who may not create Secrets", func(t *testing.T) {
		limited, err := gen.User(t.Context(), s.Plane, "limited-"+l.team, gen.UsesTemplates(l.golden), gen.Permits(l.team,
			rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create"}}))
		if err != nil {
			t.Fatal(err)
		}
		manifest := gen.Manifest(gen.VM("limited", gen.FromTemplate(l.golden+"/complete")))
		for _, dryRun := range []string{"none", "server"} {
			denied(t, l.kubectl(t, limited, manifest, "create", "--dry-run="+dryRun, "-n", l.team, "-f", "-"), fmt.Sprintf(
				`template[%s/complete].spec.objects[0]: Forbidden: Secret ${NAME}-login: user %q may not create secrets in namespace %q; ask for verb "create" on secrets there`, l.golden, limited.Name, l.team))
		}
	})
	t.Run("a dry run", func(t *testing.T) {
		harness.Must(t, s.Plane, l.user, gen.Manifest(gen.VM("dry", gen.FromTemplate(l.golden+"/complete"))), "create", "--dry-run=server", "-n", l.team, "-f", "-")
		l.create(t, "after-dry", "complete")
		l.released(t, "after-dry")
		if got := s.must(t, "", "get", "secrets,services", "-n", l.team, "-o", "name"); strings.Contains(got, "/dry") {
			t.Errorf("a dry run has created %s", got)
		}
	})
	t.Run("an object that exists before", func(t *testing.T) {
		harness.Must(t, s.Plane, l.user, "", "create", "secret", "generic", "early-login", "-n", l.team, "--from-literal=userdata=mine")
		denied(t, create(t, "early", "complete"), "template["+l.golden+"/complete].spec.objects[0]: Forbidden: Secret ${NAME}-login: an object of this name exists already in namespace "+l.team)
		if got := l.kubectl(t, nil, "", "get", "vm", "early", "-n", l.team); got.Code == 0 {
			t.Errorf("half of it was made: %s", got.Stdout)
		}
	})
	t.Run("an object that exists afterwards", func(t *testing.T) {
		lift := l.barrier(t, "taken")
		l.create(t, "taken", "complete", gen.RunStrategy("Always"))
		l.reports(t, "taken", "objects of its template cannot be created, and it does not start: Secret taken-login: an admission policy denies it; Service taken: an admission policy denies it", "does not start before the objects of its template exist")
		harness.Must(t, s.Plane, l.user, "", "create", "secret", "generic", "taken-login", "-n", l.team, "--from-literal=userdata=mine")
		harness.Must(t, s.Plane, l.user, "", "create", "service", "clusterip", "taken", "-n", l.team, "--tcp=80")
		lift()
		if got := l.kubectl(t, nil, "", "get", "vmi", "taken", "-n", l.team); got.Code == 0 {
			t.Errorf("it has started: %s", got.Stdout)
		}
		if got := l.exists(t, "secret", "taken-login", "{.data.userdata}{.metadata.ownerReferences}"); got != base64.StdEncoding.EncodeToString([]byte("mine")) {
			t.Errorf("the Secret of somebody else is now %s", got)
		}
		steal := func(what, want string, arguments ...string) {
			denied(t, l.kubectl(t, l.user, "", append([]string{"patch", "vm", "taken", "-n", l.team, "--type=json", "-p"}, arguments...)...), want)
			if t.Failed() {
				t.Log(what)
			}
		}
		const together = "holds a VirtualMachine back for as long as it has annotation"
		steal("the user removes the hold", together, `[{"op": "remove", "path": "/spec/template/metadata/annotations/objects.template.kubevirt.io~1hold"}]`)
		foreign := l.exists(t, "vm", "taken", pendingAt)
		// The webhook restores the annotation, and the policy finds no change.
		harness.Must(t, s.Plane, l.user, "", "annotate", "vm", "taken", "-n", l.team, "objects.template.kubevirt.io/pending-")
		harness.Must(t, s.Plane, l.user, "", "annotate", "vm", "taken", "-n", l.team, "--overwrite", "objects.template.kubevirt.io/pending=forged")
		if now := l.exists(t, "vm", "taken", pendingAt); now != foreign {
			t.Error("the user has changed the annotation")
		}
		t.Run("its annotation on another VM", func(t *testing.T) {
			denied(t, create(t, "thief", "plain", gen.Annotation("objects.template.kubevirt.io/pending", foreign), gen.Spec("template: {metadata: {annotations: {objects.template.kubevirt.io/hold: objects}}}")), together)
			if got := create(t, "thief", "complete", gen.Annotation("objects.template.kubevirt.io/pending", foreign)); got.Code != 0 {
				t.Fatal(got.Stderr)
			}
			l.released(t, "thief")
			if l.exists(t, "secret", "thief-login", "{.metadata.name}") == "" {
				t.Error("it got other objects than its own")
			}
			denied(t, l.kubectl(t, l.user, gen.Manifest(gen.VM("bare", gen.SmallSpec(), gen.Annotation("objects.template.kubevirt.io/pending", foreign))), "create", "-n", l.team, "-f", "-"), together)
			// The webhook discards it.
			harness.Must(t, s.Plane, l.user, "", "annotate", "vm", "control", "-n", l.team, "objects.template.kubevirt.io/pending="+foreign)
			if now := l.exists(t, "vm", "control", pendingAt); now != "" {
				t.Error("a stored VM has it")
			}
			harness.Must(t, s.Plane, l.user, "", "patch", "vm", "control", "-n", l.team, "--type=merge", "-p", `{"spec": {"template": {"metadata": {"annotations": {"objects.template.kubevirt.io/hold": "x"}}}}}`)
			if now := l.exists(t, "vm", "control", heldAt); now != "" {
				t.Error("a stored VM is held back")
			}
		})
		t.Run("while no manager runs", func(t *testing.T) {
			if err := s.StopManager(); err != nil {
				t.Fatal(err)
			}
			// The API server cannot call the webhook of a templated VM; without it, the policies decide.
			for _, patch := range []string{
				`[{"op": "remove", "path": "/metadata/annotations/objects.template.kubevirt.io~1pending"}]`,
				`[{"op": "replace", "path": "/metadata/annotations/objects.template.kubevirt.io~1pending", "value": "x"}]`,
				`[{"op": "remove", "path": "/spec/template/metadata/annotations/objects.template.kubevirt.io~1hold"}]`,
			} {
				denied(t, l.kubectl(t, l.user, "", "patch", "vm", "taken", "-n", l.team, "--type=json", "-p", patch), "")
			}
			if err := s.StartManager(); err != nil {
				t.Fatal(err)
			}
		})
		harness.Must(t, s.Plane, l.user, "", "delete", "secret/taken-login", "service/taken", "-n", l.team)
		l.released(t, "taken")
		l.exists(t, "vmi", "taken", "{.metadata.name}")
		if got := l.exists(t, "secret", "taken-login", "{.metadata.ownerReferences[*].name}"); got != "taken" {
			t.Errorf("the Secret belongs to %q", got)
		}
	})
	t.Run("an invalid object names no values", func(t *testing.T) {
		got := create(t, "invalid", "invalid")
		denied(t, got, "Service ${NAME}: it is invalid (spec.clusterIP")
		if strings.Contains(got.Stderr, "s3cretvalue") {
			t.Errorf("the message contains a value: %s", got.Stderr)
		}
	})
	t.Run("manifests that are applied again", func(t *testing.T) {
		for how, arguments := range map[string][]string{"by kubectl": {"apply"}, "by the server": {"apply", "--server-side"}} {
			t.Run(how, func(t *testing.T) {
				name := "again-" + strings.Fields(how)[1]
				manifest := gen.Manifest(gen.VM(name, gen.FromTemplate(l.golden+"/complete")))
				apply := func() { harness.Must(t, s.Plane, l.user, manifest, append(arguments, "-n", l.team, "-f", "-")...) }
				apply()
				apply()
				l.released(t, name)
				uid := l.exists(t, "secret", name+"-login", "{.metadata.uid}")
				apply()
				l.released(t, name)
				if now := l.exists(t, "secret", name+"-login", "{.metadata.uid}"); now != uid {
					t.Error("its Secret was made again")
				}
			})
		}
	})
	t.Run("a VM that exists", func(t *testing.T) {
		denied(t, create(t, "control", "complete"), "AlreadyExists")
	})
	t.Run("a governed namespace", func(t *testing.T) {
		s.must(t, gen.Manifest(gen.Approval(l.team, gen.Governs(l.team), gen.Approves(l.golden+"/complete"))), "apply", "-f", "-")
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)
		l.create(t, "approved", "complete")
		l.released(t, "approved")
		l.exists(t, "secret", "approved-login", "{.metadata.name}")
		denied(t, create(t, "unapproved", "invalid"), "it does not approve template "+l.golden+"/invalid")
		s.must(t, "", "delete", "templateapproval", l.team)
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=false`)
	})
	t.Run("an API server that restarts meanwhile", func(t *testing.T) {
		restarted := make(chan error, 1)
		const several = 12
		for i := range several {
			if i == several/2 {
				go func() { restarted <- s.Plane.RestartAPIServer(context.WithoutCancel(t.Context())) }()
			}
			l.eventually(t, "the VM is created", func() error {
				// A response can be lost: then the VM exists.
				if got := create(t, fmt.Sprintf("restart-%d", i), "complete"); got.Code != 0 && !strings.Contains(got.Stderr, "AlreadyExists") {
					return errors.New(got.Stderr)
				}
				return nil
			})
		}
		if err := <-restarted; err != nil {
			t.Fatal(err)
		}
		for i := range several {
			name := fmt.Sprintf("restart-%d", i)
			l.released(t, name)
			if got := l.exists(t, "secret", name+"-login", "{.metadata.ownerReferences[*].name}"); got != name {
				t.Errorf("the Secret of %s belongs to %q", name, got)
			}
		}
	})
	t.Run("a key that is lost", func(t *testing.T) {
		lift := l.barrier(t, "keyless")
		l.create(t, "keyless", "complete")
		s.must(t, "", "delete", "secret", "stencil-object-keys", "-n", install.Namespace)
		lift()
		l.reports(t, "keyless", "the objects of its template cannot be created, and it does not start: the key that encrypted them does not exist; delete it and create it again")
		if held := l.exists(t, "vm", "keyless", heldAt); held == "" {
			t.Error("it is not held back")
		}
		// The leader makes another key.
		harness.Must(t, s.Plane, l.user, "", "delete", "vm", "keyless", "-n", l.team)
		l.create(t, "keyless", "complete")
		l.released(t, "keyless")
	})
	t.Run("the account of the objects", func(t *testing.T) {
		account := "system:serviceaccount:" + install.Namespace + ":stencil-objects"
		manager, err := s.Options().ManagerUser(s.Plane)
		if err != nil {
			t.Fatal(err)
		}
		as := func(stdin string, arguments ...string) controlplane.Result {
			return l.kubectl(t, manager, stdin, append(arguments, "--as", account)...)
		}
		denied(t, as("", "create", "secret", "generic", "stolen", "-n", l.team), "Stencil's manager creates objects for one VirtualMachine only")
		impersonating := manager.Config()
		impersonating.Impersonate = rest.ImpersonationConfig{UserName: account}
		client, err := dynamic.NewForConfig(impersonating)
		if err != nil {
			t.Fatal(err)
		}
		for what, patch := range map[string]string{
			"starts a VM":    `{"spec": {"runStrategy": "Manual"}}`,
			"changes a VM":   `{"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}`,
			"labels a VM":    `{"metadata": {"labels": {"a": "b"}}}`,
			"notes on a VM":  `{"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}`,
			"finalizes a VM": `{"metadata": {"finalizers": ["example.org/mine"]}}`,
		} {
			_, err := client.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}).Namespace(l.team).
				Patch(t.Context(), "control", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err == nil || !strings.Contains(err.Error(), "Stencil's manager changes only the annotations") {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, what := range [][]string{{"get", "secrets"}, {"list", "secrets"}, {"update", "secrets"}, {"delete", "secrets"}, {"create", "pods"}, {"delete", "virtualmachines.kubevirt.io"}, {"update", "services"}} {
			if got := l.kubectl(t, nil, "", append([]string{"auth", "can-i", "-n", l.team, "--as", account}, what...)...); !strings.HasPrefix(got.Stdout, "no") {
				t.Errorf("it may %v: %s%s", what, got.Stdout, got.Stderr)
			}
		}
		if got := l.kubectl(t, l.user, "", "auth", "can-i", "get", "secrets/stencil-object-keys", "-n", install.Namespace); !strings.HasPrefix(got.Stdout, "no") {
			t.Errorf("a user reads the keys: %s%s", got.Stdout, got.Stderr)
		}
	})
}
