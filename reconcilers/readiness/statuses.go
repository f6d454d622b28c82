package readiness

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/templatecache"
)

// fieldManager owns what this package writes into the status of templates.
const fieldManager = "stencil-template-readiness"

var templateResource = v1beta1.GroupVersion.WithResource("virtualmachinetemplates")

// statuses writes the status of templates. It writes nothing else.
type statuses interface {
	write(ctx context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error
}

// apiServer writes statuses by server-side apply.
type apiServer struct{ client dynamic.Interface }

func newAPIServer(config *rest.Config) (*apiServer, error) {
	config = rest.CopyConfig(config)
	// A few requests at a time are limit enough, and the API server has its own.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of template readiness: %w", err)
	}
	return &apiServer{client}, nil
}

func (s *apiServer) write(ctx context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "VirtualMachineTemplate",
		// A template of the same name that came after it is another one.
		"metadata": map[string]any{"namespace": t.Namespace, "name": t.Name, "uid": string(t.UID)},
		"status":   status,
	})
	if err != nil {
		return fmt.Errorf("encoding the status of VirtualMachineTemplate %s/%s: %w", t.Namespace, t.Name, err)
	}
	patch := &unstructured.Unstructured{}
	if err := patch.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("encoding the status of VirtualMachineTemplate %s/%s: %w", t.Namespace, t.Name, err)
	}
	_, err = s.client.Resource(templateResource).Namespace(t.Namespace).
		ApplyStatus(ctx, t.Name, patch, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// Deleted, or replaced by another, while it was looked at.
		return nil
	}
	return fmt.Errorf("writing the status of VirtualMachineTemplate %s/%s: %w", t.Namespace, t.Name, err)
}
