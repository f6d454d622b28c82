package transfer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// queueInterval is how often a transfer that waits for others looks again.
const queueInterval = 5 * time.Second

// place identifies a transfer. One that was deleted and created again has the place of its predecessor.
type place struct {
	direction string
	types.NamespacedName
}

// slots limit how many transfers are in progress at a time, in all namespaces and in each. Of those that wait, the namespace with the fewest in progress has its
// turn, then the one that was created first: a namespace with many transfers, or slow ones, makes no other wait for all of them.
type slots struct {
	limit, perNamespace int
	// recover lists the transfers that were in progress when the manager started. It is called once.
	recover func(context.Context) ([]place, error)

	mutex     sync.Mutex
	recovered bool
	held      map[place]bool
	waiting   map[place]time.Time
}

// take reports whether a transfer, created at this time, may begin. One that has begun may go on.
func (s *slots) take(ctx context.Context, p place, created time.Time) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.recovered {
		begun, err := s.recover(ctx)
		if err != nil {
			return false, err
		}
		for _, each := range begun {
			s.held[each] = true
		}
		s.recovered = true
	}
	if s.held[p] {
		return true, nil
	}
	if len(s.held)+s.before(p, created) >= s.limit || s.free(p.Namespace) <= 0 {
		s.waiting[p] = created
		return false, nil
	}
	delete(s.waiting, p)
	s.held[p] = true
	return true, nil
}

// free returns how many more transfers of a namespace may begin as far as its own limit is concerned.
func (s *slots) free(namespace string) int {
	return s.perNamespace - s.of(namespace)
}

// of returns how many transfers of a namespace are in progress.
func (s *slots) of(namespace string) (held int) {
	for each := range s.held {
		if each.Namespace == namespace {
			held++
		}
	}
	return held
}

// before returns how many of those that wait have their turn before a transfer.
func (s *slots) before(p place, created time.Time) (before int) {
	mine, ahead := s.of(p.Namespace), map[string]int{}
	for other, since := range s.waiting {
		if other == p {
			continue
		}
		first := cmp.Or(cmp.Compare(s.of(other.Namespace), mine), since.Compare(created), strings.Compare(other.String(), p.String())) < 0
		if first && ahead[other.Namespace] < s.free(other.Namespace) {
			ahead[other.Namespace]++
			before++
		}
	}
	return before
}

// crowded reports whether a transfer waits for others of its namespace, and not for those of all.
func (s *slots) crowded(namespace string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.free(namespace) <= 0 && len(s.held) < s.limit
}

// leave lets others take the place of a transfer.
func (s *slots) leave(p place) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.held, p)
	delete(s.waiting, p)
}

// counts returns how many transfers are in progress, and how many wait for them.
func (s *slots) counts() (held, waiting int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.held), len(s.waiting)
}

// occupies reports whether a transfer in a phase counts. One whose package is downloaded, or that waits for a user, does not.
func occupies(phase v1beta1.TransferPhase) bool {
	switch phase {
	case v1beta1.TransferInspecting, v1beta1.TransferPreparing, v1beta1.TransferTransferring, v1beta1.TransferPublishing:
		return true
	}
	return false
}

// inProgress lists the transfers that the statuses say have begun.
func inProgress(ctx context.Context, reader client.Reader) (begun []place, err error) {
	imports, exports, requests := &v1beta1.VirtualMachineTemplateImportList{}, &v1beta1.VirtualMachineTemplateExportList{}, &v1beta1.VirtualMachineTemplateRequestList{}
	for _, list := range []client.ObjectList{imports, exports, requests} {
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the transfers in progress: %w", err)
		}
	}
	for i := range imports.Items {
		if each := &imports.Items[i]; occupies(each.Status.Phase) {
			begun = append(begun, place{directionImport, client.ObjectKeyFromObject(each)})
		}
	}
	for i := range exports.Items {
		if each := &exports.Items[i]; occupies(each.Status.Phase) {
			begun = append(begun, place{directionExport, client.ObjectKeyFromObject(each)})
		}
	}
	for i := range requests.Items {
		each := &requests.Items[i]
		if c := meta.FindStatusCondition(each.Status.Conditions, v1beta1.ConditionSealed); c != nil && examines(c.Reason) && c.Reason != ReasonQueued {
			begun = append(begun, place{directionCapture, client.ObjectKeyFromObject(each)})
		}
	}
	return begun, nil
}
