package chart

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// hooked returns the objects that exist only while the release is uninstalled.
func hooked(rendered objects) []string {
	var names []string
	for name, object := range rendered {
		if object.GetAnnotations()["helm.sh/hook"] != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestUninstallHook(t *testing.T) {
	rendered := render(t, "stencil", `{manager: {image: {repository: registry.example.com/manager, tag: v1}, tolerations: [{key: infra}]}}`)
	want := []string{
		"ClusterRole/stencil-uninstall", "ClusterRoleBinding/stencil-uninstall", "Job/stencil-uninstall", "Role/stencil-uninstall",
		"RoleBinding/stencil-uninstall", "ServiceAccount/stencil-uninstall",
	}
	if got := hooked(rendered); !slices.Equal(got, want) {
		t.Fatalf("the objects of the hook are %v, want %v", got, want)
	}
	for _, name := range want {
		annotations := rendered[name].GetAnnotations()
		weight := "-1"
		if strings.HasPrefix(name, "Job/") {
			weight = "0"
		}
		if annotations["helm.sh/hook"] != "pre-delete" || annotations["helm.sh/hook-weight"] != weight || annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s: %v", name, annotations)
		}
	}
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(rendered.get(t, "Job/stencil-uninstall").Object, &job, true); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if got := pod.Containers[0]; got.Image != "registry.example.com/manager:v1" || !slices.Equal(got.Args, []string{"--uninstall", "--zap-log-level=info", "--leader-election-id=stencil-manager"}) {
		t.Errorf("the container is %+v", got)
	}
	if pod.ServiceAccountName != "stencil-uninstall" || len(pod.Tolerations) != 1 || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod is %+v", pod)
	}
	// A manager selected by the Service would receive requests.
	if got := job.Spec.Template.Labels["app.kubernetes.io/component"]; got != "uninstall" {
		t.Errorf("the component is %q", got)
	}
}

func TestUninstallHookIsOptional(t *testing.T) {
	for _, values := range []string{"{uninstall: {hook: false}}", "{manager: {enabled: false}, webhooks: {url: 'https://localhost:1'}}"} {
		if got := hooked(render(t, "stencil", values)); len(got) > 0 {
			t.Errorf("%s: %v", values, got)
		}
	}
}
