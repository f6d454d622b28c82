package chart

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// template is one that the API server stores while no manager answers, once the webhook is deleted.
const template = `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: kept, namespace: default}
spec:
  virtualMachine:
    spec:
      runStrategy: Halted
      template: {spec: {domain: {devices: {}}}}
`

// kinds are the kinds that the chart installs.
const kinds = "deployments,configmaps,replicasets,poddisruptionbudgets,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings," +
	"mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings," +
	"customresourcedefinitions"

// live lists the names of all objects of the release that exist.
func live(t *testing.T, plane *controlplane.Plane) []string {
	t.Helper()
	output := mustKubectl(t, plane, "", "get", kinds, "--all-namespaces", "--selector", "app.kubernetes.io/instance=stencil", "--output", "name")
	names := strings.Fields(output)
	slices.Sort(names)
	return names
}

// withoutAPIServer omits the APIServices: on a plane without nodes no server answers them, which breaks kubectl's discovery and blocks the deletion
// of namespaces.
const withoutAPIServer = "--set=apiserver.enabled=false"

// deleteDefinitions deletes the definitions that a release has left. The API server enforces the policy on their deletion for a moment after the
// release is gone.
func deleteDefinitions(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	eventually(t, "the definitions are deleted", func() string {
		got := harness.Kubectl(t, plane, nil, "", "delete", "customresourcedefinitions", "--selector", "app.kubernetes.io/instance=stencil")
		if got.Code != 0 {
			return got.Stderr
		}
		return ""
	})
}

func TestInstallUpgradeUninstall(t *testing.T) {
	plane := shared.Plane(t)
	client := clientFor(t, plane.AdminConfig())

	// The namespace enforces the Pod Security Standard that the README promises for the pods.
	mustKubectl(t, plane, "", "create", "namespace", "restricted-system")
	mustKubectl(t, plane, "", "label", "namespace", "restricted-system", "pod-security.kubernetes.io/enforce=restricted")
	options := install.Options{Namespace: "restricted-system"}
	// Definitions may remain from a release in another namespace, and helm adopts no object that it does not own.
	deleteDefinitions(t, plane)

	run(t, plane, "install", "stencil", chartFolder(t), "--namespace", options.Namespace, withoutAPIServer)

	eventually(t, "the Deployment has its pods", func() string {
		pods, err := client.CoreV1().Pods(options.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(pods.Items) != 2 {
			return fmt.Sprintf("the Deployment has %d pods, want 2: %s", len(pods.Items),
				mustKubectl(t, plane, "", "describe", "replicasets", "--namespace", options.Namespace))
		}
		return ""
	})
	eventually(t, "the definitions are served", func() string { return served(t, plane) })

	setBundle(t, plane, "stencil-manager", "Zmlyc3Q=")
	// The subjects that the manager writes when it has found KubeVirt.
	mustKubectl(t, plane, "", "patch", "clusterrolebinding", "stencil-exempt-users", "--type=merge", "--patch",
		`{"subjects": [{"kind": "ServiceAccount", "namespace": "virt", "name": "kubevirt-controller"}]}`)
	wantExempt := func() {
		t.Helper()
		if got := mustKubectl(t, plane, "", "get", "clusterrolebinding", "stencil-exempt-users", "--output=jsonpath={.subjects[*].namespace}"); got != "virt" {
			t.Errorf("the exempt users are those of namespace %q, want virt", got)
		}
	}

	run(t, plane, "upgrade", "stencil", chartFolder(t), "--namespace", options.Namespace, withoutAPIServer,
		"--set", "manager.replicas=3", "--set", "webhooks.timeoutSeconds=7", "--set", "exemptUsers={robot}")

	deployment, err := client.AppsV1().Deployments(options.Namespace).Get(t.Context(), "stencil-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *deployment.Spec.Replicas; got != 3 {
		t.Errorf("%d replicas after the upgrade, want 3", got)
	}
	configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "a-stencil-render", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *configuration.Webhooks[0].TimeoutSeconds; got != 7 {
		t.Errorf("timeoutSeconds is %d after the upgrade, want 7", got)
	}
	wantBundle(t, plane, "Zmlyc3Q=")
	wantExempt()

	run(t, plane, "rollback", "stencil", "1", "--namespace", options.Namespace)
	wantBundle(t, plane, "Zmlyc3Q=")
	wantExempt()

	// No node runs the hook, which stops the uninstallation: all objects of the release stay, and of the hook its Job alone.
	before := live(t, plane)
	failed, err := plane.Helm(t.Context(), "uninstall", "stencil", "--namespace", options.Namespace, "--timeout=5s")
	if err != nil || failed.Code == 0 || !strings.Contains(failed.Stderr, "Job/restricted-system/stencil-uninstall") {
		t.Errorf("helm uninstall with a hook that does not end: exit code %d, %v\n%s", failed.Code, err, failed.Stderr)
	}
	if diff := gocmp.Diff(before, live(t, plane)); diff != "" {
		t.Errorf("objects of the release (-before +after a hook that failed):\n%s", diff)
	}
	if got := mustKubectl(t, plane, "", "get", "jobs,pods", "--namespace", options.Namespace, "--selector", "app.kubernetes.io/component=uninstall", "--output=jsonpath={.items[*].kind}"); got != "Job Pod" {
		t.Errorf("of the hook stay %s, want its Job and its pod", got)
	}
	// The release can be used again.
	run(t, plane, "rollback", "stencil", "3", "--namespace", options.Namespace)

	run(t, plane, "uninstall", "stencil", "--namespace", options.Namespace, "--no-hooks")
	mustKubectl(t, plane, "", "delete", "job", "stencil-uninstall", "--namespace", options.Namespace)
	mustKubectl(t, plane, template, "apply", "-f", "-")
	eventually(t, "only the definitions are left", func() string {
		want := []string{
			"customresourcedefinition.apiextensions.k8s.io/goldenimages.stencil.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/policyexceptions.stencil.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/revisionmigrations.stencil.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/templateapprovals.stencil.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/virtualmachinepolicies.stencil.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/virtualmachinepolicysources.stencil.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/virtualmachinetemplateexports.template.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/virtualmachinetemplateimports.template.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/virtualmachinetemplaterequests.template.kubevirt.io",
			"customresourcedefinition.apiextensions.k8s.io/virtualmachinetemplates.template.kubevirt.io",
		}
		// ReplicaSets and pods are deleted a little later.
		if got := live(t, plane); !slices.Equal(got, want) {
			return fmt.Sprintf("uninstalling left %v, want only %v", got, want)
		}
		return ""
	})

	// The next install adopts the retained definitions, and templates remain stored.
	run(t, plane, "install", "stencil", chartFolder(t), "--namespace", options.Namespace, withoutAPIServer)
	mustKubectl(t, plane, "", "get", "virtualmachinetemplate", "kept", "--namespace", "default")
	run(t, plane, "uninstall", "stencil", "--namespace", options.Namespace, "--no-hooks")
	deleteDefinitions(t, plane)
}

// Helm before version 4, and version 4 with --server-side=false, merges on the client's side; that must leave caBundle unchanged as well.
//
//suite:long
func TestUpgradeWithClientSideApplyKeepsTheBundle(t *testing.T) {
	plane := shared.Plane(t)
	arguments := []string{"--namespace", install.Namespace, "--server-side=false"}
	run(t, plane, append([]string{"install", "stencil", chartFolder(t), withoutAPIServer, "--create-namespace"}, arguments...)...)
	cleanUp(t, plane, install.Options{})
	setBundle(t, plane, "stencil-manager", "c2Vjb25k")
	run(t, plane, append([]string{"upgrade", "stencil", chartFolder(t), withoutAPIServer, "--set", "webhooks.timeoutSeconds=7"}, arguments...)...)
	wantBundle(t, plane, "c2Vjb25k")
}

// Taking the ownership of caBundle from the manager requires an explicit flag of helm.
//
//suite:long
func TestSwitchingToASecretTakesTheBundleOver(t *testing.T) {
	plane := installed(t, install.Options{})
	setBundle(t, plane, "stencil-manager", "c2Vjb25k")
	arguments := []string{
		"upgrade", "stencil", chartFolder(t), "--namespace", install.Namespace, "--reuse-values",
		"--set", "certificates.provider=secret", "--set", "certificates.secret.name=stencil-tls", "--set", "certificates.secret.caBundle=" + authority,
	}
	result, err := plane.Helm(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	if result.Code == 0 || !strings.Contains(result.Stderr, `conflict with "stencil-manager"`) {
		t.Errorf("upgraded, or refused for another reason: %s", result.Stderr)
	}
	run(t, plane, append(arguments, "--force-conflicts")...)
	wantBundle(t, plane, base64.StdEncoding.EncodeToString([]byte(authority)))
}

func TestNotesSayWhatToDoNext(t *testing.T) {
	plane := shared.Plane(t)
	cases := map[string]struct {
		values []string
		want   []string
		lacks  string
	}{
		"a manager in the cluster": {
			want: []string{
				"WARNING: every pod of the cluster can call the webhooks",
				"networkPolicy.enabled=true with networkPolicy.webhooks",
				"webhooks.clientCA.configMap",
				"kubectl -n stencil-system rollout status deployment/stencil-manager",
				"--clusterrole stencil-template-user",
				"template.kubevirt.io/template-ref: NAMESPACE/TEMPLATE",
			},
		},
		"callers are limited by address": {
			values: []string{"--set", "networkPolicy.enabled=true", "--set", "networkPolicy.webhooks[0].ipBlock.cidr=192.0.2.0/28"},
			want:   []string{"rollout status deployment/stencil-manager"},
			lacks:  "WARNING",
		},
		"callers are limited by certificate": {
			values: []string{"--set", "webhooks.clientCA.configMap=callers"},
			want:   []string{"rollout status deployment/stencil-manager"},
			lacks:  "WARNING",
		},
		"a manager outside the cluster is started with these flags": {
			values: []string{"--set", "manager.enabled=false", "--set", "webhooks.url=https://localhost:9443"},
			want: []string{
				"the API server calls https://localhost:9443",
				"--leader-election-namespace=stencil-system",
				"--certificate-authority-namespace=stencil-system",
				"--certificate-dns-names=localhost",
				"--webhook-configurations=mutating/a-stencil-render,validating/stencil-validate,validating/stencil-policies",
				"--policy-webhooks-address=https://localhost:9443",
			},
		},
		"cert-manager": {
			values: []string{"--set", "certificates.provider=cert-manager"},
			want:   []string{"kubectl -n stencil-system get certificate stencil-webhook"},
		},
	}
	knowCertManager(t, plane)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			notes := run(t, plane, append([]string{
				"install", "stencil", chartFolder(t), "--namespace", install.Namespace, "--create-namespace", "--dry-run=server",
			}, tc.values...)...)
			_, notes, _ = strings.Cut(notes, "NOTES:")
			for _, want := range tc.want {
				if !strings.Contains(notes, want) {
					t.Errorf("the notes do not say %q:\n%s", want, notes)
				}
			}
			if tc.lacks != "" && strings.Contains(notes, tc.lacks) {
				t.Errorf("the notes say %q:\n%s", tc.lacks, notes)
			}
		})
	}
}

// run runs helm on the plane and returns what it printed.
func run(t *testing.T, plane *controlplane.Plane, arguments ...string) string {
	t.Helper()
	result, err := plane.Helm(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 0 {
		t.Fatalf("helm %s: %s", strings.Join(arguments, " "), result.Stderr)
	}
	return result.Stdout
}

// served returns the reason why the definitions are not usable yet.
func served(t *testing.T, plane *controlplane.Plane) string {
	result := kubectl(t, plane, nil, "", "get", "virtualmachinetemplates,virtualmachinetemplaterequests,templateapprovals", "--all-namespaces")
	return strings.TrimPrefix(strings.TrimSpace(result.Stderr), "No resources found")
}

// setBundle writes caBundle as the manager does: a patch of its own, under its own field manager.
func setBundle(t *testing.T, plane *controlplane.Plane, manager, bundle string) {
	t.Helper()
	client := clientFor(t, plane.AdminConfig()).AdmissionregistrationV1()
	patch := func(kind, name, webhook string) []byte {
		encoded, err := json.Marshal(map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1",
			"kind":       kind,
			"metadata":   map[string]any{"name": name},
			"webhooks":   []any{map[string]any{"name": webhook, "clientConfig": map[string]any{"caBundle": bundle}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	options := metav1.PatchOptions{FieldManager: manager}
	_, err := client.MutatingWebhookConfigurations().Patch(t.Context(), "a-stencil-render", types.ApplyPatchType,
		patch("MutatingWebhookConfiguration", "a-stencil-render", "render.template.kubevirt.io"), options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ValidatingWebhookConfigurations().Patch(t.Context(), "stencil-validate", types.StrategicMergePatchType,
		patch("ValidatingWebhookConfiguration", "stencil-validate", "virtualmachinetemplate.validate.template.kubevirt.io"), options)
	if err != nil {
		t.Fatal(err)
	}
}

func wantBundle(t *testing.T, plane *controlplane.Plane, want string) {
	t.Helper()
	client := clientFor(t, plane.AdminConfig()).AdmissionregistrationV1()
	mutating, err := client.MutatingWebhookConfigurations().Get(t.Context(), "a-stencil-render", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	validating, err := client.ValidatingWebhookConfigurations().Get(t.Context(), "stencil-validate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, bundle := range map[string][]byte{
		"a-stencil-render": mutating.Webhooks[0].ClientConfig.CABundle,
		"stencil-validate": validating.Webhooks[0].ClientConfig.CABundle,
	} {
		if got := base64.StdEncoding.EncodeToString(bundle); got != want {
			t.Errorf("caBundle of %s is %q, want %q", name, got, want)
		}
	}
}
