package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	// concurrency is the number of lists that are read at a time.
	concurrency = 2
	// fewNamespaces is the number of namespaces up to which each is listed by itself, however many there are in all.
	fewNamespaces = 16
)

// everywhere is the scope of a list of all VMs.
const everywhere = ""

// scopes returns the scopes to list: each governed namespace, or all namespaces at once if most are governed.
func scopes(governed []string, namespaces int) []string {
	if len(governed) > fewNamespaces && 2*len(governed) > namespaces {
		return []string{everywhere}
	}
	return governed
}

// scan reads and evaluates every VM in governed namespaces, and in those in which policies apply.
type scan struct {
	vms       pager
	templates Templates
	// claims reads claims; if nil, disks are not evaluated.
	claims pager
	// instances makes the check of running VMs; if nil, they are not compared.
	instances func() *instanceCheck
	// launchers makes the check of the pods of running VMs; if nil, they are not compared.
	launchers func() *launcherCheck
	// sizes resolves the sizes that the status of a VM names; if nil, they are not evaluated.
	sizes sizing.Resolver
	// controllers are the API groups of controllers that may own VMs.
	controllers controllers
	// cluster holds the places at which the cluster itself adds to VMs.
	cluster  *approval.Additions
	governed map[string][]*approval.Approval
	// only limits the scan to some namespaces; nil means no limit.
	only map[string]bool
	// policing evaluates VMs in the policed namespaces; nil if there are no policies.
	policing *policing
	policed  map[string]bool
	// namespaces is the number of namespaces, governed or not.
	namespaces int
	// retries is the backoff with which a page that could not be read is read again.
	retries wait.Backoff
	// finished is called with each namespace that contains a VM or a violation, by several goroutines.
	finished func(context.Context, namespaceTally)
}

// results are the counts of each approval and each policy, and the uses of each exception, by name, and the number of VMs.
type results struct {
	approvals, policies counts
	exceptions          exceptionUses
	vms                 int
}

// byNamespace holds the results of each namespace.
type byNamespace map[string]results

// total returns the sum of all namespaces.
func (b byNamespace) total() results {
	total := results{approvals: counts{}, policies: counts{}, exceptions: exceptionUses{}}
	for _, one := range b {
		total.add(one)
	}
	return total
}

// add adds other results.
func (r *results) add(other results) {
	r.vms += other.vms
	for name, one := range other.approvals {
		r.approvals.of(name).add(one)
	}
	for name, one := range other.policies {
		r.policies.of(name).add(one)
	}
	for name, one := range other.exceptions {
		r.exceptions.of(name).add(one.virtualMachines, one.first...)
	}
}

// listed returns the sorted names of the namespaces in which VMs are evaluated.
func (s scan) listed() []string {
	names := maps.Clone(s.policed)
	if names == nil {
		names = map[string]bool{}
	}
	for name := range s.governed {
		names[name] = true
	}
	if s.only != nil {
		maps.DeleteFunc(names, func(name string, _ bool) bool { return !s.only[name] })
	}
	return slices.Sorted(maps.Keys(names))
}

// run returns the results of each namespace.
func (s scan) run(ctx context.Context) (byNamespace, error) {
	total := byNamespace{}
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, scope := range scopes(s.listed(), s.namespaces) {
		group.Go(func() error {
			found, err := s.list(ctx, scope)
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			maps.Copy(total, found)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return total, nil
}

// found is a VM with its evaluation.
type found struct {
	subject    subject
	approvals  []*approval.Approval
	evaluation evaluation
	rulings    []ruling
	// disks are the names of the claims of its dataVolumeTemplates.
	disks []string
	// running is what it should run as; nil if it is not running.
	running runs
}

// list reads and evaluates the VMs of one scope.
func (s scan) list(ctx context.Context, scope string) (byNamespace, error) {
	t := newTally(func(n namespaceTally) { s.finished(ctx, n) })
	check := diskCheck{lister: s.claims, retries: s.retries}
	var running *instanceCheck
	if s.instances != nil {
		running = s.instances()
		running.retries = s.retries
	}
	var launchers *launcherCheck
	if s.launchers != nil {
		launchers = s.launchers()
		t.strays = func(namespace string, vms map[types.UID]string) ([]stray, []*approval.Approval) {
			if len(s.governed[namespace]) == 0 {
				return nil, nil
			}
			return launchers.strays(namespace, vms), s.governed[namespace]
		}
	}
	for token := ""; ; {
		page, next, err := s.page(ctx, scope, token, running)
		if err != nil {
			return nil, err
		}
		if s.claims != nil {
			if err := check.apply(ctx, page); err != nil {
				return nil, fmt.Errorf("auditing the disks of %s: %w", describe(scope), err)
			}
		}
		if running != nil {
			if err := running.apply(ctx, page); err != nil {
				return nil, fmt.Errorf("auditing the instances of %s: %w", describe(scope), err)
			}
		}
		if launchers != nil {
			launchers.apply(page)
		}
		for _, one := range page {
			t.record(one.subject, one.approvals, one.evaluation, one.rulings)
		}
		if next == "" {
			break
		}
		token = next
	}
	t.finish()
	// A namespace without VMs may contain objects that belong to none.
	for _, namespace := range s.listed() {
		if _, done := t.found[namespace]; !done && (scope == everywhere || scope == namespace) {
			t.begin(namespace)
			t.finish()
		}
	}
	return t.found, nil
}

// page reads and evaluates one page. The results of a page that breaks off are discarded.
func (s scan) page(ctx context.Context, scope, token string, running *instanceCheck) (page []found, next string, err error) {
	err = readAgain(ctx, s.retries, func(ctx context.Context) (err error) {
		page = page[:0]
		next, err = s.vms.page(ctx, scope, token, func(object map[string]any) {
			if one, applies := s.evaluate(ctx, object); applies {
				if running != nil && len(one.evaluation.satisfied) > 0 {
					one.running = running.of(ctx, object, one.subject.namespace)
				}
				page = append(page, one)
			}
		})
		return err
	})
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

// evaluate evaluates one VM. It returns false if no approval governs the VM and no policy applies to it.
func (s scan) evaluate(ctx context.Context, object map[string]any) (found, bool) {
	metadata, _ := object["metadata"].(map[string]any)
	one := found{subject: subject{
		namespace: machine.StringAt(metadata, "namespace"),
		name:      machine.StringAt(metadata, "name"),
		uid:       types.UID(machine.StringAt(metadata, "uid")),
	}}
	if s.policed[one.subject.namespace] {
		one.rulings = s.policing.evaluate(ctx, object, one.subject.namespace)
	}
	one.approvals = s.governed[one.subject.namespace]
	if len(one.approvals) > 0 {
		one.evaluation = evaluate(object, one.subject.namespace, one.approvals, s.templates, s.cluster)
		if why := s.beyondSpec(ctx, object, one); why != nil {
			one.evaluation = evaluation{cause: why}
		}
		spec, _ := object["spec"].(map[string]any)
		for _, template := range disks.Templates(spec) {
			one.disks = append(one.disks, template.Name)
		}
	}
	return one, len(one.approvals)+len(one.rulings) > 0
}

// beyondSpec returns the cause if a VM that satisfies an approval violates it by its metadata or its status, nil otherwise.
func (s scan) beyondSpec(ctx context.Context, object map[string]any, one found) *cause {
	if len(one.evaluation.satisfied) == 0 {
		return nil
	}
	satisfied := one.evaluation.satisfied[0].Name()
	if why := s.controllers.ownership(object, satisfied); why != nil || s.sizes == nil {
		return why
	}
	return sizeReference(ctx, s.sizes, object, one.subject.namespace, satisfied)
}
