package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/bench/catalogue"
	"github.com/vmstencil/stencil/test/controlplane"
)

const (
	idleGroup   = "idle.bench.stencil.test"
	idleVersion = "v1"
)

// idler is an aggregated API server that immediately returns a given answer: the time that the API server takes to authenticate a user, authorize a
// request and forward it, whatever is behind. It neither authenticates the caller nor counts requests. It is served by this program, so its processor
// time is among that of the clients.
type idler struct {
	server *httptest.Server
	answer []byte
}

// newIdler starts the server, has the API server aggregate it, and permits the user to send requests to it.
func newIdler(ctx context.Context, plane *controlplane.Plane, user *controlplane.User, answer []byte) (*idler, error) {
	i := &idler{answer: answer}
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(i.serve))
	i.server.EnableHTTP2 = true
	i.server.StartTLS()
	if err := i.register(ctx, plane); err != nil {
		i.close()
		return nil, err
	}
	err := plane.Grant(ctx, user, catalogue.Namespace(number), rbacv1.PolicyRule{APIGroups: []string{idleGroup}, Resources: []string{"things/process"}, Verbs: []string{"create"}})
	if err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (i *idler) close() { i.server.Close() }

func (i *idler) serve(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	if request.Method != http.MethodPost {
		_, _ = fmt.Fprintf(writer, `{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": %q, "resources": []}`, idleGroup+"/"+idleVersion)
		return
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = writer.Write(i.answer)
}

// path is what is posted to.
func (i *idler) path() string {
	return "/apis/" + idleGroup + "/" + idleVersion + "/namespaces/" + catalogue.Namespace(number) + "/things/" + catalogue.Name(number) + "/process"
}

// register makes the Service and the APIService, and waits until the API server reaches the server.
func (i *idler) register(ctx context.Context, plane *controlplane.Plane) error {
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	_, text, err := net.SplitHostPort(i.server.Listener.Addr().String())
	if err != nil {
		return fmt.Errorf("reading the address of the idle server: %w", err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("reading the port of the idle server: %w", err)
	}
	const name = "idle"
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": name},
		// The API server follows an ExternalName Service only to a name.
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost", "ports": []any{map[string]any{"port": port}}},
	}}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(metav1.NamespaceDefault).
		Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the Service of the idle server: %w", err)
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	registered := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": idleVersion + "." + idleGroup},
		"spec": map[string]any{
			"group": idleGroup, "version": idleVersion, "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			// Its certificate is for another name. Encryption costs the same.
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": metav1.NamespaceDefault, "name": name, "port": port},
		},
	}}
	if _, err := resource.Create(ctx, registered, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the APIService of the idle server: %w", err)
	}
	result, err := plane.Kubectl(ctx, nil, "", "wait", "apiservice/"+registered.GetName(), "--for=condition=Available", "--timeout=60s")
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	if err != nil {
		return fmt.Errorf("waiting until the API server reaches the idle server: %w", err)
	}
	return nil
}
