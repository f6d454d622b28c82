package goldenimage

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// users are templates or VirtualMachines: templates by their DataSource, and the number of VirtualMachines, -1 if the cluster has none.
type users struct {
	templates map[string][]string
	vms       int
	changed   func(types.NamespacedName)
}

func (u *users) Synced() bool   { return true }
func (u *users) Complete() bool { return true }

func (u *users) Of(dataSource types.NamespacedName) (templates []types.NamespacedName) {
	for _, name := range u.templates[dataSource.String()] {
		templates = append(templates, types.NamespacedName{Name: name})
	}
	return templates
}

func (u *users) Clones(of map[types.NamespacedName]bool) (int, bool) {
	return u.vms * len(of), u.vms >= 0
}

func (u *users) Listen(changed func(types.NamespacedName)) { u.changed = changed }

// labelled returns a DataSource of a GoldenImage; of none if that is empty.
func labelled(name, image string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "golden", Name: name, Labels: map[string]string{v1alpha1.LabelGoldenImage: image}}}
}

// TestCount counts what uses two DataSources of an image, and none of another image.
func TestCount(t *testing.T) {
	w := newWake(nil, nil, logr.Discard())
	if err := w.sources.Replace([]any{labelled("fedora", "fedora"), labelled("fedora-stable", "fedora"), labelled("fedora-of-a-user", ""), labelled("debian", "debian")}, ""); err != nil {
		t.Fatal(err)
	}
	uses := &users{vms: 7, templates: map[string][]string{
		"golden/fedora": {"box", "both"}, "golden/fedora-stable": {"both"}, "golden/fedora-of-a-user": {"other"}, "golden/debian": {"debian"},
	}}
	u := &usage{wake: w, templates: uses, vms: uses}
	counted := u.count(types.NamespacedName{Namespace: "golden", Name: "fedora"})
	if counted.Templates != 2 || counted.VirtualMachines == nil || *counted.VirtualMachines != 14 {
		t.Errorf("got %+v", counted)
	}
	uses.vms = -1
	if counted := u.count(types.NamespacedName{Namespace: "golden", Name: "fedora"}); counted.VirtualMachines != nil {
		t.Errorf("VirtualMachines are counted without KubeVirt: %d", *counted.VirtualMachines)
	}
}

// TestABurstIsCountedOnce creates 1 000 VirtualMachines in 4 s.
func TestABurstIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWake(nil, nil, logr.Discard())
		if err := w.sources.Replace([]any{labelled("fedora-stable", "fedora")}, ""); err != nil {
			t.Fatal(err)
		}
		templates, vms := &users{}, &users{}
		u := &usage{wake: w, templates: templates, vms: vms, changed: workqueue.NewTyped[types.NamespacedName]()}
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		if err := u.source().Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			vms.changed(types.NamespacedName{Namespace: "golden", Name: "fedora-stable"})
			vms.changed(types.NamespacedName{Namespace: "golden", Name: "of-a-user"})
			time.Sleep(4 * time.Millisecond)
		}
		synctest.Wait()
		if queue.Len() != 0 {
			t.Error("it is counted at once")
		}
		time.Sleep(usageInterval)
		synctest.Wait()
		if got := queue.Len(); got != 1 {
			t.Fatalf("it is counted %d times", got)
		}
		if one, _ := queue.Get(); fmt.Sprint(one) != "golden/fedora" {
			t.Errorf("%s is counted", one)
		}
	})
}
