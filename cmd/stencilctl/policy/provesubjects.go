package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// provenSubjects are what prove is about, from files or from a cluster.
type provenSubjects struct {
	templates []*provenTemplate
	approvals []*provenApproval
	namespace func(ctx context.Context, name string) rego.Namespace
	sizes     sizing.Resolver
	// missing returns what could not be read.
	missing func() []string
}

// provenTemplate implements sample.Template.
type provenTemplate struct {
	file     string
	metadata *metav1.ObjectMeta
	compiled *template.Compiled
	invalid  error
}

// always generates the first value of every generator, so that results are the same every time.
type always struct{}

func (always) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

func newProvenTemplate(file string, object *v1beta1.VirtualMachineTemplate) *provenTemplate {
	t := &provenTemplate{file: file, metadata: &object.ObjectMeta}
	t.compiled, t.invalid = template.Compile(object, template.WithRandom(always{}))
	return t
}

// Compiled implements sample.Template.
func (t *provenTemplate) Compiled() (*template.Compiled, error) { return t.compiled, t.invalid }

// Metadata implements sample.Template.
func (t *provenTemplate) Metadata() *metav1.ObjectMeta { return t.metadata }

func (t *provenTemplate) name() string { return t.metadata.Namespace + "/" + t.metadata.Name }

// has reports whether the template has a parameter.
func (t *provenTemplate) has(parameter string) bool {
	return t.compiled != nil && slices.ContainsFunc(t.compiled.Parameters(), func(p v1beta1.Parameter) bool { return p.Name == parameter })
}

// approvable returns the template as approvals evaluate it.
func (t *provenTemplate) approvable() approval.Template {
	found := approval.Template{Namespace: t.metadata.Namespace, Name: t.metadata.Name, Labels: t.metadata.Labels}
	if t.compiled != nil {
		found.Digest = t.compiled.Digest()
	}
	return found
}

type provenApproval struct {
	compiled   *approval.Approval
	namespaces []string
}

const kindApproval = "TemplateApproval"

// fromFiles reads the objects of files.
func (p *proving) fromFiles(_ context.Context, reader *source.Reader) (*provenSubjects, error) {
	objects, err := reader.Objects(p.files)
	if err != nil {
		return nil, err
	}
	found := &provenSubjects{missing: func() []string { return nil }}
	for i := range objects {
		object := &objects[i]
		switch {
		case object.IsTemplate():
			read, _, err := object.Template()
			if err != nil {
				return nil, err
			}
			if read.Namespace == "" {
				read.Namespace = metav1.NamespaceDefault
			}
			found.templates = append(found.templates, newProvenTemplate(object.File, read))
		case object.Kind == kindApproval:
			var read v1alpha1.TemplateApproval
			if err := yaml.UnmarshalStrict(object.Raw, &read); err != nil {
				return nil, cli.Usage(fmt.Errorf("%s: %s: %w", object.File, object, source.Suggesting(err, read)))
			}
			compiled, err := approval.Compile(&read)
			if err != nil {
				return nil, cli.Usage(fmt.Errorf("%s: %s: %w", object.File, object, err))
			}
			found.approvals = append(found.approvals, &provenApproval{compiled, read.Spec.Namespaces})
		}
	}
	if len(found.templates) == 0 {
		return nil, cli.Usage(errors.New("no file holds a VirtualMachineTemplate (-f)"))
	}
	fixture, err := offline.NewFixture(objects, nil, nil)
	if err != nil {
		return nil, err
	}
	found.namespace = func(_ context.Context, name string) rego.Namespace { return fixture.Namespace(name, p.labels) }
	found.sizes = fixture
	return found, nil
}

// approvalResource is the resource of approvals in a cluster.
var approvalResource = v1alpha1.GroupVersion.WithResource("templateapprovals")

// fromCluster reads the objects of a cluster.
func (p *proving) fromCluster(ctx context.Context, _ *source.Reader) (*provenSubjects, error) {
	client, err := p.cluster.Client(p.streams.Err)
	if err != nil {
		return nil, err
	}
	client.Namespace = ""
	from := cluster.NewContext(client)
	found := &provenSubjects{sizes: from, missing: from.Missing}
	found.namespace = func(ctx context.Context, name string) rego.Namespace { return from.Namespace(ctx, name, p.labels) }
	err = client.List(ctx, cluster.VirtualMachineTemplate, "", func(object map[string]any) error {
		var read v1beta1.VirtualMachineTemplate
		if err := templates.Decode(object, &read); err != nil {
			return cli.Cluster(fmt.Errorf("reading a VirtualMachineTemplate: %w", err))
		}
		found.templates = append(found.templates, newProvenTemplate("", &read))
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = client.List(ctx, approvalResource, "", func(object map[string]any) error {
		var read v1alpha1.TemplateApproval
		if err := templates.Decode(object, &read); err != nil {
			return cli.Cluster(fmt.Errorf("reading a TemplateApproval: %w", err))
		}
		compiled, err := approval.Compile(&read)
		if err != nil {
			// It approves nothing.
			compiled = approval.Closed(&read, err)
			fmt.Fprintf(p.streams.Err, "%s %v\n", p.streams.Paint(cli.Yellow, "note:"), compiled.Err())
		}
		found.approvals = append(found.approvals, &provenApproval{compiled, read.Spec.Namespaces})
		return nil
	})
	return found, err
}
