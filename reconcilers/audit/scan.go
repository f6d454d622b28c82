package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/machine"
)

const (
	// concurrency is how many lists are read at a time.
	concurrency = 2
	// fewNamespaces are listed one by one, however many there are in all.
	fewNamespaces = 16
)

// everywhere is the scope of a list of all machines.
const everywhere = ""

// scopes says which lists to read: of the governed namespaces each, or, when they are most of them, of all at once.
func scopes(governed []string, namespaces int) []string {
	if len(governed) > fewNamespaces && 2*len(governed) > namespaces {
		return []string{everywhere}
	}
	return governed
}

// scan reads and judges every machine in governed namespaces.
type scan struct {
	machines  pager
	templates Templates
	governed  map[string][]*approval.Approval
	// namespaces is how many there are, governed or not.
	namespaces int
	// retries is how a page that could not be read is read again.
	retries wait.Backoff
	// finished is called with each namespace that holds a machine, by several goroutines.
	finished func(context.Context, namespaceTally)
}

// run returns what was found, and how many machines there are.
func (s scan) run(ctx context.Context) (counts, int, error) {
	total, judged := counts{}, 0
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, scope := range scopes(slices.Sorted(maps.Keys(s.governed)), s.namespaces) {
		group.Go(func() error {
			found, machines, err := s.list(ctx, scope)
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			judged += machines
			for name, one := range found {
				total.of(name).add(one)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	return total, judged, nil
}

// found is a machine that was judged, and what by.
type found struct {
	subject   subject
	covering  []*approval.Approval
	judgement judgement
}

// list reads and judges the machines of one scope.
func (s scan) list(ctx context.Context, scope string) (counts, int, error) {
	t := newTally(func(n namespaceTally) { s.finished(ctx, n) })
	machines := 0
	for token := ""; ; {
		page, next, err := s.page(ctx, scope, token)
		if err != nil {
			return nil, 0, err
		}
		for _, one := range page {
			t.record(one.subject, one.covering, one.judgement)
		}
		machines += len(page)
		if next == "" {
			t.finish()
			return t.counts, machines, nil
		}
		token = next
	}
}

// pageRetries has a page read again after 0.2, 0.6 and 1.8 seconds.
func pageRetries() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 4}
}

// page reads and judges one page. What was judged of a page that broke off is forgotten.
func (s scan) page(ctx context.Context, scope, token string) (page []found, next string, err error) {
	var last error
	err = wait.ExponentialBackoffWithContext(ctx, s.retries, func(ctx context.Context) (bool, error) {
		page = page[:0]
		next, last = s.machines.page(ctx, scope, token, func(object map[string]any) {
			if one, governed := s.judge(object); governed {
				page = append(page, one)
			}
		})
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
		err = last
	}
	if err != nil {
		return nil, "", fmt.Errorf("auditing the VirtualMachines of %s: %w", describe(scope), err)
	}
	return page, next, nil
}

func describe(scope string) string {
	if scope == everywhere {
		return "all namespaces"
	}
	return "namespace " + scope
}

// judge judges one machine, unless nothing governs it.
func (s scan) judge(object map[string]any) (found, bool) {
	metadata, _ := object["metadata"].(map[string]any)
	one := found{subject: subject{
		namespace: machine.StringAt(metadata, "namespace"),
		name:      machine.StringAt(metadata, "name"),
		uid:       types.UID(machine.StringAt(metadata, "uid")),
	}}
	if one.covering = s.governed[one.subject.namespace]; len(one.covering) == 0 {
		return one, false
	}
	one.judgement = judge(object, one.subject.namespace, one.covering, s.templates)
	return one, true
}
