package offline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Operations of a request.
const (
	Create = "CREATE"
	Update = "UPDATE"
	Delete = "DELETE"
)

// kindNamespace and kindRevision are kinds of objects that requests are built from, in addition
// to those of package policyinput.
const (
	kindNamespace = "Namespace"
	kindRevision  = "ControllerRevision"
)

// Request holds the properties of a request that are not in files.
type Request struct {
	// Operation is Create, Update or Delete. If it is empty, an object that has an old version
	// is updated, and any other is created.
	Operation string
	// Namespace is the namespace of objects that have none.
	Namespace string
	// User is the requesting user. Without a name and groups the user is unspecified, and the
	// subjects in the match of policies are ignored.
	User rego.UserInfo
	// NamespaceLabels are added to the labels of every namespace.
	NamespaceLabels map[string]string
	DryRun          bool
	// Time is when the request is made; zero is unknown, which policies see as null.
	Time time.Time
}

// Fixture holds the objects in files.
type Fixture struct {
	// Subjects are the objects that policies evaluate, in the order of the files.
	Subjects []source.Object
	// Old are the objects before an update.
	Old []source.Object

	templates  map[machine.Reference]*templatecache.Template
	namespaces map[string]rego.Namespace
	sizes      []source.Object
}

// NewFixture sorts objects by their purpose. Context objects, such as templates and namespaces,
// may be among the subjects.
func NewFixture(subjects, old, contextObjects []source.Object) (*Fixture, error) {
	s := &Fixture{Old: old, templates: map[machine.Reference]*templatecache.Template{}, namespaces: map[string]rego.Namespace{}}
	for _, object := range subjects {
		switch kind := object.Kind; {
		case slices.Contains(rego.Kinds(), kind), kind == machine.KindInstance, kind == machine.KindReplicaSet, kind == machine.KindPool:
			s.Subjects = append(s.Subjects, object)
		}
	}
	if len(s.Subjects) == 0 {
		return nil, cli.Usage(fmt.Errorf("there is no object to evaluate: want one of the kinds %s", strings.Join(rego.Kinds(), ", ")))
	}
	for _, objects := range [][]source.Object{subjects, contextObjects} {
		for i := range objects {
			if err := s.addContext(&objects[i]); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *Fixture) addContext(object *source.Object) error {
	switch object.Kind {
	case rego.KindVirtualMachineTemplate:
		var template v1beta1.VirtualMachineTemplate
		if err := yaml.Unmarshal(object.Raw, &template); err != nil {
			return cli.Usage(fmt.Errorf("%s: %s: %w", object.File, object, err))
		}
		s.templates[machine.Reference{Namespace: template.Namespace, Name: template.Name}] = templatecache.Compile(&template)
	case kindNamespace:
		metadata, _ := object.Content["metadata"].(map[string]any)
		s.namespaces[object.Name()] = rego.Namespace{Labels: texts(metadata["labels"]), Annotations: texts(metadata["annotations"])}
	case kindRevision, sizing.KindInstancetype, sizing.KindClusterInstancetype, sizing.KindPreference, sizing.KindClusterPreference:
		s.sizes = append(s.sizes, *object)
	}
	return nil
}

func texts(value any) map[string]string {
	written, _ := value.(map[string]any)
	read := map[string]string{}
	for key := range written {
		read[key] = machine.StringAt(written, key)
	}
	return read
}

// template returns a template. A template without namespace in its file matches any.
func (s *Fixture) template(namespace, name string) *templatecache.Template {
	if found := s.templates[machine.Reference{Namespace: namespace, Name: name}]; found != nil {
		return found
	}
	return s.templates[machine.Reference{Name: name}]
}

// Case is a request built from files.
type Case struct {
	policyinput.Case
	// Rendered is the template that the object was rendered from by Case, empty when it was
	// not.
	Rendered string
	// Notes are remarks about the case for readers of the result.
	Notes []string
}

// Case builds the request about one subject. The error is about the files.
func (s *Fixture) Case(ctx context.Context, subject *source.Object, r Request) (*Case, error) {
	c := &Case{}
	object := subject.Content
	namespace := subject.Namespace()
	if namespace == "" {
		namespace = r.Namespace
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			object["metadata"] = metadata
		}
		metadata["namespace"] = namespace
	}
	old := s.old(subject)
	c.Request = rego.Request{
		Operation: r.Operation, Kind: subject.Kind, Namespace: namespace, Name: subject.Name(),
		UserInfo: r.User, DryRun: r.DryRun, Time: r.Time,
	}
	c.IgnoreSubjects = r.User.Username == "" && len(r.User.Groups) == 0
	if c.Request.Operation == "" {
		c.Request.Operation = Create
		if old != nil {
			c.Request.Operation = Update
		}
	}
	c.Namespace = s.Namespace(namespace, r.NamespaceLabels)

	switch c.Request.Operation {
	case Delete:
		c.OldObject = object
	case Update:
		if old == nil {
			return nil, cli.Usage(fmt.Errorf("%s: %s is updated, but no file contains the old object (--old)", subject.File, subject))
		}
		c.Object, c.OldObject = object, old
	default:
		c.Object = object
		if err := s.render(ctx, c, r.User); err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: %s: %w", subject.File, subject, err))
		}
	}
	c.View()
	s.attachTemplate(c)
	return c, nil
}

// old returns the previous version of an object. If there is one subject and one old object,
// they match regardless of their names.
func (s *Fixture) old(subject *source.Object) map[string]any {
	if len(s.Old) == 1 && len(s.Subjects) == 1 {
		return s.Old[0].Content
	}
	for i := range s.Old {
		o := &s.Old[i]
		if o.Kind == subject.Kind && o.Name() == subject.Name() && o.Namespace() == subject.Namespace() {
			return o.Content
		}
	}
	return nil
}

// Namespace returns a namespace with its labels and with others.
func (s *Fixture) Namespace(name string, labels map[string]string) rego.Namespace {
	found := s.namespaces[name]
	n := rego.Namespace{
		// As the API server sets it.
		Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name}, Annotations: found.Annotations,
	}
	for _, given := range []map[string]string{found.Labels, labels} {
		for key, value := range given {
			n.Labels[key] = value
		}
	}
	return n
}

// attachTemplate adds the template of a VirtualMachine to the case.
func (s *Fixture) attachTemplate(c *Case) {
	if c.Request.Kind != rego.KindVirtualMachine || c.Viewed() {
		return
	}
	object := c.Object
	if c.OldObject != nil {
		object = c.OldObject
	}
	origin, found := policyinput.OriginOf(object, c.Request.Namespace)
	if !found {
		return
	}
	stored := s.template(origin.Namespace, origin.Name)
	if stored == nil {
		c.Template = origin.Template(nil, nil)
		c.Notes = append(c.Notes, fmt.Sprintf("no file holds its template %s (--template): what policies see of it is its name", origin.Reference))
		return
	}
	metadata := stored.Metadata()
	// A file does not contain the UID that the object has in a cluster.
	metadata.UID = origin.Record.UID
	compiled, invalid := stored.Compiled()
	if invalid != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("its template %s is not valid: %v", origin.Reference, invalid))
	}
	c.Template = origin.Template(metadata, compiled)
}
