package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Name is the name of the driver: the provisioner of its storage classes and the driver of its snapshot classes.
const Name = "csi.stencil.test"

// The resources that the driver watches.
var (
	claims    = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	volumes   = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	snapshots = schema.GroupVersionResource{Group: snapshotGroup, Version: "v1", Resource: "volumesnapshots"}
	contents  = schema.GroupVersionResource{Group: snapshotGroup, Version: "v1", Resource: "volumesnapshotcontents"}
	classes   = schema.GroupVersionResource{Group: snapshotGroup, Version: "v1", Resource: "volumesnapshotclasses"}
)

const snapshotGroup = "snapshot.storage.k8s.io"

// retry is how soon a step that failed is tried again. A real driver backs off to minutes.
const retry = 200 * time.Millisecond

// workers is how many objects are worked on at the same time.
const workers = 8

// Driver is a running driver.
type Driver struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	queue   workqueue.TypedRateLimitingInterface[item]
	cancel  context.CancelFunc
	running sync.WaitGroup
	rules   rules
	store   store
}

type item struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// Start starts the driver, which stores the bytes of volumes and snapshots in a folder; snapshots are taken as soon as their CRDs are installed, which may
// be later. Stop ends it and leaves the folder.
func Start(config *rest.Config, folder string) (*Driver, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of volumes: %w", err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "csi-player"
	kube, err1 := kubernetes.NewForConfig(config)
	dynamicClient, err2 := dynamic.NewForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making clients of the CSI driver: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{
		kube:    kube,
		dynamic: dynamicClient,
		cancel:  cancel,
		store:   store{folder: folder},
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemFastSlowRateLimiter[item](retry, retry, 1)),
	}
	d.rules.changed = d.resync(ctx)
	d.watch(ctx, claims, volumes)
	for range workers {
		d.running.Go(func() { d.work(ctx) })
	}
	d.running.Go(func() {
		if d.awaitSnapshots(ctx) {
			d.watch(ctx, snapshots, contents)
		}
	})
	return d, nil
}

// Stop ends the driver and waits for it.
func (d *Driver) Stop() {
	d.cancel()
	d.queue.ShutDown()
	d.running.Wait()
}

// awaitSnapshots returns true when the CRDs of snapshots are served, false when the driver ends first.
func (d *Driver) awaitSnapshots(ctx context.Context) bool {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		listed, err := d.kube.Discovery().ServerResourcesForGroupVersion(snapshots.GroupVersion().String())
		if err == nil && has(listed, contents.Resource) && has(listed, snapshots.Resource) && has(listed, classes.Resource) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

func has(listed *metav1.APIResourceList, name string) bool {
	for _, resource := range listed.APIResources {
		if resource.Name == name {
			return true
		}
	}
	return false
}

// watch puts each object of the resources into the queue when it changes.
func (d *Driver) watch(ctx context.Context, resources ...schema.GroupVersionResource) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(d.dynamic, 0)
	for _, resource := range resources {
		enqueue := func(changed any) {
			if last, is := changed.(cache.DeletedFinalStateUnknown); is {
				changed = last.Obj
			}
			if object, is := changed.(metav1.Object); is {
				d.queue.Add(item{resource: resource, namespace: object.GetNamespace(), name: object.GetName()})
			}
		}
		// Handlers of an informer that does not run yet are always accepted.
		_, _ = factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, changed any) { enqueue(changed) },
			// The bytes of volumes and contents that were deleted without the driver are deleted then.
			DeleteFunc: enqueue,
		})
	}
	factory.Start(ctx.Done())
	d.running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
}

// resync returns a function that queues every object again, so that objects held by a removed rule proceed.
func (d *Driver) resync(ctx context.Context) func() {
	return func() {
		for _, resource := range []schema.GroupVersionResource{claims, volumes, snapshots, contents} {
			listed, err := d.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				// No CRDs of snapshots yet.
				continue
			}
			for i := range listed.Items {
				d.queue.Add(item{resource: resource, namespace: listed.Items[i].GetNamespace(), name: listed.Items[i].GetName()})
			}
		}
	}
}

func (d *Driver) work(ctx context.Context) {
	for {
		next, ended := d.queue.Get()
		if ended {
			return
		}
		err := d.reconcile(ctx, next)
		switch {
		case ctx.Err() != nil:
		case err == nil, apierrors.IsNotFound(err), errors.Is(err, errHeld):
			// What is held proceeds when the rule changes.
		default:
			d.queue.AddAfter(next, retry)
		}
		d.queue.Done(next)
	}
}

func (d *Driver) reconcile(ctx context.Context, next item) error {
	switch next.resource {
	case claims:
		return d.reconcileClaim(ctx, next.namespace, next.name)
	case volumes:
		return d.reconcileVolume(ctx, next.name)
	case snapshots:
		return d.reconcileSnapshot(ctx, next.namespace, next.name)
	default:
		return d.reconcileContent(ctx, next.name)
	}
}

// again queues an object again after the retry interval, for when what it waits for may have happened.
func (d *Driver) again(resource schema.GroupVersionResource, namespace, name string) {
	d.queue.AddAfter(item{resource: resource, namespace: namespace, name: name}, retry)
}

// event writes an event as one of the components around a driver does.
func (d *Driver) event(ctx context.Context, object *unstructured.Unstructured, reason, message string) {
	now, namespace := metav1.Now(), object.GetNamespace()
	if namespace == "" {
		// The namespace of events about objects without a namespace.
		namespace = metav1.NamespaceDefault
	}
	_, _ = d.kube.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: object.GetName() + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: Name}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
}
