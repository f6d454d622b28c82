package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/render"
)

// render renders a created VirtualMachine that references a template and has not been rendered.
// Without the template it is not changed.
func (s *Fixture) render(ctx context.Context, c *Case, user rego.UserInfo) error {
	if c.Request.Kind != rego.KindVirtualMachine {
		return nil
	}
	vm, _ := machine.Read(c.Object)
	name, names := vm.Reference()
	if _, rendered := vm.Annotations[contract.AnnotationRendered]; !names || rendered {
		return nil
	}
	reference, errs := machine.ParseReference(name, c.Request.Namespace)
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	if s.template(reference.Namespace, reference.Name) == nil {
		c.Notes = append(c.Notes, fmt.Sprintf("it is evaluated as specified; a cluster would render it from template %s", reference))
		return nil
	}
	raw, err := json.Marshal(c.Object)
	if err != nil {
		return err
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Kind:      metav1.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: rego.KindVirtualMachine},
		Resource:  metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		Namespace: c.Request.Namespace,
		Name:      c.Request.Name,
		Object:    runtime.RawExtension{Raw: raw},
		UserInfo:  authenticationv1.UserInfo{Username: user.Username, Groups: user.Groups},
	}}
	keys, _ := objects.Keys(nil).Renewed(time.Now(), func(string) bool { return true })
	others := &objects.Reader{Keys: func() objects.Keys { return keys }, Now: time.Now}
	handler := render.New(render.Options{Templates: fixtureCache{s}, Permissions: everybody{}, Approvals: none{}, Objects: &render.Objects{
		Kinds: everything{}, Keys: others.Keys, Now: others.Now,
		Try: func(context.Context, schema.GroupVersionResource, string, []byte) error { return nil },
	}})
	response := handler.Handle(ctx, request)
	if !response.Allowed {
		if response.Result != nil {
			return errors.New(response.Result.Message)
		}
		return errors.New("it cannot be rendered")
	}
	if response.Patch != nil {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			return err
		}
		if raw, err = patch.Apply(raw); err != nil {
			return err
		}
	}
	if c.Object, err = machine.Decode(raw); err != nil {
		return err
	}
	metadata, _ := c.Object["metadata"].(map[string]any)
	c.Request.Name = machine.StringAt(metadata, "name")
	read, err := others.Read(c.Object, c.Request.Namespace)
	if err != nil {
		return err
	}
	c.Objects, c.Secrets = read.Objects, read.Sensitive
	c.Rendered = reference.String()
	c.Notes = append(c.Notes, response.Warnings...)
	return nil
}

// fixtureCache provides the templates of a fixture to the webhook.
type fixtureCache struct{ fixture *Fixture }

func (s fixtureCache) Synced() bool { return true }

func (s fixtureCache) Wait(_ context.Context, namespace, name string, _ time.Duration) *templatecache.Template {
	return s.fixture.template(namespace, name)
}

func (s fixtureCache) List() []*templatecache.Template {
	var all []*templatecache.Template
	for _, template := range s.fixture.templates {
		all = append(all, template)
	}
	return all
}

// everybody permits every user to use every template: permissions are checked by the cluster
// only.
type everybody struct{}

func (everybody) Allowed(context.Context, authenticationv1.UserInfo, permission.Verb, string, string) (bool, error) {
	return true, nil
}

func (everybody) May(context.Context, authenticationv1.UserInfo, permission.Action) (bool, error) {
	return true, nil
}

// everything is every kind of object: which are created is checked by the cluster only.
type everything struct{}

func (everything) Resource(apiVersion, kind string) (schema.GroupVersionResource, error) {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return resource, nil
}

func (everything) Lent(schema.GroupResource) objects.Denied { return "" }

// none provides no approvals.
type none struct{}

func (none) Synced() bool { return true }

func (none) ApprovalsFor(string) []*approval.Approval { return nil }
