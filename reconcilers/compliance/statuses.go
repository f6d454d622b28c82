package compliance

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/templatecache"
)

// fieldManager owns the condition PolicyCompliant of templates.
const fieldManager = "stencil-policy-compliance"

var (
	templateResource = v1beta1.GroupVersion.WithResource("virtualmachinetemplates")
	policyResource   = v1alpha1.GroupVersion.WithResource("virtualmachinepolicies")
)

// statuses writes what was found. It writes nothing else.
type statuses interface {
	// template writes the condition of a template, or takes it away when it is nil.
	template(ctx context.Context, t *templatecache.Template, condition *metav1.Condition) error
	// policy writes status.templates of a policy.
	policy(ctx context.Context, name string, templates *v1alpha1.PolicyTemplates) error
}

// apiServer writes statuses by server-side apply.
type apiServer struct{ client dynamic.Interface }

func newAPIServer(config *rest.Config) (*apiServer, error) {
	config = rest.CopyConfig(config)
	// One request at a time is limit enough, and the API server has its own.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the policy check of templates: %w", err)
	}
	return &apiServer{client}, nil
}

func (s *apiServer) template(ctx context.Context, t *templatecache.Template, condition *metav1.Condition) error {
	// Without the list, which stays empty, the API server would make null of a status that nobody else writes, and refuse it.
	conditions := []metav1.Condition{}
	if condition != nil {
		conditions = append(conditions, *condition)
	}
	object := map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "VirtualMachineTemplate",
		// A template of the same name that came after it is another one.
		"metadata": map[string]any{"namespace": t.Namespace, "name": t.Name, "uid": string(t.UID)},
		"status":   map[string]any{"conditions": conditions},
	}
	patch, err := encode(object)
	if err != nil {
		return err
	}
	_, err = s.client.Resource(templateResource).Namespace(t.Namespace).
		ApplyStatus(ctx, t.Name, patch, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return ignoreGone(err, "VirtualMachineTemplate "+t.Namespace+"/"+t.Name)
}

func (s *apiServer) policy(ctx context.Context, name string, templates *v1alpha1.PolicyTemplates) error {
	patch, err := encode(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "VirtualMachinePolicy",
		"metadata": map[string]any{"name": name},
		"status":   map[string]any{"templates": templates},
	})
	if err != nil {
		return err
	}
	_, err = s.client.Resource(policyResource).
		ApplyStatus(ctx, name, patch, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManagerPolicyTemplates, Force: true})
	return ignoreGone(err, "VirtualMachinePolicy "+name)
}

func encode(object map[string]any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	return u, nil
}

// ignoreGone is for objects that were deleted, or replaced, while they were judged.
func ignoreGone(err error, what string) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("writing the status of %s: %w", what, err)
}
