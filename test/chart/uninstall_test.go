package chart

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	var want []string
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Job", "Role", "RoleBinding", "ServiceAccount"} {
		want = append(want, kind+"/stencil-uninstall", kind+"/stencil-uninstalled")
	}
	if got := hooked(rendered); !slices.Equal(got, want) {
		t.Fatalf("the objects of the hooks are %v, want %v", got, want)
	}
	for _, name := range want {
		annotations := rendered[name].GetAnnotations()
		weight, hook := "-1", "pre-delete"
		if strings.HasPrefix(name, "Job/") {
			weight = "0"
		}
		if strings.HasSuffix(name, "-uninstalled") {
			hook = "post-delete"
		}
		if annotations["helm.sh/hook"] != hook || annotations["helm.sh/hook-weight"] != weight || annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s: %v", name, annotations)
		}
	}
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(rendered.get(t, "Job/stencil-uninstall").Object, &job, true); err != nil {
		t.Fatal(err)
	}
	if job.Spec.ActiveDeadlineSeconds == nil || job.Spec.TTLSecondsAfterFinished == nil {
		t.Errorf("the Job has the deadline %v, and is deleted after %v", job.Spec.ActiveDeadlineSeconds, job.Spec.TTLSecondsAfterFinished)
	}
	pod := job.Spec.Template.Spec
	if got := pod.Containers[0]; got.Image != "registry.example.com/manager:v1" || !slices.Equal(got.Args, []string{"--uninstall", "--leader-election-id=stencil-manager", "--zap-log-level=info"}) {
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

// permissions lists the permissions of roles, as "verb group/resource name", and "*" for any name.
func permissions(t *testing.T, rendered objects, roles ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range roles {
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rendered.get(t, name).Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) == 0 {
				rule.ResourceNames = []string{"*"}
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, object := range rule.ResourceNames {
						found[verb+" "+rule.APIGroups[0]+"/"+resource+" "+object] = true
					}
				}
			}
		}
	}
	return found
}

// The hook deletes what the manager has created, so that it needs no permission that the manager does not have.
func TestUninstallHookMayDoNoMoreThanTheManager(t *testing.T) {
	rendered := render(t, "stencil", "{}")
	manager := permissions(t, rendered, "ClusterRole/stencil-manager", "Role/stencil-manager")
	hook := permissions(t, rendered, "ClusterRole/stencil-uninstall", "Role/stencil-uninstall")
	if len(hook) < 20 {
		t.Fatalf("the hook has the permissions %v", hook)
	}
	for permission := range hook {
		if !manager[permission] {
			t.Errorf("the manager may not %s", permission)
		}
	}
}
