package chart

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/product"
)

// program runs a program of Stencil as a user and returns its output.
func program(t *testing.T, name string, kubeconfig string, arguments ...string) (output string, ok bool) {
	t.Helper()
	binary, err := product.Binary(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, append(arguments, "--kubeconfig="+kubeconfig)...).CombinedOutput()
	return string(out), err == nil
}

// TestLeftoversOfAFailedRevision has an upgrade fail, because no node runs the pods of this plane, and the next one succeed. Helm then records the
// objects of the failed revision nowhere.
func TestLeftoversOfAFailedRevision(t *testing.T) {
	plane := shared.Plane(t)
	deleteDefinitions(t, plane)
	t.Cleanup(func() { deleteDefinitions(t, plane) })
	namespace := "leftovers-system"
	mustKubectl(t, plane, "", "create", "namespace", namespace)
	admin := plane.Kubeconfig()
	release := namespace + "/stencil"
	helm := func(command string, more ...string) []string {
		return slices.Concat([]string{command, "stencil", chartFolder(t), "--namespace", namespace, withoutAPIServer}, more)
	}
	fail := func() {
		failed, err := plane.Helm(t.Context(), helm("upgrade", "--wait", "--timeout=2s", "--set=defaulting.enabled=true,transfers.enabled=true", "--set=defaulting.failurePolicy=Fail")...)
		if err != nil || failed.Code == 0 {
			t.Fatalf("an upgrade whose pods do not start succeeded: %v\n%s", err, failed.Stdout)
		}
		run(t, plane, helm("upgrade")...)
	}
	run(t, plane, helm("install")...)
	before := live(t, plane)
	fail()
	left := func() []string {
		return slices.DeleteFunc(live(t, plane), func(name string) bool {
			return slices.Contains(before, name) || strings.HasPrefix(name, "customresourcedefinition") || strings.HasPrefix(name, "replicaset")
		})
	}
	const defaults = "mutatingwebhookconfiguration.admissionregistration.k8s.io/zz-stencil-defaults"
	if got := left(); len(got) < 5 || !slices.Contains(got, defaults) {
		t.Fatalf("the failed revision left %v", got)
	}

	// While the release is installed, what it does not have is known for admission only.
	checked, ok := program(t, "stencilctl", admin, "install", "check", "--release="+release)
	if want := "problem  MutatingWebhookConfiguration zz-stencil-defaults: is left: a revision that failed had created it\n         run stencilctl install remove --release " + release + "\n"; ok || !strings.Contains(checked, want) {
		t.Errorf("install check printed, with exit code 0 %v:\n%s", ok, checked)
	}
	if strings.Contains(checked, "a-stencil-render") || strings.Contains(checked, "ClusterRole") {
		t.Errorf("install check reports objects of the release:\n%s", checked)
	}

	run(t, plane, "uninstall", "stencil", "--namespace", namespace, "--no-hooks")
	// The account of the hook, as Helm creates it.
	mustKubectl(t, plane, hookOf(t, namespace), "apply", "-f", "-")
	account, err := plane.User("system:serviceaccount:"+namespace+":stencil-uninstalled", "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	// An object of another release of that name.
	mustKubectl(t, plane, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: other, labels: {app.kubernetes.io/part-of: stencil, app.kubernetes.io/instance: stencil},
		annotations: {meta.helm.sh/release-name: stencil, meta.helm.sh/release-namespace: elsewhere}}}`, "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, plane, "", "delete", "clusterrole", "other") })
	eventually(t, "the account may delete", func() string {
		if output, ok := program(t, "stencil-manager", account.Kubeconfig, "--uninstalled", "--release="+release); !ok {
			return output
		}
		return ""
	})
	mustKubectl(t, plane, hookOf(t, namespace), "delete", "-f", "-")
	kept := func() []string {
		return slices.DeleteFunc(live(t, plane), func(name string) bool {
			return strings.HasPrefix(name, "customresourcedefinition") || strings.HasPrefix(name, "replicaset")
		})
	}
	other := []string{"clusterrole.rbac.authorization.k8s.io/other"}
	eventually(t, "nothing else is left", func() string { return gocmp.Diff(other, kept()) })

	// The command does the same for who uninstalls without hooks.
	run(t, plane, helm("install")...)
	fail()
	run(t, plane, "uninstall", "stencil", "--namespace", namespace, "--no-hooks")
	removed, ok := program(t, "stencilctl", admin, "install", "remove", "--release="+release, "--lease="+release+"-manager")
	if want := "deleted  MutatingWebhookConfiguration zz-stencil-defaults: a revision that failed had created it\n"; !ok || !strings.Contains(removed, want) {
		t.Errorf("install remove printed:\n%s", removed)
	}
	eventually(t, "nothing else is left", func() string { return gocmp.Diff(other, kept()) })
}

// hookOf returns the accounts of the hook after an uninstallation.
func hookOf(t *testing.T, namespace string) string {
	t.Helper()
	var kept []string
	text := run(t, shared.Plane(t), "template", "stencil", chartFolder(t), "--namespace", namespace, "--show-only=templates/uninstall.yaml")
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(document, "name: stencil-uninstalled") && !strings.Contains(document, "kind: Job") {
			kept = append(kept, document)
		}
	}
	return strings.Join(kept, "\n---\n")
}
