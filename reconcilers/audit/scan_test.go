package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

func TestScopes(t *testing.T) {
	names := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("n%02d", i)
		}
		return list
	}
	for _, tc := range []struct {
		name                 string
		governed, namespaces int
		everywhere           bool
	}{
		{"nothing governed, nothing to list", 0, 100, false},
		{"few namespaces are listed one by one, also when they are all", fewNamespaces, fewNamespaces, false},
		{"many of many more are listed one by one", 50, 100, false},
		{"most are listed at once", 51, 100, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := names(tc.governed)
			if tc.everywhere {
				want = []string{everywhere}
			}
			if diff := cmp.Diff(want, scopes(names(tc.governed), tc.namespaces)); diff != "" {
				t.Errorf("scopes (-want +got):\n%s", diff)
			}
		})
	}
}

// fakePager is a pager over VMs in memory, with three in each page.
type fakePager struct {
	mutex sync.Mutex
	// vms are sorted NAMESPACE/NAME.
	vms []string
	// failures are the errors of the next calls, each after a visit of one VM.
	failures []error
	reads    []string
	// together is the maximum number of concurrent calls.
	running, together int
	wait              time.Duration
}

func (s *fakePager) page(ctx context.Context, namespace, token string, visit func(map[string]any)) (string, error) {
	s.mutex.Lock()
	s.reads = append(s.reads, namespace+"@"+token)
	s.running++
	s.together = max(s.together, s.running)
	var failure error
	if len(s.failures) > 0 {
		failure, s.failures = s.failures[0], s.failures[1:]
	}
	var mine []string
	for _, one := range s.vms {
		if (namespace == everywhere || strings.HasPrefix(one, namespace+"/")) && one > token {
			mine = append(mine, one)
		}
	}
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		s.running--
		s.mutex.Unlock()
	}()
	if s.wait > 0 {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(s.wait):
		}
	}
	for i, one := range mine {
		if failure != nil && i == 1 || i == 3 {
			break
		}
		at, name, _ := strings.Cut(one, "/")
		visit(map[string]any{"metadata": map[string]any{"namespace": at, "name": name, "uid": "u-" + name}})
	}
	if failure != nil {
		return "", failure
	}
	if len(mine) > 3 {
		return mine[2], nil
	}
	return "", nil
}

type noTemplates struct{}

func (noTemplates) Get(string, string) *templatecache.Template { return nil }

// scanOf returns a scan that collects finished namespaces.
func scanOf(vms pager, namespaces int, governed ...string) (scan, *sync.Map) {
	finished := &sync.Map{}
	retries := pageRetries()
	retries.Duration = time.Millisecond
	s := scan{vms: vms, templates: noTemplates{}, namespaces: namespaces, retries: retries, governed: map[string][]*approval.Approval{},
		finished: func(_ context.Context, n namespaceTally) { finished.Store(n.namespace, n.violating) }}
	for _, namespace := range governed {
		s.governed[namespace] = []*approval.Approval{approve("a")}
	}
	return s, finished
}

func TestScan(t *testing.T) {
	vms := []string{"free/x", "team-a/1", "team-a/2", "team-a/3", "team-a/4", "team-b/1"}
	unavailable := apierrors.NewServiceUnavailable("busy")
	many := func() (names []string) {
		for i := range fewNamespaces {
			names = append(names, fmt.Sprintf("z%02d", i))
		}
		return append(names, "team-a", "team-b")
	}()
	for _, tc := range []struct {
		name       string
		governed   []string
		namespaces int
		failures   []error
		want       map[string]int
		wantReads  int
		wantError  string
	}{
		{
			name:     "governed namespaces are read, page by page, and others are not",
			governed: []string{"team-a"}, namespaces: 3, want: map[string]int{"team-a": 4}, wantReads: 2,
		},
		{
			name:     "in a list of everything those that nothing governs are passed over",
			governed: many, namespaces: len(many), want: map[string]int{"team-a": 4, "team-b": 1}, wantReads: 2,
		},
		{
			name:     "a page that breaks off is read again, and no machine counts twice",
			governed: []string{"team-a"}, namespaces: 3, failures: []error{unavailable, errors.New("connection reset")},
			want: map[string]int{"team-a": 4}, wantReads: 4,
		},
		{
			name:     "what stays broken fails the audit",
			governed: []string{"team-a"}, namespaces: 3, failures: []error{unavailable, unavailable, unavailable, unavailable},
			wantReads: 4, wantError: "auditing the VirtualMachines of namespace team-a: busy",
		},
		{
			name:     "what the manager may not read is not asked for again",
			governed: []string{"team-a"}, namespaces: 3,
			failures:  []error{apierrors.NewForbidden(schema.GroupResource{Resource: "virtualmachines"}, "", errors.New("no"))},
			wantReads: 1, wantError: "forbidden",
		},
		{name: "where nothing is governed nothing is read", namespaces: 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			source := &fakePager{vms: vms, failures: tc.failures}
			s, finished := scanOf(source, tc.namespaces, tc.governed...)
			all, err := s.run(t.Context())
			if len(source.reads) != tc.wantReads {
				t.Errorf("reads: %v", source.reads)
			}
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error: got %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			found := all.total()
			got, sum := map[string]int{}, 0
			finished.Range(func(namespace, violating any) bool {
				got[namespace.(string)] = violating.(int)
				sum += violating.(int)
				return true
			})
			if tc.want == nil {
				tc.want = map[string]int{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("violating machines by namespace (-want +got):\n%s", diff)
			}
			if found.vms != sum || sum > 0 && int(found.approvals["a"].violating) != sum {
				t.Errorf("%d judged, %d counted, %v found", found.vms, sum, found.approvals["a"])
			}
		})
	}
}

func TestAScanReadsTwoListsAtATime(t *testing.T) {
	source := &fakePager{wait: 5 * time.Millisecond}
	var governed []string
	for i := range fewNamespaces {
		governed = append(governed, fmt.Sprintf("n%02d", i))
	}
	s, _ := scanOf(source, 100, governed...)
	if _, err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if source.together != concurrency || len(source.reads) != fewNamespaces {
		t.Errorf("%d lists, %d at a time", len(source.reads), source.together)
	}
}

func TestAScanEndsWithItsContext(t *testing.T) {
	s, _ := scanOf(&fakePager{wait: time.Hour}, 100, "team-a", "team-b")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.run(ctx)
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}
