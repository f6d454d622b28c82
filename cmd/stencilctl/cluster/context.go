package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Resources that policies evaluate.
var (
	VirtualMachines        = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	VirtualMachineTemplate = v1beta1.GroupVersion.WithResource("virtualmachinetemplates")
	TemplateRequests       = v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests")
	TemplateImports        = v1beta1.GroupVersion.WithResource("virtualmachinetemplateimports")
	TemplateExports        = v1beta1.GroupVersion.WithResource("virtualmachinetemplateexports")
)

var (
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	revisions  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

// Context is the context of the objects that policies evaluate. Each object in it is read
// once. It is safe for concurrent use.
type Context struct {
	client *Client

	mutex   sync.Mutex
	missing []string

	namespaces memo[string, rego.Namespace]
	templates  memo[machine.Reference, *templatecache.Template]
	sizes      memo[sizing.Reference, size]
}

type size struct {
	object map[string]any
	err    error
}

// NewContext returns an empty context that reads from a cluster.
func NewContext(c *Client) *Context { return &Context{client: c} }

// Missing returns the objects that could not be read, with the error, in alphabetical order. Policies were evaluated
// without them.
func (s *Context) Missing() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Sorted(slices.Values(s.missing))
}

// Case returns the case of a stored object as if it were created now, by an unspecified user.
func (s *Context) Case(ctx context.Context, kind string, object map[string]any) *policyinput.Case {
	metadata, _ := object["metadata"].(map[string]any)
	namespace := machine.StringAt(metadata, "namespace")
	c := &policyinput.Case{
		Request: rego.Request{Operation: "CREATE", Kind: kind, Namespace: namespace, Name: machine.StringAt(metadata, "name")},
		Object:  object, IgnoreSubjects: true,
		Namespace: s.Namespace(ctx, namespace, nil),
	}
	if kind != rego.KindVirtualMachine {
		return c
	}
	if origin, found := policyinput.OriginOf(object, namespace); found {
		stored := s.template(ctx, origin.Reference)
		if stored == nil {
			c.Template = origin.Template(nil, nil)
		} else {
			// A template that does not compile is included without parameters.
			compiled, _ := stored.Compiled()
			c.Template = origin.Template(stored.Metadata(), compiled)
		}
	}
	return c
}

// Miss adds what could not be read to Missing.
func (s *Context) Miss(what string, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.missing = append(s.missing, fmt.Sprintf("%s: %v", what, err))
}

// Namespace returns a namespace with its labels and with others. One that cannot be read has only these.
func (s *Context) Namespace(ctx context.Context, name string, labels map[string]string) rego.Namespace {
	n := s.namespaces.get(name, func() rego.Namespace {
		n := rego.Namespace{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}
		var read corev1.Namespace
		if err := s.read(ctx, namespaces, "", name, &read); err != nil {
			s.Miss("labels of namespace "+name, err)
		} else {
			n.Labels, n.Annotations = read.Labels, read.Annotations
		}
		return n
	})
	if len(labels) > 0 {
		n.Labels = maps.Clone(n.Labels)
		maps.Copy(n.Labels, labels)
	}
	return n
}

// template returns a template, nil for one that does not exist or cannot be read.
func (s *Context) template(ctx context.Context, at machine.Reference) *templatecache.Template {
	return s.templates.get(at, func() *templatecache.Template {
		var read v1beta1.VirtualMachineTemplate
		err := s.read(ctx, VirtualMachineTemplate, at.Namespace, at.Name, &read)
		switch {
		case errors.Is(err, errMissing):
			return nil
		case err != nil:
			s.Miss("template "+at.String(), err)
			return nil
		default:
			return templatecache.Compile(&read)
		}
	})
}

var errMissing = errors.New("it does not exist")

// read reads an object and decodes it into its type.
func (s *Context) read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into any) error {
	object, err := s.client.Get(ctx, resource, namespace, name)
	if err != nil {
		return err
	}
	if object == nil {
		return errMissing
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
