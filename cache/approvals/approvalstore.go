package approvals

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// approvalStore stores the objects of the approval reflector.
type approvalStore struct {
	index    *index
	log      logr.Logger
	excluded approval.Option
}

var (
	_ cache.ReflectorStore    = &approvalStore{}
	_ cache.TransformingStore = &approvalStore{}
)

func newApprovalStore(x *index, log logr.Logger, excluded []string) *approvalStore {
	return &approvalStore{index: x, log: log, excluded: approval.Excluding(excluded...)}
}

// Transformer compiles objects while the first list streams in.
func (s *approvalStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.compile(object) }
}

// compile compiles an approval. It returns the cached one if UID and generation are unchanged: every audit changes the
// status.
func (s *approvalStore) compile(object any) (*approval.Approval, error) {
	switch o := object.(type) {
	case *approval.Approval:
		return o, nil
	case *v1alpha1.TemplateApproval:
		if current := s.index.approval(o.Name); current != nil && current.UID() == o.UID && current.Generation() == o.Generation {
			return current, nil
		}
		compiled, err := approval.Compile(o, s.excluded)
		if err != nil {
			s.log.Error(err, "TemplateApproval does not compile; it approves nothing in the namespaces that it selects", "approval", o.Name)
			return approval.Closed(o, err, s.excluded), nil
		}
		return compiled, nil
	default:
		return nil, fmt.Errorf("approval cache was given a %T for an approval", object)
	}
}

// Add implements cache.ReflectorStore.
func (s *approvalStore) Add(object any) error {
	a, err := s.compile(object)
	if err != nil {
		return err
	}
	if s.index.approval(a.Name()) != a {
		s.index.changeApprovals(func() { s.index.approvals[a.Name()] = a })
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *approvalStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore. Only the name of the object counts.
func (s *approvalStore) Delete(object any) error {
	name, err := nameOf(object)
	if err != nil {
		return err
	}
	s.index.changeApprovals(func() { delete(s.index.approvals, name) })
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a
// watch was lost for good.
func (s *approvalStore) Replace(objects []any, _ string) error {
	approvals := make(map[string]*approval.Approval, len(objects))
	for _, object := range objects {
		a, err := s.compile(object)
		if err != nil {
			return err
		}
		approvals[a.Name()] = a
	}
	s.index.changeApprovals(func() {
		s.index.approvals = approvals
		s.index.approvalsSynced = true
	})
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *approvalStore) Resync() error { return nil }

// nameOf returns the name of a deleted cluster-scoped object.
func nameOf(object any) (string, error) {
	switch o := object.(type) {
	case *approval.Approval:
		return o.Name(), nil
	case labels:
		return o.name, nil
	}
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return "", fmt.Errorf("reading the name of a deleted object: %w", err)
	}
	return name, nil
}
