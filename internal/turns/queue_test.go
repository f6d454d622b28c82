package turns_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/internal/turns"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// TestAGreedyTenantDelaysOthersByOneRequest adds a thousand requests of one namespace before one of each of two others.
func TestAGreedyTenantDelaysOthersByOneRequest(t *testing.T) {
	q := turns.Queue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Second))
	defer q.ShutDown()
	for i := range 1000 {
		q.Add(request("greedy", fmt.Sprint(i)))
	}
	q.Add(request("shop", "a"))
	q.Add(request("shop", "b"))
	q.Add(request("lab", "c"))
	// Again: it keeps its place.
	q.Add(request("shop", "a"))
	if q.Len() != 1003 {
		t.Errorf("%d requests wait", q.Len())
	}
	var got []string
	for range 8 {
		one, _ := q.Get()
		got = append(got, one.Namespace+"/"+one.Name)
		if one.Namespace == "greedy" {
			// It is always wanted again at once.
			q.Add(one)
		}
		q.Done(one)
	}
	if want := []string{"greedy/0", "shop/a", "lab/c", "greedy/1", "shop/b", "greedy/2", "greedy/3", "greedy/4"}; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// A tenant that comes later waits for one.
	q.Add(request("late", "d"))
	first, _ := q.Get()
	second, _ := q.Get()
	if first.Namespace != "greedy" || second.Namespace != "late" {
		t.Errorf("got %v and %v", first, second)
	}
}

// TestNothingIsLost has items of many tenants processed at a time, and added again meanwhile.
func TestNothingIsLost(t *testing.T) {
	q := turns.Names("", workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Second, time.Second))
	const tenants, each, workers = 7, 50, 4
	done := make(chan types.NamespacedName)
	for range workers {
		go func() {
			for {
				one, ended := q.Get()
				if ended {
					return
				}
				done <- one
				q.Done(one)
			}
		}()
	}
	for i := range tenants * each {
		go q.Add(types.NamespacedName{Namespace: fmt.Sprint(i % tenants), Name: fmt.Sprint(i)})
	}
	seen := map[types.NamespacedName]bool{}
	for len(seen) < tenants*each {
		seen[<-done] = true
	}
	q.ShutDown()
	if q.Len() != 0 {
		t.Errorf("%d wait", q.Len())
	}
}
