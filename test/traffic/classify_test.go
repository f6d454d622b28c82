package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is the error of client-go for a status.
func answer(code int32, reason metav1.StatusReason, message string) error {
	return fmt.Errorf("creating: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}})
}

func lost(err error) error {
	return &url.Error{Op: "Post", URL: "https://127.0.0.1:1/api", Err: err}
}

func TestClassify(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Result
	}{
		"no error is written": {want: Result{Class: Written}},
		"a webhook denies": {
			err:  answer(403, "Forbidden", `admission webhook "render.template.kubevirt.io" denied the request: template golden/nowhere does not exist`),
			want: Result{Class: Denied, By: "render.template.kubevirt.io", Reason: "Forbidden"},
		},
		"a webhook denies without a word": {
			err:  answer(400, "", `admission webhook "a.example.com" denied the request without explanation`),
			want: Result{Class: Denied, By: "a.example.com", Reason: "Bad Request"},
		},
		"a webhook denies with a code that means unavailable": {
			err:  answer(503, "ServiceUnavailable", `admission webhook "a.example.com" denied the request: template cache is not synced`),
			want: Result{Class: Denied, By: "a.example.com", Reason: "ServiceUnavailable"},
		},
		"a webhook is not reached": {
			err:  answer(500, "InternalError", `Internal error occurred: failed calling webhook "down.traffic.test": failed to call webhook: Post "https://127.0.0.1:1/?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`),
			want: Result{Class: Denied, By: "down.traffic.test", Broken: true, Reason: "InternalError"},
		},
		"a policy denies": {
			err:  answer(422, "Invalid", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'deciding-policy' with binding 'its-binding' denied request: denied 'by' the test`),
			want: Result{Class: Denied, By: "deciding-policy", Reason: "Invalid"},
		},
		"a policy quotes a webhook": {
			err:  answer(422, "Invalid", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'a' denied request: as admission webhook "b" would`),
			want: Result{Class: Denied, By: "a", Reason: "Invalid"},
		},
		"a webhook quotes a policy": {
			err:  answer(403, "Forbidden", `admission webhook "b" denied the request: ValidatingAdmissionPolicy 'a' denied request: no`),
			want: Result{Class: Denied, By: "b", Reason: "Forbidden"},
		},
		"the parameters of a policy are not served": {
			err:  answer(422, "Invalid", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'traffic.stencil.test/v1, Kind=Missing'`),
			want: Result{Class: Denied, By: "p", Broken: true, Reason: "Invalid"},
		},
		"the parameters of a binding are missing": {
			err:  answer(422, "Invalid", "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"),
			want: Result{Class: Denied, By: "p", Broken: true, Reason: "Invalid"},
		},
		"the expression of a policy fails": {
			err:  answer(422, "Invalid", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.data.missing == 'a'' resulted in error: no such key: data`),
			want: Result{Class: Denied, By: "p", Broken: true, Reason: "Invalid"},
		},
		"RBAC rejects": {
			err:  answer(403, "Forbidden", `virtualmachines.kubevirt.io is forbidden: User "bob" cannot create resource "virtualmachines" in API group "kubevirt.io" in the namespace "a"`),
			want: Result{Class: Rejected, Reason: "Forbidden"},
		},
		"a schema rejects": {
			err:  answer(422, "Invalid", `VirtualMachine.kubevirt.io "a" is invalid: spec.template: Required value`),
			want: Result{Class: Rejected, Reason: "Invalid"},
		},
		"a conflict remains": {
			err:  answer(409, "Conflict", `Operation cannot be fulfilled on virtualmachines.kubevirt.io "a": the object has been modified; please apply your changes to the latest version and try again`),
			want: Result{Class: Rejected, Reason: "Conflict"},
		},
		"an object is missing": {
			err:  answer(404, "NotFound", `virtualmachines.kubevirt.io "a" not found`),
			want: Result{Class: Rejected, Reason: "NotFound"},
		},
		"a definition is not served yet": {
			err:  answer(404, "NotFound", "the server could not find the requested resource"),
			want: Result{Class: Unavailable, Reason: "NotFound"},
		},
		"an admission plugin is not synced yet": {
			err:  answer(403, "Forbidden", `configmaps "a" is forbidden: not yet ready to handle request`),
			want: Result{Class: Unavailable, Reason: "Forbidden"},
		},
		"a role is not synced yet": {
			err:  answer(403, "Forbidden", `virtualmachines.kubevirt.io "a" is forbidden: User "ada" cannot get resource "virtualmachines" in API group "kubevirt.io" in the namespace "a": rbac: RBAC: role.rbac.authorization.k8s.io "m36c7b95924eeb7f8" not found`),
			want: Result{Class: Unavailable, Reason: "Forbidden"},
		},
		"etcd does not answer": {
			err:  answer(500, "InternalError", "etcdserver: request timed out"),
			want: Result{Class: Unavailable, Reason: "InternalError"},
		},
		"the API server gives up": {
			err:  answer(504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
			want: Result{Class: Unavailable, Reason: "Timeout"},
		},
		"a cache is initialized": {
			err:  answer(429, "TooManyRequests", "storage is (re)initializing"),
			want: Result{Class: Unavailable, Reason: "TooManyRequests"},
		},
		"the port is closed": {err: lost(errors.New("dial tcp 127.0.0.1:1: connect: connection refused")), want: Result{Class: Unavailable, Reason: "ConnectionRefused"}},
		"the connection is reset": {
			err: lost(fmt.Errorf("read tcp: read: %w", syscall.ECONNRESET)), want: Result{Class: Unavailable, Reason: "ConnectionLost"},
		},
		"the connection ends":     {err: lost(io.EOF), want: Result{Class: Unavailable, Reason: "ConnectionLost"}},
		"the client gives up":     {err: lost(context.DeadlineExceeded), want: Result{Class: Unavailable, Reason: "Timeout"}},
		"any other network error": {err: lost(errors.New("no route to host")), want: Result{Class: Unavailable, Reason: "NoAnswer"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Classify(tc.err)
			if tc.err != nil && !strings.HasSuffix(tc.err.Error(), got.Message) {
				t.Errorf("message %q of %q", got.Message, tc.err)
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
