package transfer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/seal"
	"github.com/vmstencil/stencil/transfer"
)

func TestTheConditionSealed(t *testing.T) {
	long := strings.Repeat("x", 400)
	for _, tc := range []struct {
		name            string
		found           transfer.Seal
		acknowledged    bool
		status          metav1.ConditionStatus
		reason, message string
	}{
		{"sealed", transfer.Seal{Sealed: seal.True}, false, metav1.ConditionTrue, "Sealed", "nothing was found on the disks that identifies one VM"},
		{"sealed and acknowledged", transfer.Seal{Sealed: seal.True}, true, metav1.ConditionTrue, "Sealed", "nothing was found on the disks that identifies one VM"},
		{"two findings", transfer.Seal{Sealed: seal.False, Count: 2, Lines: []string{"a: /b (c)", "d: /e (f)"}}, false, metav1.ConditionFalse, "NotSealed", "a: /b (c); d: /e (f)"},
		{"more findings than lines", transfer.Seal{Sealed: seal.False, Count: 100, Lines: []string{"a: /b (c)"}}, false, metav1.ConditionFalse, "NotSealed", "a: /b (c); and 99 more"},
		{"acknowledged", transfer.Seal{Sealed: seal.False, Count: 1, Lines: []string{"a: /b (c)"}}, true, metav1.ConditionFalse, "Acknowledged", "a: /b (c)"},
		{"unknown", transfer.Seal{Sealed: seal.Unknown, Count: 1, Lines: []string{"a: btrfs is not examined"}}, false, metav1.ConditionUnknown, "NotExamined", "a: btrfs is not examined"},
		{"unknown and acknowledged", transfer.Seal{Sealed: seal.Unknown, Count: 1, Lines: []string{"a: b"}}, true, metav1.ConditionUnknown, "Acknowledged", "a: b"},
		{"a state that does not exist", transfer.Seal{Sealed: "Yes"}, false, metav1.ConditionUnknown, "NotExamined", ""},
		{"lines that are too long", transfer.Seal{Sealed: seal.False, Count: 9, Lines: []string{long, long, long, long, long}}, false, metav1.ConditionFalse, "NotSealed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := sealCondition(&tc.found, tc.acknowledged)
			if tc.name == "lines that are too long" {
				if len(got.Message) > maximumMessage || !strings.HasSuffix(got.Message, "; and 6 more") {
					t.Errorf("%d bytes: %s", len(got.Message), got.Message)
				}
				got.Message = ""
			}
			if diff := cmp.Diff(metav1.Condition{Type: "Sealed", Status: tc.status, Reason: tc.reason, Message: tc.message}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAcknowledgements(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1beta1.ConditionSealed, Status: status, Reason: reason}}
	}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		annotation string
		want       bool
	}{
		{"nothing was reported", nil, "true", false},
		{"it is sealed", condition(metav1.ConditionTrue, v1beta1.ReasonSealed), "true", false},
		{"it was acknowledged", condition(metav1.ConditionFalse, v1beta1.ReasonNotSealed), "true", true},
		{"it stays acknowledged", condition(metav1.ConditionFalse, v1beta1.ReasonAcknowledged), "true", false},
		{"it is not acknowledged any more", condition(metav1.ConditionUnknown, v1beta1.ReasonAcknowledged), "", true},
		{"another value", condition(metav1.ConditionFalse, v1beta1.ReasonNotSealed), "yes", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := &v1beta1.VirtualMachineTemplateImport{Status: v1beta1.VirtualMachineTemplateImportStatus{Conditions: tc.conditions}}
			object.Annotations = map[string]string{contract.AnnotationSealAcknowledged: tc.annotation}
			if got := acknowledgementChanged(object, tc.conditions); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
