package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/charts"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/preflight"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// longest is how much of a message of virt-operator is shown, in bytes.
const longest = 300

var (
	bindings    = preflight.Policies.GroupVersion().WithResource("validatingadmissionpolicybindings")
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// handover moves the definitions of templates, and their APIServices, between KubeVirt's template component and a Helm release, with their UIDs.
type handover struct {
	client *cluster.Client
	// namespace and name are the release's, policy is the name of its guard.
	namespace, name, policy string
	// kubeVirtNamespace and kubeVirtName of the KubeVirt object.
	kubeVirtNamespace, kubeVirtName string
	backup                          backup
}

// start reads what the steps need. The cluster must have one KubeVirt.
func (h *handover) start(ctx context.Context) error {
	var found []installation.KubeVirt
	err := h.client.List(ctx, preflight.KubeVirts, "", func(object map[string]any) error {
		found = append(found, preflight.KubeVirt(object))
		return nil
	})
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return cli.Cluster(fmt.Errorf("the cluster has %s, and one is needed", cli.Count(len(found), "KubeVirt object", "KubeVirt objects")))
	}
	h.kubeVirtNamespace, h.kubeVirtName, h.policy = found[0].Namespace, found[0].Name, preflight.Guard(h.name)
	return nil
}

// owned are the labels and annotations of objects that belong to the release.
func (h *handover) owned() map[string]any {
	return map[string]any{
		"labels":      map[string]any{installation.LabelManagedBy: installation.ByHelm},
		"annotations": map[string]any{installation.AnnotationRelease: h.name, installation.AnnotationReleaseNamespace: h.namespace},
	}
}

// operators are the labels and annotations by which virt-operator finds its objects.
func (h *handover) operators() map[string]any {
	return map[string]any{
		"labels":      map[string]any{installation.LabelManagedBy: installation.ByOperator},
		"annotations": map[string]any{installation.AnnotationRelease: nil, installation.AnnotationReleaseNamespace: nil},
	}
}

// misowned returns which objects have another owner than wanted. Objects that do not exist are none, unless they are required.
func (h *handover) misowned(ctx context.Context, resource schema.GroupVersionResource, names []string, owner string, required bool) ([]string, error) {
	var found []string
	for _, name := range names {
		object, err := h.client.Get(ctx, resource, "", name)
		switch {
		case err != nil:
			return nil, cluster.Failed("reading "+resource.Resource+" "+name, err)
		case object == nil && required:
			return nil, cli.Cluster(fmt.Errorf("%s %s does not exist", resource.Resource, name))
		case object == nil:
			continue
		}
		metadata := machine.MapAt(object, "metadata")
		if metadata["deletionTimestamp"] != nil {
			return nil, cli.Cluster(fmt.Errorf("%s %s is being deleted. All its objects go with it; the file has them", resource.Resource, name))
		}
		if machine.StringAt(machine.MapAt(metadata, "labels"), installation.LabelManagedBy) != owner {
			found = append(found, name)
		}
	}
	return found, nil
}

// give gives objects to an owner, by the labels and annotations that mark it.
func (h *handover) give(ctx context.Context, resource schema.GroupVersionResource, names []string, owner string, required bool, marks map[string]any) error {
	wrong, err := h.misowned(ctx, resource, names, owner, required)
	if err != nil {
		return err
	}
	for _, name := range wrong {
		if _, err := h.client.Patch(ctx, resource, "", name, map[string]any{"metadata": marks}, cluster.Written{}); err != nil {
			return cluster.Failed("changing the owner of "+resource.Resource+" "+name, err)
		}
	}
	return nil
}

// owners is a step that gives objects to an owner.
func (h *handover) owners(name string, resource schema.GroupVersionResource, names []string, owner string, required bool, marks map[string]any) step {
	return step{
		name: name,
		missing: func(ctx context.Context) (string, error) {
			wrong, err := h.misowned(ctx, resource, names, owner, required)
			if err != nil || len(wrong) == 0 {
				return "", err
			}
			return "another owner has " + strings.Join(wrong, " and "), nil
		},
		act: func(ctx context.Context) error { return h.give(ctx, resource, names, owner, required, marks) },
	}
}

// guarded is the step that puts the policy in place, and waits until the API server applies it. That is tried by a dry run, which is not sent as long as there is no policy.
func (h *handover) guarded() step {
	return step{
		name: "deny the deletion of the definitions",
		missing: func(ctx context.Context) (string, error) {
			for _, resource := range []schema.GroupVersionResource{preflight.Policies, bindings} {
				object, err := h.client.Get(ctx, resource, "", h.policy)
				if err != nil {
					return "", cluster.Failed("reading "+resource.Resource+" "+h.policy, err)
				}
				if object == nil {
					return "there is no " + resource.Resource + " " + h.policy, nil
				}
			}
			for _, name := range installation.Definitions {
				err := h.client.Delete(ctx, preflight.Definitions, "", name, cluster.Written{DryRun: true})
				switch {
				case err == nil:
					return "the API server would delete " + name, nil
				case !strings.Contains(err.Error(), h.policy):
					return "", cluster.Failed("deleting "+name+" in a dry run", err)
				}
			}
			return "", nil
		},
		act: h.createGuard,
	}
}

func (h *handover) createGuard(ctx context.Context) error {
	content, err := charts.Files.ReadFile(charts.Policies + "/definitions.yaml")
	if err != nil {
		return err
	}
	var policy map[string]any
	if err := yaml.Unmarshal(content, &policy); err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	metadata := h.owned()
	metadata["name"] = h.policy
	policy["metadata"] = metadata
	binding := map[string]any{
		"apiVersion": bindings.GroupVersion().String(), "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
		"spec": map[string]any{"policyName": h.policy, "validationActions": []any{"Deny"}},
	}
	for resource, object := range map[schema.GroupVersionResource]map[string]any{preflight.Policies: policy, bindings: binding} {
		if _, err := h.client.Create(ctx, resource, "", object, cluster.Written{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return cluster.Failed("creating "+resource.Resource+" "+h.policy, err)
		}
	}
	return nil
}

// unguarded is the step that removes the policy.
func (h *handover) unguarded() step {
	return step{
		name: "permit the deletion of the definitions",
		missing: func(ctx context.Context) (string, error) {
			for _, resource := range []schema.GroupVersionResource{bindings, preflight.Policies} {
				object, err := h.client.Get(ctx, resource, "", h.policy)
				if err != nil {
					return "", cluster.Failed("reading "+resource.Resource+" "+h.policy, err)
				}
				if object != nil {
					return resource.Resource + " " + h.policy + " exists", nil
				}
			}
			return "", nil
		},
		act: func(ctx context.Context) error {
			for _, resource := range []schema.GroupVersionResource{bindings, preflight.Policies} {
				if err := h.client.Delete(ctx, resource, "", h.policy, cluster.Written{}); err != nil && !apierrors.IsNotFound(err) {
					return cluster.Failed("deleting "+resource.Resource+" "+h.policy, err)
				}
			}
			return nil
		},
	}
}

// kubeVirt reads the KubeVirt object.
func (h *handover) kubeVirt(ctx context.Context) (map[string]any, error) {
	object, err := h.client.Get(ctx, preflight.KubeVirts, h.kubeVirtNamespace, h.kubeVirtName)
	if err == nil && object == nil {
		err = errors.New("it does not exist any more")
	}
	if err != nil {
		return nil, cluster.Failed("reading the KubeVirt "+h.kubeVirtNamespace+"/"+h.kubeVirtName, err)
	}
	return object, nil
}

// component is the step that switches KubeVirt's template component on or off.
func (h *handover) component(name string, on bool) step {
	return step{
		name: name,
		missing: func(ctx context.Context) (string, error) {
			object, err := h.kubeVirt(ctx)
			if err != nil {
				return "", err
			}
			if is, why := preflight.KubeVirt(object).Component(); is != on {
				return why, nil
			}
			return "", nil
		},
		act: func(ctx context.Context) error {
			object, err := h.kubeVirt(ctx)
			if err != nil {
				return err
			}
			if is, why := preflight.KubeVirt(object).Component(); on && !is && !strings.Contains(why, "virtTemplateDeployment") {
				return cli.Cluster(fmt.Errorf("%s: enable it in spec.configuration.developerConfiguration of the KubeVirt %s/%s, and run the command again", why, h.kubeVirtNamespace, h.kubeVirtName))
			}
			patch := map[string]any{"spec": map[string]any{"configuration": map[string]any{"virtTemplateDeployment": map[string]any{"enabled": on}}}}
			if _, err := h.client.Patch(ctx, preflight.KubeVirts, h.kubeVirtNamespace, h.kubeVirtName, patch, cluster.Written{}); err != nil {
				return cluster.Failed("changing the KubeVirt "+h.kubeVirtNamespace+"/"+h.kubeVirtName, err)
			}
			return nil
		},
	}
}

// noticed is the step that waits until virt-operator has seen that the definitions are no longer its own. Then it fails to create them, reports that, and writes nothing else;
// until then it may write its label again.
func (h *handover) noticed(give func(context.Context) error) step {
	return step{
		name: "wait until virt-operator has noticed",
		missing: func(ctx context.Context) (string, error) {
			wrong, err := h.misowned(ctx, preflight.Definitions, installation.Definitions, installation.ByHelm, true)
			if err != nil || len(wrong) > 0 {
				return "virt-operator's label is on " + strings.Join(wrong, " and "), err
			}
			object, err := h.kubeVirt(ctx)
			if err != nil {
				return "", err
			}
			if on, _ := preflight.KubeVirt(object).Component(); !on {
				return "", nil
			}
			return untried(object), nil
		},
		act: give,
	}
}

// started is the step that waits until virt-operator has seen that its component is on: it tries to create the definitions, and fails, because they exist without its label.
// Before that it would delete an APIService with its label, and create another one later.
func (h *handover) started() step {
	return step{
		name: "wait until virt-operator has started",
		missing: func(ctx context.Context) (string, error) {
			wrong, err := h.misowned(ctx, preflight.Definitions, installation.Definitions, installation.ByOperator, true)
			if err != nil || len(wrong) == 0 {
				return "", err
			}
			object, err := h.kubeVirt(ctx)
			if err != nil {
				return "", err
			}
			return untried(object), nil
		},
	}
}

// untried returns why it is not known that virt-operator has tried to create definitions that exist without its label.
func untried(object map[string]any) string {
	if _, message := condition(object, "Synchronized"); !strings.Contains(message, "already exists") {
		return "virt-operator does not run, or has not tried to create the definitions again"
	}
	return ""
}

// deployed is the step that waits until virt-operator has done all that the KubeVirt object says.
func (h *handover) deployed(give func(context.Context) error) step {
	return step{
		name: "wait until KubeVirt has settled",
		missing: func(ctx context.Context) (string, error) {
			object, err := h.kubeVirt(ctx)
			if err != nil {
				return "", err
			}
			return undeployed(object), nil
		},
		act: give,
	}
}

// undeployed returns why virt-operator has not done yet what a KubeVirt object says.
func undeployed(object map[string]any) string {
	metadata, status := machine.MapAt(object, "metadata"), machine.MapAt(object, "status")
	if value, message := condition(object, "Synchronized"); value == "False" {
		return "virt-operator reports: " + message
	}
	for _, want := range []struct{ kind, value string }{{"Available", "True"}, {"Progressing", "False"}, {"Degraded", "False"}} {
		switch value, message := condition(object, want.kind); value {
		case want.value:
		case "":
			return "no condition " + want.kind
		default:
			return fmt.Sprintf("condition %s is %s: %s", want.kind, value, message)
		}
	}
	switch {
	case machine.StringAt(status, "phase") != "Deployed":
		return "phase " + machine.StringAt(status, "phase")
	case machine.StringAt(status, "observedDeploymentID") != machine.StringAt(status, "targetDeploymentID"),
		fmt.Sprint(status["observedGeneration"]) != fmt.Sprint(metadata["generation"]):
		return "virt-operator has not seen the latest change"
	}
	return ""
}

// condition returns status and message of a condition.
func condition(object map[string]any, kind string) (status, message string) {
	all, _ := machine.MapAt(object, "status")["conditions"].([]any)
	for _, one := range all {
		if fields, _ := one.(map[string]any); fields["type"] == kind {
			// A message may have a whole definition in it.
			message, _ = fields["message"].(string)
			if len(message) > longest {
				message = "…" + strings.ToValidUTF8(message[len(message)-longest:], "")
			}
			status, _ = fields["status"].(string)
			return status, message
		}
	}
	return "", ""
}
