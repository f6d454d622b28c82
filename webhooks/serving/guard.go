package serving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// guard calls an admission handler, and denies the request if the handler panics.
type guard struct {
	webhook string
	next    admission.Handler
	metrics *metrics
	logger  logr.Logger
}

func (g *guard) handle(ctx context.Context, request admission.Request) (response admission.Response) {
	defer func() {
		if value := recover(); value != nil {
			g.metrics.panics.WithLabelValues(g.webhook).Inc()
			logPanic(admission.DefaultLogConstructor(g.logger, &request), value)
			response = denial(http.StatusInternalServerError, metav1.StatusReasonInternalError, fmt.Sprintf(
				"webhook %s failed while it handled this request; nothing was changed. "+
					"This is a defect: see the log of stencil-manager for requestID %s", g.webhook, request.UID))
		}
	}()
	return g.next.Handle(ctx, request)
}

// logPanic logs the stack of a panic in a handler. The value of the panic may contain user input, secrets included,
// and is logged only if the Go runtime created it.
func logPanic(logger logr.Logger, value any) {
	cause := errors.New("the value of the panic is withheld")
	if err, fromRuntime := value.(runtime.Error); fromRuntime {
		cause = err
	}
	logger.Error(cause, "webhook handler panicked", "panicType", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
}

// denial returns a denial with a complete status.
func denial(code int32, reason metav1.StatusReason, message string) admission.Response {
	response := admission.Errored(code, errors.New(message))
	response.Result.Status = metav1.StatusFailure
	response.Result.Reason = reason
	return response
}
