package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

const (
	// pageSize is how many machines are read at a time. A Fedora VM has about 5 KiB.
	pageSize = 500
	// pageTimeout is how long one page may take, the judging of its machines included.
	pageTimeout = time.Minute
)

// machineVersion is the version of VirtualMachine that is read.
var machineVersion = schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}

// pager reads stored machines page by page.
type pager interface {
	// page calls visit with the machines of one page, of a namespace or, where it is empty, of all. token is what the page
	// before has returned, empty for the first; next is empty after the last page.
	page(ctx context.Context, namespace, token string, visit func(object map[string]any)) (next string, err error)
}

// apiServer is a pager that reads from the API server itself.
type apiServer struct {
	client rest.Interface
	// resource is what it reads: virtualmachines, or virtualmachineinstances.
	resource string
}

func newAPIServer(config *rest.Config, resource string) (*apiServer, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &machineVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	// Two requests at a time are limit enough, and the API server has its own.
	config.QPS = -1
	// To compress a page takes the API server longer than to send it.
	config.DisableCompression = true
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", resource, err)
	}
	return &apiServer{client, resource}, nil
}

func (s *apiServer) page(ctx context.Context, namespace, token string, visit func(object map[string]any)) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request := s.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(s.resource).
		Param("limit", strconv.Itoa(pageSize))
	if token != "" {
		request.Param("continue", token)
	}
	body, err := request.Stream(ctx)
	switch {
	case apierrors.IsNotFound(err):
		// No KubeVirt, no machines.
		return "", nil
	case apierrors.IsResourceExpired(err) && continuation(err) != "":
		// The list was begun longer ago than the API server remembers. It goes on behind the same machine, with what is
		// stored now, which is as good here.
		return continuation(err), nil
	case err != nil:
		return "", fmt.Errorf("listing %s: %w", s.resource, err)
	}
	defer func() { _ = body.Close() }()
	if next, err = readPage(body, visit); err != nil {
		return "", fmt.Errorf("reading a list of %s: %w", s.resource, err)
	}
	return next, nil
}

// continuation returns the token with which an expired list can be continued, empty when it cannot.
func continuation(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}
