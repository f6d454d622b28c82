package cluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

func TestARefusalTellsEachCauseOnce(t *testing.T) {
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Field: field, Message: message}
	}
	for _, tc := range []struct {
		name, message string
		causes        []metav1.StatusCause
		want          string
	}{
		{name: "no causes", message: "no: a: b", want: "doing: no: a: b"},
		{
			name: "as the API server lists them", message: `VM "a" is invalid: [spec.x: Required value, spec.y: Invalid value: "z": bad]`,
			causes: []metav1.StatusCause{cause("spec.x", "Required value"), cause("spec.y", `Invalid value: "z": bad`)},
			want:   "doing: VM \"a\" is invalid\n  spec.x: Required value\n  spec.y: Invalid value: \"z\": bad",
		},
		{
			name: "without their types, and with a hint", message: `VM "a" is forbidden: it is not approved: spec.x: may not be written; spec.y: neither; ask somebody`,
			causes: []metav1.StatusCause{cause("spec.y", "Forbidden: neither"), cause("spec.x", "Forbidden: may not be written")},
			want:   "doing: VM \"a\" is forbidden: it is not approved; ask somebody\n  spec.y: Forbidden: neither\n  spec.x: Forbidden: may not be written",
		},
		{
			name: "a line for each decision", message: "VM \"a\" is forbidden: \n- it is not approved: spec.x: may not be written (approval \"t\")\n- policy p (high): too large at spec.y; fix: less\n- a note",
			causes: []metav1.StatusCause{cause("spec.x", `Forbidden: may not be written (approval "t")`), cause("spec.y", "policy p (high): too large; fix: less")},
			want:   "doing: VM \"a\" is forbidden: it is not approved; a note\n  spec.x: Forbidden: may not be written (approval \"t\")\n  spec.y: policy p (high): too large; fix: less",
		},
		{
			name: "a line for each policy", message: "VM \"a\" is forbidden: \n- policy p (high): too large at spec.y\n- policy q (low): too old",
			causes: []metav1.StatusCause{cause("spec.y", "policy p (high): too large"), cause("", "policy q (low): too old")},
			want:   "doing: VM \"a\" is forbidden\n  spec.y: policy p (high): too large\n  policy q (low): too old",
		},
		{
			name: "causes that the message does not hold", message: "no", causes: []metav1.StatusCause{cause("", "because")},
			want: "doing: no\n  because",
		},
		{
			name: "the message once more", message: "the server is down",
			causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Message: "the server is down"}},
			want:   "doing: the server is down",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status := metav1.Status{Message: tc.message, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: tc.causes}}
			err := Failed("doing", &apierrors.StatusError{ErrStatus: status})
			if err.Error() != tc.want {
				t.Errorf("got %q, want %q", err, tc.want)
			}
			if cli.ExitCode(err) != cli.ExitCluster || !apierrors.IsInvalid(err) {
				t.Errorf("exit code %d", cli.ExitCode(err))
			}
		})
	}
	if err := Failed("doing", errors.New("no route")); err.Error() != "doing: no route" || Failed("doing", nil) != nil {
		t.Error(err)
	}
}
