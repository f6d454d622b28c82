package templates

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/internal/intern"
)

func TestSmallFormsHoldEverything(t *testing.T) {
	object := vmt("fedora", 1, valid)
	object.ResourceVersion = "7"
	object.Labels = map[string]string{"tier": "gold", "os": "", "a": "b"}
	object.Annotations = map[string]string{"note": "text"}
	object.Status.Conditions = []metav1.Condition{
		{Type: "Valid", Status: "True", Reason: "Compiled", Message: "the template compiles", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0))},
		{Type: "Ready", Status: "False"},
	}
	for name, texts := range map[string]*intern.Texts{"with a table of texts": {}, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			got := read(object, texts)
			if diff := cmp.Diff(&object.ObjectMeta, got.Metadata()); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(object.Status.Conditions, got.Conditions(), cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
	if got := read(object, nil); got.Annotation("note") != "text" || got.Annotation("text") != "" {
		t.Errorf("annotations are %q and %q", got.Annotation("note"), got.Annotation("text"))
	}
	none := read(vmt("ubuntu", 1, valid), nil)
	if none.Labels() != nil || none.Annotations() != nil || none.Conditions() != nil {
		t.Errorf("an object without them has labels %v, annotations %v, conditions %v", none.Labels(), none.Annotations(), none.Conditions())
	}
}

func TestWhatIsReturnedIsACopy(t *testing.T) {
	object := vmt("fedora", 1, valid)
	object.Labels = map[string]string{"tier": "gold"}
	object.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False"}}
	got := read(object, nil)
	got.Labels()["tier"], got.Conditions()[0].Status = "none", "True"
	if got.Labels()["tier"] != "gold" || got.Conditions()[0].Status != "False" {
		t.Error("a reader has changed it")
	}
}
