package capture_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// everyStep has one capture at each step, by the number of the step. In brief tests it is every third step from first on: the hook and stencilctl run
// the same code.
func everyStep(t *testing.T, s *stage, first int) map[int]*capture {
	t.Helper()
	captures := map[int]*capture{}
	for i := range steps {
		if !brief || i%3 == first {
			captures[i] = s.pair(t)
		}
	}
	for i, c := range captures {
		c.hold(t, steps[i])
		c.begin(t, "")
	}
	for i, c := range captures {
		c.reach(t, steps[i])
	}
	return captures
}

// unattended creates a GoldenImage with the finalizer that the manager sets, and a Report of the audit.
func unattended(t *testing.T, s *stage) (namespace string) {
	t.Helper()
	namespace = s.namespace(t, "images")
	s.must(t, `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "GoldenImage", "metadata": {"name": "fedora", "namespace": "`+namespace+`",
		"finalizers": ["stencil.kubevirt.io/golden-image"]}, "spec": {"source": {"registry": {"url": "registry.invalid/fedora", "tags": {"semver": ">=42"}}}, "storage": {"size": "1Gi"}}}`, "create", "-f", "-")
	s.must(t, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "reports.openreports.io"}, "spec": {
		"group": "openreports.io", "scope": "Namespaced", "names": {"kind": "Report", "plural": "reports", "singular": "report"}, "versions": [{"name": "v1alpha1",
		"served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`, "apply", "-f", "-")
	t.Cleanup(func() { s.must(t, "", "delete", "crd", "reports.openreports.io") })
	s.must(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/reports.openreports.io")
	for name, by := range map[string]string{"stencil": "stencil-manager", "other": "other"} {
		eventually(t, "the Report "+name+" is stored", func() string {
			return s.kubectl(t, nil, `{"apiVersion": "openreports.io/v1alpha1", "kind": "Report", "metadata": {"name": "`+name+`", "namespace": "`+namespace+`",
				"labels": {"app.kubernetes.io/managed-by": "`+by+`"}}}`, "apply", "-f", "-").Stderr
		})
	}
	return namespace
}

// checkEnded checks that no capture left anything, that those that had their template are ready, and that all namespaces can be deleted.
func checkEnded(t *testing.T, s *stage, captures map[int]*capture, images string) {
	t.Helper()
	for i, c := range captures {
		t.Run(steps[i].name, func(t *testing.T) {
			if i >= templateExists {
				c.captured(t)
				return
			}
			c.failed(t, []string{"Uninstalled"}, "Stencil was uninstalled before the request was finished")
			c.nothing(t)
		})
	}
	for _, kind := range []string{"virtualmachinetemplaterequests", "goldenimages"} {
		if got := s.must(t, "", "get", kind, "-A", "-o", "jsonpath={.items[*].metadata.finalizers}"); got != "" {
			t.Errorf("%s have the finalizers %s", kind, got)
		}
	}
	if got := s.must(t, "", "get", "reports.openreports.io", "-n", images, "-o", "jsonpath={.items[*].metadata.name}"); got != "other" {
		t.Errorf("the Reports are %q", got)
	}
	gone := []string{images}
	for _, c := range captures {
		gone = append(gone, c.shop, c.golden)
	}
	s.must(t, "", append([]string{"delete", "namespace", "--wait=false"}, gone...)...)
	eventually(t, "the namespaces are deleted", func() string {
		if left := s.must(t, "", append([]string{"get", "namespace", "--ignore-not-found", "-o", "name"}, gone...)...); left != "" {
			return "left over: " + left
		}
		return ""
	})
}

// TestRemoveWithoutAManager prepares the removal by stencilctl, after the manager was killed with a capture at each step.
//
//suite:long
func TestRemoveWithoutAManager(t *testing.T) {
	s := real.on(t)
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	captures, images := everyStep(t, s, 0), unattended(t, s)
	if err := s.platform.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.must(t, "", "delete", "lease", "stencil-manager", "-n", install.Namespace)
		if err := s.platform.StartManager(); err != nil {
			t.Error(err)
		}
	})
	remove := func(flags string) string {
		t.Helper()
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: s.platform.Plane.Kubeconfig(), Line: "install remove" + flags}.Run(t.Context())
		if err != nil || ran.Code != 0 {
			t.Fatalf("exit code %d, %v:\n%s%s", ran.Code, err, ran.Output, ran.Problems)
		}
		t.Logf("stencilctl install remove%s\n%s", flags, ran.Output)
		return ran.Output
	}
	planned := remove(" --dry-run")
	for _, c := range captures {
		if want := "end      VirtualMachineTemplateRequest " + c.golden + "/r: "; !strings.Contains(planned, want) {
			t.Errorf("the dry run does not report %q", want)
		}
		if got := s.conditions(t, c.golden, "r")["Progressing"]; got.Status != "True" {
			t.Errorf("the dry run ended %s/r: %+v", c.golden, got)
		}
	}
	done := remove("")
	for i, c := range captures {
		want := "ended    VirtualMachineTemplateRequest " + c.golden + "/r\n"
		if i >= templateExists {
			want = "finished VirtualMachineTemplateRequest " + c.golden + "/r\n"
		}
		if !strings.Contains(done, want) {
			t.Errorf("no %q", want)
		}
	}
	if again := remove(" --hold=1m"); strings.Count(again, "\n") != 1 || !strings.HasPrefix(again, "stopped  Lease stencil-system/stencil-manager: ") {
		t.Errorf("the second time it does\n%s", again)
	}
	checkEnded(t, s, captures, images)
}

// runHook is the node of a hook's Job with this account: it runs the program with the arguments of the pod and the permissions of its service account, and reports the
// end of the pod. It returns what the program wrote.
func runHook(ctx context.Context, s *stage, client kubernetes.Interface, account string) (string, error) {
	var pod *corev1.Pod
	for pod == nil {
		pods, err := client.CoreV1().Pods(install.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=uninstall," + batchv1.JobNameLabel})
		if err != nil {
			return "", fmt.Errorf("waiting for the pod of the hook: %w", err)
		}
		if i := slices.IndexFunc(pods.Items, func(each corev1.Pod) bool { return each.Spec.ServiceAccountName == account }); i >= 0 {
			pod = &pods.Items[i]
			break
		}
		select {
		case <-ctx.Done():
			return "", errors.New("no pod of the hook appeared")
		case <-time.After(100 * time.Millisecond):
		}
	}
	user, err := s.platform.Plane.User("system:serviceaccount:"+pod.Namespace+":"+pod.Spec.ServiceAccountName, "system:serviceaccounts", "system:serviceaccounts:"+pod.Namespace)
	if err != nil {
		return "", err
	}
	binary, err := product.Binary(ctx, "stencil-manager")
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, binary, append(slices.Clone(pod.Spec.Containers[0].Args), "--kubeconfig="+user.Kubeconfig)...)
	command.Env = append(os.Environ(), "POD_NAMESPACE="+pod.Namespace)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the hook failed: %w\n%s", err, output)
	}
	now := metav1.Now()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}},
	}}
	_, err = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return string(output), err
}

// TestUninstallingLeavesNothing uninstalls Stencil while its leader has a capture at each step, and installs it again.
//
//suite:long
func TestUninstallingLeavesNothing(t *testing.T) {
	s := real.on(t)
	client, err := kubernetes.NewForConfig(s.platform.Plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.platform.StopManager(); err != nil {
		t.Fatal(err)
	}
	leader, err := s.platform.StartReplica("--leader-elect=true")
	if err != nil {
		t.Fatal(err)
	}
	captures, images := everyStep(t, s, 1), unattended(t, s)

	// The hook is of a release whose manager is in the cluster.
	options := s.platform.Options()
	outside := options.Values
	options.Values = map[string]any{"manager": map[string]any{"enabled": true}}
	maps.Copy(options.Values, outside)
	if err := install.Chart(t.Context(), s.platform.Plane, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.must(t, "", "delete", "lease", "stencil-manager", "-n", install.Namespace)
		ctx := context.WithoutCancel(t.Context())
		options.Values = outside
		if err := install.Chart(ctx, s.platform.Plane, options); err != nil {
			t.Fatal(err)
		}
		if err := s.platform.StartManager(); err != nil {
			t.Fatal(err)
		}
		for _, await := range []func(context.Context, *controlplane.Plane) error{
			install.AwaitPolicies, install.AwaitBindings,
			func(ctx context.Context, plane *controlplane.Plane) error {
				return install.AwaitExempt(ctx, plane, controlplane.VirtController)
			},
		} {
			if err := await(ctx, s.platform.Plane); err != nil {
				t.Error(err)
			}
		}
	})

	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	type ended struct {
		output string
		err    error
	}
	hook := make(chan ended, 1)
	go func() {
		output, err := runHook(ctx, s, client, "stencil-uninstall")
		if err == nil {
			// Nothing is left of a release without failed revisions.
			_, err = runHook(ctx, s, client, "stencil-uninstalled")
		}
		hook <- ended{output, err}
		if err != nil {
			// Helm would wait for the Job.
			cancel()
		}
	}()
	uninstalled, err := s.platform.Plane.Helm(ctx, "uninstall", "stencil", "--namespace", install.Namespace)
	ran := <-hook
	if err != nil || uninstalled.Code != 0 || ran.err != nil {
		t.Fatalf("helm uninstall: %v\n%sthe hook: %v", err, uninstalled.Stderr, ran.err)
	}
	t.Logf("helm uninstall\n%s", uninstalled.Stdout)
	t.Logf("the hook wrote\n%s", ran.output)
	select {
	case <-leader.Done():
	default:
		t.Error("the leader runs on, without its lease")
	}
	if !strings.Contains(leader.Logs(), "leader election lost") {
		t.Errorf("the leader does not report that it lost its lease:\n%s", leader.Logs())
	}
	if err := leader.Kill(); err != nil {
		t.Error(err)
	}

	eventually(t, "no webhook, no policy and nothing of the hook is left", func() string {
		// By name, because not all objects that the manager creates have the label of the release.
		left := strings.Fields(s.must(t, "", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,"+
			"validatingadmissionpolicybindings,virtualmachinepolicies,clusterroles,clusterrolebindings,jobs,pods,serviceaccounts,roles,rolebindings,services,deployments",
			"--all-namespaces", "-o", "name"))
		left = slices.DeleteFunc(left, func(name string) bool { return !strings.Contains(name, "stencil") })
		if len(left) > 0 {
			return fmt.Sprintf("left over: %v", left)
		}
		return ""
	})
	checkEnded(t, s, captures, images)
	// docs/installation.md lists what stays.
	for what, arguments := range map[string][]string{
		"lease.coordination.k8s.io/stencil-manager\nsecret/stencil-object-keys\nsecret/stencil-webhook-ca\nconfigmap/stencil-approval-index\n": {
			"get", "leases,secrets,configmaps", "-n", install.Namespace, "--field-selector=metadata.name!=kube-root-ca.crt", "-o", "name",
		},
		"goldenimages.stencil.kubevirt.io policyexceptions.stencil.kubevirt.io revisionmigrations.stencil.kubevirt.io templateapprovals.stencil.kubevirt.io virtualmachinepolicies.stencil.kubevirt.io virtualmachinepolicysources.stencil.kubevirt.io " +
			"virtualmachinetemplateexports.template.kubevirt.io virtualmachinetemplateimports.template.kubevirt.io virtualmachinetemplaterequests.template.kubevirt.io virtualmachinetemplates.template.kubevirt.io": {
			"get", "crd", "-l", "app.kubernetes.io/part-of=stencil", "-o", "jsonpath={.items[*].metadata.name}",
		},
	} {
		got := harness.Must(t, s.platform.Plane, nil, "", arguments...).Stdout
		want := strings.Fields(what)
		found := strings.Fields(got)
		slices.Sort(want)
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("kubectl %s: %v stay, want %v", strings.Join(arguments, " "), found, want)
		}
	}
}
