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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	// pageSize is the number of VMs in a page. A Fedora VM has about 5 KiB.
	pageSize = 500
	// pageTimeout is the time limit for one page, including the evaluation of its VMs.
	pageTimeout = time.Minute
)

// vmVersion is the version of VirtualMachine that is read.
var vmVersion = schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}

// pager reads stored objects page by page.
type pager interface {
	// page calls visit with the objects of one page, of a namespace or, if it is empty, of all. token is the result of the page before,
	// empty for the first; next is empty after the last page.
	page(ctx context.Context, namespace, token string, visit func(object map[string]any)) (next string, err error)
}

// apiServer is a pager that reads directly from the API server.
type apiServer struct {
	client rest.Interface
	// resource is the resource that it reads, such as virtualmachines.
	resource string
	// accept is the media type that it requests.
	accept string
}

const (
	acceptObjects = "application/json"
	// acceptMetadata requests only metadata.
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// newAPIServer returns a pager of a resource of KubeVirt.
func newAPIServer(config *rest.Config, resource string) (*apiServer, error) {
	return newAPIServerOf(config, "/apis", vmVersion, resource, acceptObjects)
}

// newClaims returns a pager of the metadata of PersistentVolumeClaims.
func newClaims(config *rest.Config) (*apiServer, error) {
	return newAPIServerOf(config, "/api", schema.GroupVersion{Version: "v1"}, "persistentvolumeclaims", acceptMetadata)
}

func newAPIServerOf(config *rest.Config, path string, version schema.GroupVersion, resource, accept string) (*apiServer, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = path
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	// No client-side limit: at most two requests run at a time, and the API server has limits of its own.
	config.QPS = -1
	// Compression takes the API server longer than the transfer of an uncompressed page.
	config.DisableCompression = true
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", resource, err)
	}
	return &apiServer{client, resource, accept}, nil
}

func (s *apiServer) page(ctx context.Context, namespace, token string, visit func(object map[string]any)) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request := s.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(s.resource).
		SetHeader("Accept", s.accept).Param("limit", strconv.Itoa(pageSize))
	if token != "" {
		request.Param("continue", token)
	}
	body, err := request.Stream(ctx)
	switch {
	case apierrors.IsNotFound(err):
		// Without KubeVirt there are no VMs.
		return "", nil
	case apierrors.IsResourceExpired(err) && continuation(err) != "":
		// The API server no longer retains the version at which the list began. Continue after the same object with the current version:
		// the audit needs no consistent list.
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

// pageRetries returns the backoff with which a page is read again, after 0.2, 0.6 and 1.8 seconds.
func pageRetries() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 4}
}

// readAgain calls read until it succeeds, fails permanently, or the retries are exhausted.
func readAgain(ctx context.Context, retries wait.Backoff, read func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, retries, func(ctx context.Context) (bool, error) {
		last = read(ctx)
		switch {
		case last == nil:
			return true, nil
		case apierrors.IsForbidden(last), apierrors.IsUnauthorized(last), apierrors.IsBadRequest(last), apierrors.IsResourceExpired(last):
			return false, last
		default:
			return false, nil
		}
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// readAll calls visit with all objects of a namespace. A page that breaks off is read again, and its objects are visited again.
func readAll(ctx context.Context, source pager, retries wait.Backoff, namespace string, visit func(object map[string]any)) error {
	for token := ""; ; {
		next := ""
		err := readAgain(ctx, retries, func(ctx context.Context) (err error) {
			next, err = source.page(ctx, namespace, token, visit)
			return err
		})
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// continuation returns the token with which an expired list can be continued, empty if it cannot.
func continuation(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}
