package revisions

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/revision"
)

const (
	fieldManager = "stencil-revisions"
	// controllerRevisions is the resource that is written.
	controllerRevisions = "controllerrevisions"
	// pageSize is the number of objects in memory while a kind is listed.
	pageSize = 250
	// requestTimeout is the timeout of one request.
	requestTimeout = 30 * time.Second
)

// Kinds that are read besides ControllerRevisions.
var (
	virtualMachines  = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	migrations       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"}
	kubeVirts        = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	snapshots        = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"}
	snapshotContents = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}
	restores         = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinerestores"}
)

// cluster reads with the user of the configuration, and as an account it writes ControllerRevisions and reads the quotas that limit them.
type cluster struct {
	objects       dynamic.Interface
	reads, writes appsclient.AppsV1Interface
	quotas        coreclient.ResourceQuotasGetter
	decider       *revision.Decider
	trials        trials
}

func newCluster(config *rest.Config, account string, clock clock.PassiveClock) (*cluster, error) {
	reading := rest.CopyConfig(config)
	// No client-side limit: the rate of the migration limits writes, and the API server has limits of its own.
	reading.QPS = -1
	reading.Timeout = requestTimeout
	// Compressing a page takes the API server longer than sending it.
	reading.DisableCompression = true
	objects, err1 := dynamic.NewForConfig(reading)
	// ControllerRevisions are built in, so that they need not be JSON.
	reading.ContentType, reading.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	writing := powers.As(reading, account)
	reads, err2 := appsclient.NewForConfig(reading)
	writes, err3 := appsclient.NewForConfig(writing)
	quotas, err4 := coreclient.NewForConfig(writing)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("making the clients of stored instance types: %w", err)
	}
	return &cluster{
		objects: objects, reads: reads, writes: writes, quotas: quotas, decider: revision.NewDecider(),
		trials: trials{clock: clock, passed: map[trialKey]time.Time{}},
	}, nil
}

// each calls visit for every object of a kind. A kind that is not served has none.
func (c *cluster) each(ctx context.Context, resource schema.GroupVersionResource, visit func(*unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.objects.Resource(resource).List(ctx, options)
		if apierrors.IsNotFound(err) && options.Continue == "" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// eachRevision calls visit for every ControllerRevision.
func (c *cluster) eachRevision(ctx context.Context, visit func(*appsv1.ControllerRevision) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.reads.ControllerRevisions("").List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing controllerrevisions: %w", err)
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// get returns a ControllerRevision, nil if there is none.
func (c *cluster) get(ctx context.Context, namespace, name string) (*appsv1.ControllerRevision, error) {
	found, err := c.reads.ControllerRevisions(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ControllerRevision %s/%s: %w", namespace, name, err)
	}
	return found, nil
}

// create creates a ControllerRevision. The error is that of the API server. It sends the request itself, because the client of the kind also decodes
// the created object.
func (c *cluster) create(ctx context.Context, one *appsv1.ControllerRevision, dryRun bool) error {
	request := c.writes.RESTClient().Post().Namespace(one.Namespace).Resource(controllerRevisions).Param("fieldManager", fieldManager).Body(one)
	if dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Do(ctx).Error()
}

// remove deletes exactly the object that was read, in the version that was read.
func (c *cluster) remove(ctx context.Context, one *appsv1.ControllerRevision) error {
	return c.writes.ControllerRevisions(one.Namespace).Delete(ctx, one.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &one.UID, ResourceVersion: &one.ResourceVersion},
	})
}
