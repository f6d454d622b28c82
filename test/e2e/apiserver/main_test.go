// Package apiserver_test calls stencil-apiserver as its clients do: over HTTP through the aggregation of a real kube-apiserver, and with kubectl. The
// server has only the permissions of the chart.
package apiserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/stencilctl"
)

var (
	stencil *platform.Platform
	// binary is stencilctl.
	binary string
	// ada may process and create from the templates of each test, and has no permission on VirtualMachines. bob may only process. carl may create
	// from the template box only. dora owns VirtualMachines and may not process or create.
	ada, bob, carl, dora *controlplane.User

	// shops has one namespace for each test, with the templates.
	shops = harness.Namespaces{Prefix: "shop", Prepare: stock, Members: map[string]string{
		processors: "stencil-template-process", creators: "stencil-template-create",
		editors: "kubevirt.io:edit", viewers: "view", templateUsers: "stencil-template-user",
	}}
)

const (
	group = "subresources.template.kubevirt.io"

	// The groups have a role in the namespace of each test.
	processors    = "shop-processors"
	creators      = "shop-creators"
	editors       = "shop-editors"
	viewers       = "shop-viewers"
	templateUsers = "shop-template-users"
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Shared(ctx); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

// templates returns those of each test. box is what most use.
func templates() string {
	const rules = `[{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 134217728, "message": "too little"},
 {"name": "more", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 268435456, "message": "it is slow", "justWarning": true}]
`
	return gen.Manifest(
		gen.Template("box", gen.Spec(`message: "${NAME} has password ${PASSWORD} and the number ${NUMBER}"`), gen.Declares("NAME", "required: true"),
			gen.Declares("PASSWORD", "{sensitive: true, generate: expression, from: '[a-z]{12}'}"), gen.Declares("NUMBER", "value: '1'"),
			gen.Declares("CORES", "{type: int, value: '1', minimum: 1, maximum: 8}"), gen.Declares("UNUSED"),
			gen.Renders("${NAME}", gen.Annotation("number", "${NUMBER}"), gen.Annotation("template.kubevirt.io/created-by", "the-template"), gen.SmallSpec(),
				gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}, volumes: [{name: init, cloudInitNoCloud: {userData: "#cloud-config\npassword: ${PASSWORD}\n"}}]}}`))),
		gen.Template("crate", gen.Renders("", gen.GenerateName("crate-"), gen.SmallSpec())),
		gen.Template("ruled", gen.Annotation("validations", rules), gen.Declares("MEMORY", "value: 512Mi"),
			gen.Renders("", gen.GenerateName("ruled-"), gen.SmallSpec(), gen.Memory("${MEMORY}"))))
}

func prepare(ctx context.Context) (err error) {
	if binary, err = stencilctl.Binary(ctx); err != nil {
		return err
	}
	shops.Plane = stencil.Plane
	for name, each := range map[string]struct {
		user   **controlplane.User
		groups []string
	}{
		"ada": {&ada, []string{processors, creators}}, "bob": {&bob, []string{processors}}, "carl": {&carl, nil},
		"dora": {&dora, []string{editors, viewers, templateUsers}},
	} {
		if *each.user, err = gen.User(ctx, stencil.Plane, name, gen.Group(each.groups...), gen.Group("team-"+name)); err != nil {
			return err
		}
	}
	return nil
}

// stock puts the templates into the namespace of a test.
func stock(ctx context.Context, namespace string) error {
	out, err := stencil.Plane.Kubectl(ctx, nil, templates(), "apply", "--namespace="+namespace, "-f", "-")
	if err != nil {
		return err
	}
	if out.Code != 0 {
		return errors.New(out.Stderr)
	}
	return stencil.Plane.Grant(ctx, carl, namespace, rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{"virtualmachinetemplates/create"}, ResourceNames: []string{"box"}, Verbs: []string{"create"},
	})
}

// appliesIn limits a policy to a namespace.
func appliesIn(namespace string) gen.Modifier {
	return gen.Spec("match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + namespace + "}}}")
}

// shop returns the namespace of the test.
func shop(t *testing.T) string {
	t.Helper()
	return shops.Of(t)
}

// floor creates a namespace in which no user has a role.
func floor(t *testing.T) string {
	t.Helper()
	name := harness.Namespace(t, stencil.Plane, "floor")
	return name
}

// answer is what a request was answered with.
type answer struct {
	code     int
	header   http.Header
	body     string
	warnings []string
}

// request is one call of the API.
type request struct {
	as                  *controlplane.User
	method, path        string
	contentType, accept string
	body                string
	header              http.Header
	// host is the address of a request that bypasses the aggregator; it has no client certificate when as is nil.
	host string
}

func (r request) do(t *testing.T) answer {
	t.Helper()
	config := stencil.Plane.AdminConfig()
	if r.as != nil {
		config = r.as.Config()
	}
	if r.host != "" {
		tls := rest.TLSClientConfig{Insecure: true}
		if r.as != nil {
			tls.CertData, tls.KeyData = config.CertData, config.KeyData
		}
		config = &rest.Config{Host: r.host, TLSClientConfig: tls}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if r.method == "" {
		r.method = http.MethodPost
	}
	sent, err := http.NewRequestWithContext(t.Context(), r.method, config.Host+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.contentType != "" {
		sent.Header.Set("Content-Type", r.contentType)
	}
	if r.accept != "" {
		sent.Header.Set("Accept", r.accept)
	}
	for key, values := range r.header {
		sent.Header[key] = values
	}
	received, err := client.Do(sent)
	if err != nil {
		t.Fatal(err)
	}
	defer received.Body.Close()
	content, err := io.ReadAll(received.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{code: received.StatusCode, header: received.Header, body: string(content), warnings: received.Header.Values("Warning")}
}

// subresource is the path of process or create of a template of the test.
func subresource(t *testing.T, version, name, verb string) string {
	t.Helper()
	return "/apis/" + group + "/" + version + "/namespaces/" + shop(t) + "/virtualmachinetemplates/" + name + "/" + verb
}

// kubectl runs kubectl as a user; nil is the administrator.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, arguments...)
}

func mustKubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, nil, stdin, arguments...).Stdout
}

// discard deletes VMs when the test ends.
func discard(t *testing.T, namespace string, names ...string) {
	t.Helper()
	harness.Discard(t, stencil.Plane, namespace, names...)
}
