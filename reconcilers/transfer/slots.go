package transfer

import (
	"context"
	"fmt"
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

// slots limit how many transfers are in progress at a time. Those that wait have their turn in the order in which they were created.
type slots struct {
	limit int
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
	before := 0
	for other, since := range s.waiting {
		if other != p && (since.Before(created) || since.Equal(created) && other.String() < p.String()) {
			before++
		}
	}
	if len(s.held)+before >= s.limit {
		s.waiting[p] = created
		return false, nil
	}
	delete(s.waiting, p)
	s.held[p] = true
	return true, nil
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
