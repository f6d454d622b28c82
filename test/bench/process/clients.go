package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/bench/catalogue"
	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/platform"
)

// target is the namespace for which templates are listed.
const target = "bench-team"

// number of the requested template.
const number = 0

// parameters are what is sent to the server.
var parameters = []byte(`{"parameters": {"NAME": "bench-1", "INSTANCETYPE": "u1.large"}}`)

// clients of a user, with a connection each.
type clients struct {
	user *controlplane.User
	each []rest.Interface
}

func newClients(ctx context.Context, stencil *platform.Platform) (*clients, error) {
	user, err := stencil.Plane.User("ada")
	if err != nil {
		return nil, err
	}
	if err := stencil.Plane.Grant(ctx, user, catalogue.Namespace(number), rights()...); err != nil {
		return nil, err
	}
	for where, rule := range map[string]rbacv1.PolicyRule{
		"":     {APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplates"}, Verbs: []string{"use"}},
		target: {APIGroups: []string{group}, Resources: []string{"availabletemplates"}, Verbs: []string{"list"}},
	} {
		if err := stencil.Plane.Grant(ctx, user, where, rule); err != nil {
			return nil, err
		}
	}
	c := &clients{user: user}
	for range crowd {
		config := user.Config()
		// Connections are shared by clients with the same dialer.
		config.Dial = (&net.Dialer{}).DialContext
		config.GroupVersion = &schema.GroupVersion{Group: group, Version: "v1beta1"}
		config.APIPath = "/apis"
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		config.QPS = -1
		client, err := rest.RESTClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("making a client of the API server: %w", err)
		}
		c.each = append(c.each, client)
	}
	return c, nil
}

// template is the path of a subresource of the template.
func (c *clients) template(subresource string) string {
	return "/apis/" + group + "/v1beta1/namespaces/" + catalogue.Namespace(number) + "/virtualmachinetemplates/" + catalogue.Name(number) + "/" + subresource
}

func (c *clients) post(ctx context.Context, client int, path, dryRun string, body []byte) ([]byte, error) {
	request := c.each[client].Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body)
	if dryRun != "" {
		request.Param("dryRun", dryRun)
	}
	return request.Do(ctx).Raw()
}

func (c *clients) process(ctx context.Context, client int) error {
	return c.named(c.post(ctx, client, c.template("process"), "", parameters))
}

// list requests all templates that the user may use in a governed namespace.
func (c *clients) list(templates int) load.Send {
	return func(ctx context.Context, client int) error {
		answer, err := c.each[client].Get().AbsPath("/apis/" + group + "/v1beta1/namespaces/" + target + "/availabletemplates").Do(ctx).Raw()
		if found := bytes.Count(answer, []byte(`"allowed":true`)); err == nil && found != templates {
			err = fmt.Errorf("%d templates are allowed, not %d", found, templates)
		}
		return err
	}
}

// govern makes a namespace in which one approval allows all templates.
func govern(ctx context.Context, stencil *platform.Platform) error {
	approval := gen.Approval("bench", gen.Governs(target), gen.AnyValue("INSTANCETYPE"))
	for i := range catalogue.Namespaces {
		gen.Approves(catalogue.Namespace(i) + "/*")(approval)
	}
	result, err := stencil.Plane.Kubectl(ctx, nil, gen.Manifest(gen.Namespace(target), approval), "apply", "-f", "-")
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	if err != nil {
		return fmt.Errorf("creating a governed namespace: %w", err)
	}
	return nil
}

// idle sends requests to a server that does nothing.
func (c *clients) idle(i *idler) load.Send {
	return func(ctx context.Context, client int) error {
		return c.named(c.post(ctx, client, i.path(), "", parameters))
	}
}

// create stores nothing, as plain does not, so that etcd does not grow from round to round.
func (c *clients) create(ctx context.Context, client int) error {
	return c.named(c.post(ctx, client, c.template("create"), "All", parameters))
}

func (c *clients) plain(complete []byte) load.Send {
	return func(ctx context.Context, client int) error {
		return c.named(c.post(ctx, client, "/apis/kubevirt.io/v1/namespaces/"+catalogue.Namespace(number)+"/virtualmachines", "All", complete))
	}
}

// named returns an error unless a response contains the VM.
func (c *clients) named(answer []byte, err error) error {
	if err == nil && !bytes.Contains(answer, []byte(`"bench-1"`)) {
		err = fmt.Errorf("not the VM that was expected: %s", answer)
	}
	return err
}
