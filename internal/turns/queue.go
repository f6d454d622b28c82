package turns

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue returns a queue of requests, for controller.Options.NewQueue.
func Queue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return queue(name, limiter, func(r reconcile.Request) string { return r.Namespace })
}

// Names returns a queue of the names of objects.
func Names(name string, limiter workqueue.TypedRateLimiter[types.NamespacedName]) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return queue(name, limiter, func(n types.NamespacedName) string { return n.Namespace })
}

func queue[T comparable](name string, limiter workqueue.TypedRateLimiter[T], namespace func(T) string) workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name: name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{
				Name: name, Queue: &order[T]{namespace: namespace, waiting: map[string][]T{}},
			}),
		}),
	})
}

// order is the order of a queue, which calls it under its lock. It implements workqueue.Queue.
type order[T comparable] struct {
	namespace func(T) string
	// waiting are the items of each namespace, the oldest first.
	waiting map[string][]T
	// next are the namespaces with items, in the order of their turns.
	next   []string
	length int
}

// Touch implements workqueue.Queue: an item that is added again keeps its place.
func (o *order[T]) Touch(T) {}

// Push implements workqueue.Queue.
func (o *order[T]) Push(item T) {
	namespace := o.namespace(item)
	if len(o.waiting[namespace]) == 0 {
		o.next = append(o.next, namespace)
	}
	o.waiting[namespace] = append(o.waiting[namespace], item)
	o.length++
}

// Len implements workqueue.Queue.
func (o *order[T]) Len() int { return o.length }

// Pop implements workqueue.Queue.
func (o *order[T]) Pop() T {
	namespace := o.next[0]
	o.next = o.next[1:]
	items := o.waiting[namespace]
	item := items[0]
	if items = items[1:]; len(items) > 0 {
		o.waiting[namespace] = items
		o.next = append(o.next, namespace)
	} else {
		delete(o.waiting, namespace)
	}
	o.length--
	return item
}
