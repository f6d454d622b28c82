package sources

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/cache/watching"
)

// store holds the objects of one kind.
type store struct {
	*watching.Index[metav1.Object, Object]
	kind Kind
	how  watched
}

func newStore(kind Kind, how watched, changed func(Key)) *store {
	reduce := how.reduce
	return &store{kind: kind, how: how, Index: watching.NewIndex(watching.Options[metav1.Object, Object]{
		Kind: string(kind) + "s",
		Convert: func(object metav1.Object, _ Object, _ bool) (converted Object, err error) {
			if whole, is := object.(*unstructured.Unstructured); is && reduce != nil {
				converted = reduce(whole)
			} else {
				converted.Ready = true
			}
			converted.UID, converted.Deleting = object.GetUID(), object.GetDeletionTimestamp() != nil
			return converted, nil
		},
		Equal: func(before, after Object) bool { return before == after },
		Changed: func(update watching.Update[Object]) {
			if update.First || update.Failed {
				// Missing objects are distinguished from objects that were not read.
				changed(Key{Kind: kind})
				return
			}
			for _, each := range update.Changes {
				changed(Key{Kind: kind, Namespace: each.Namespace, Name: each.Name})
			}
		},
	})}
}

// get returns an object, whether it exists, and an error if that is unknown.
func (s *store) get(namespace, name string) (object Object, found bool, unknown error) {
	object, found = s.Get(namespace, name)
	switch {
	case found || s.Listed():
		return object, found, nil
	case s.Problem() != nil:
		return Object{}, false, s.Problem()
	default:
		return Object{}, false, errNotYet
	}
}

// failed stores why objects cannot be listed or watched. After a temporary failure the stored objects remain valid.
func (s *store) failed(err error) {
	switch {
	case apierrors.IsNotFound(err):
		s.Fail(&NotServedError{s.kind})
	case apierrors.IsForbidden(err):
		s.Fail(fmt.Errorf("the manager may not list objects of the kind %s: grant list and watch on %s to its service account", s.kind, s.how.resource.GroupResource()))
	}
}
