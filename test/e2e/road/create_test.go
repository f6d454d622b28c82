package road_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

func TestCreateFromTheGoldenFedoraTemplate(t *testing.T) {
	discard(t, "web-1")
	created := decode(t, mustKubectl(t, ada, "", "create", "-f", stencil.Example("machines/web-1.yaml"), "-o", "json").Stdout)

	if got := at(t, created, "spec", "instancetype", "name"); got != "u1.large" {
		t.Errorf("the parameter was not used: instance type %v", got)
	}
	disk := at(t, created, "spec", "dataVolumeTemplates").([]any)[0].(map[string]any)
	if got := disk["metadata"].(map[string]any)["name"]; got != "web-1" {
		t.Errorf("the name of the request did not bind NAME: disk %v", got)
	}
	wantSource := map[string]any{"kind": "DataSource", "name": "fedora", "namespace": "golden"}
	if diff := cmp.Diff(wantSource, disk["spec"].(map[string]any)["sourceRef"]); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	volumes := at(t, created, "spec", "template", "spec", "volumes").([]any)
	userData := volumes[1].(map[string]any)["cloudInitNoCloud"].(map[string]any)["userData"].(string)
	if !regexp.MustCompile(`(?m)^password: "[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}"$`).MatchString(userData) {
		t.Errorf("no generated password in %q", userData)
	}

	template := decode(t, mustKubectl(t, nil, "", "get", "vmt", "fedora", "--namespace=golden", "-o", "json").Stdout)
	var rendered map[string]any
	if err := json.Unmarshal([]byte(created.GetAnnotations()["template.kubevirt.io/rendered"]), &rendered); err != nil {
		t.Fatal(err)
	}
	digest, _ := rendered["digest"].(string)
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 {
		t.Errorf("digest %q", digest)
	}
	want := map[string]any{"namespace": "golden", "name": "fedora", "uid": string(template.GetUID()), "generation": float64(template.GetGeneration()), "digest": digest,
		"base": map[string]any{"runStrategy": "Halted", "secret": []any{"spec.template.spec.volumes[name=cloudinitdisk].cloudInitNoCloud.userData"}}}
	if diff := cmp.Diff(want, rendered); diff != "" {
		t.Errorf("rendered annotation (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"vm.kubevirt.io/template":           "fedora",
		"vm.kubevirt.io/template.namespace": "golden",
		"vm.kubevirt.io/template.revision":  fmt.Sprint(template.GetGeneration()),
	}
	if diff := cmp.Diff(wantLabels, created.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	// KubeVirt's own controller reconciles the VM.
	harness.Eventually(t, "virt-controller has written that the VM is stopped", func() error {
		if status, _, _ := unstructured.NestedString(get(t, "web-1").Object, "status", "printableStatus"); status != "Stopped" {
			return fmt.Errorf("printableStatus is %q, want Stopped", status)
		}
		return nil
	})
}

func TestAGeneratedNameBindsToo(t *testing.T) {
	created := decode(t, mustKubectl(t, ada, "", "create", "-f", stencil.Example("machines/runner.yaml"), "-o", "json").Stdout)
	discard(t, created.GetName())
	if !regexp.MustCompile(`^runner-[a-z0-9]{5}$`).MatchString(created.GetName()) {
		t.Errorf("name %q", created.GetName())
	}
	disk := at(t, created, "spec", "dataVolumeTemplates").([]any)[0].(map[string]any)
	if got := disk["metadata"].(map[string]any)["name"]; got != created.GetName() {
		t.Errorf("disk %v of VM %s", got, created.GetName())
	}
}

func TestWithoutAnyNameTheTemplateNamesTheMachine(t *testing.T) {
	created := decode(t, mustKubectl(t, ada, vm("", "golden/fedora"),
		"create", "-f", "-", "-o", "json").Stdout)
	discard(t, created.GetName())
	if !regexp.MustCompile(`^fedora-[a-z0-9]{16}$`).MatchString(created.GetName()) {
		t.Errorf("name %q", created.GetName())
	}
}

func TestASensitiveParameterIsUsedAndNotKept(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, tc := range []struct {
		name string
		args []string
	}{
		{name: "kubectl create", args: []string{"create"}},
		{name: "kubectl create --save-config", args: []string{"create", "--save-config"}},
		{name: "client-side apply", args: []string{"apply"}},
		{name: "server-side apply", args: []string{"apply", "--server-side"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			discard(t, "secretive")
			mustKubectl(t, ada, vm("secretive", "golden/fedora", gen.Parameter("CLOUD_USER_PASSWORD", secret)), append(tc.args, "-f", "-")...)
			vm := get(t, "secretive")
			volumes := at(t, vm, "spec", "template", "spec", "volumes").([]any)
			if userData := fmt.Sprint(volumes[1]); !strings.Contains(userData, `password: "`+secret+`"`) {
				t.Errorf("the parameter was not used: %s", userData)
			}
			unstructured.RemoveNestedField(vm.Object, "spec")
			if raw, _ := json.Marshal(vm.Object); strings.Contains(string(raw), secret) {
				t.Errorf("the secret was kept: %s", raw)
			}
			if raw, _ := json.Marshal(vm.GetAnnotations()); strings.Contains(string(raw), `"parameter.template.kubevirt.io/CLOUD_USER_PASSWORD"`) {
				t.Errorf("the annotation was kept: %s", raw)
			}
		})
	}
}

func TestWhatThePersonWroteIsLaidOverTheTemplate(t *testing.T) {
	discard(t, "database")
	created := decode(t, mustKubectl(t, ada, "", "create", "-f", stencil.Example("machines/database.yaml"), "-o", "json").Stdout)
	if got := at(t, created, "spec", "template", "spec", "domain", "cpu", "cores"); got != int64(4) {
		t.Errorf("cores %v (%T)", got, got)
	}
	names := func(fields ...string) []string {
		var names []string
		for _, item := range at(t, created, fields...).([]any) {
			names = append(names, item.(map[string]any)["name"].(string))
		}
		return names
	}
	for _, list := range [][]string{
		{"spec", "template", "spec", "domain", "devices", "interfaces"},
		{"spec", "template", "spec", "networks"},
	} {
		if diff := cmp.Diff([]string{"default", "storage"}, names(list...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", list, diff)
		}
	}
	if got := at(t, created, "spec", "template", "spec", "nodeSelector"); fmt.Sprint(got) != "map[disktype:ssd]" {
		t.Errorf("nodeSelector %v", got)
	}
	wantLabels := map[string]string{"app": "database", "os": "ubuntu", "environment": "production"}
	for key, want := range wantLabels {
		if got := created.GetLabels()[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	templateLabels := at(t, created, "spec", "template", "metadata", "labels").(map[string]any)
	if templateLabels["os"] != "ubuntu" || templateLabels["environment"] != "production" {
		t.Errorf("objectLabels on spec.template: %v", templateLabels)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(created.Object, "spec", "template", "spec", "evictionStrategy"); found {
		t.Error("an empty optional parameter did not remove its key")
	}
	raw, _ := json.Marshal(created.Object)
	if !strings.Contains(string(raw), `${USER} is at home in ${HOME} on database`) {
		t.Error("shell variables did not stay as they are")
	}
}

func TestEveryExampleIsTakenByKubeVirt(t *testing.T) {
	vms, err := filepath.Glob(stencil.Example("machines/*.yaml"))
	if err != nil || len(vms) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range vms {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw := testfile.Read(t, path)
			created := decode(t, mustKubectl(t, ada, string(raw), "create", "-f", "-", "-o", "json").Stdout)
			discard(t, created.GetName())
			if strings.Contains(fmt.Sprint(created.Object["spec"]), "${NAME}") {
				t.Error("a placeholder is left")
			}
			harness.Eventually(t, "virt-controller has written a status", func() error {
				if status, _, _ := unstructured.NestedString(get(t, created.GetName()).Object, "status", "printableStatus"); status == "" {
					return fmt.Errorf("virt-controller has not looked at %s", created.GetName())
				}
				return nil
			})
		})
	}
}

func TestDryRunRendersAndStoresNothing(t *testing.T) {
	out := mustKubectl(t, ada, vm("phantom", "golden/fedora"), "create", "--dry-run=server", "-f", "-", "-o", "json")
	if got := at(t, decode(t, out.Stdout), "spec", "instancetype", "name"); got != "u1.medium" {
		t.Errorf("not rendered: %v", got)
	}
	if got := kubectl(t, ada, "", "get", "virtualmachine", "phantom"); got.Code == 0 {
		t.Errorf("a dry run stored the VM: %s", got.Stdout)
	}
}

func TestTheDeprecatedVersionOfTheMachineIsRenderedToo(t *testing.T) {
	discard(t, "elderly")
	manifest := vm("elderly", "golden/fedora", gen.APIVersion("kubevirt.io/v1alpha3"))
	created := decode(t, mustKubectl(t, ada, manifest, "create", "-f", "-", "-o", "json").Stdout)
	if got := at(t, created, "spec", "instancetype", "name"); got != "u1.medium" {
		t.Errorf("not rendered: %v", got)
	}
}

func TestForgedProvenanceIsDiscarded(t *testing.T) {
	discard(t, "forged")
	manifest := vm("forged", "golden/fedora", gen.Annotation("template.kubevirt.io/rendered", `{"name":"windows"}`),
		gen.Label("vm.kubevirt.io/template", "windows"), gen.Label("vm.kubevirt.io/template.revision", "99"))
	created := decode(t, mustKubectl(t, ada, manifest, "create", "-f", "-", "-o", "json").Stdout)
	if got := created.GetLabels()["vm.kubevirt.io/template"]; got != "fedora" {
		t.Errorf("label %q", got)
	}
	if got := created.GetAnnotations()["template.kubevirt.io/rendered"]; !strings.Contains(got, `"name":"fedora"`) {
		t.Errorf("annotation %s", got)
	}
}

func TestATemplateInTheSameNamespaceNeedsNoNamespace(t *testing.T) {
	discard(t, "local-1")
	template := gen.Template("local", gen.Declares("NAME"), gen.Renders("${NAME}", gen.InNamespace("somewhere-else"), gen.LeastSpec()))
	mustKubectl(t, nil, gen.Manifest(template), "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vmt", "local") })
	mustKubectl(t, nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"use-local"},"rules":[{"apiGroups":["template.kubevirt.io"],"resources":["virtualmachinetemplates"],"resourceNames":["local"],"verbs":["use"]}]}`, "apply", "-f", "-")
	mustKubectl(t, nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"use-local"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"use-local"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ada"}]}`, "apply", "-f", "-")
	mustKubectl(t, ada, vm("local-1", "local"), "create", "-f", "-")
	if got := get(t, "local-1").GetNamespace(); got != namespaces.Of(t) {
		t.Errorf("a hardcoded namespace of the template was kept: %s", got)
	}
}

func TestATemplateInParentheses(t *testing.T) {
	discard(t, "paren-1")
	template := gen.Template("parentheses", gen.InNamespace("road-golden"), gen.Declares("NAME"), gen.Declares("CORES", "{value: '2'}"),
		gen.Renders("paren-$(NAME)", gen.LeastSpec(), gen.Fields(`{spec: {template: {spec: {domain: {cpu: {cores: "$((CORES))"}}}, metadata: {annotations: {a: "${NAME}"}}}}}`)), gen.Spec("{syntax: Parentheses}"))
	mustKubectl(t, nil, gen.Manifest(template), "create", "--namespace=road-golden", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vmt", "parentheses", "--namespace=road-golden") })
	mustKubectl(t, ada, vm("paren-1", "road-golden/parentheses"), "create", "-f", "-")
	got := mustKubectl(t, nil, "", "get", "vm", "paren-1", "-o", "jsonpath={.spec.template.spec.domain.cpu.cores} {.spec.template.metadata.annotations.a}").Stdout
	if got != "2 ${NAME}" {
		t.Errorf("got %q", got)
	}
}

func TestATemplateAndItsFirstMachineArriveTogether(t *testing.T) {
	discard(t, "twin")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vmt", "together", "--namespace=road-golden") })
	both := gen.Manifest(gen.Template("together", gen.InNamespace("road-golden"), gen.Renders("", gen.LeastSpec())),
		gen.VM("twin", gen.InNamespace(namespaces.Of(t)), gen.FromTemplate("road-golden/together")))
	// The manifests name their namespaces, so kubectl gets none here.
	out, err := stencil.Plane.Kubectl(t.Context(), nil, both, "create", "-f", "-")
	if err != nil || out.Code != 0 {
		t.Fatalf("%v: %s%s", err, out.Stdout, out.Stderr)
	}
}
