package writers_test

import (
	"encoding/json"
	"fmt"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/webhooks/writers"
)

func TestWriters(t *testing.T) {
	const (
		here    = `{"virtualMachine": {"spec": {"dataVolumeTemplates": [{"spec": {"sourceRef": {"kind": "DataSource", "name": "fedora", "namespace": "golden"}}}]}}}`
		there   = `{"virtualMachine": {"spec": {"dataVolumeTemplates": [{"spec": {"sourceRef": {"kind": "DataSource", "name": "fedora", "namespace": "images"}}}]}}}`
		varies  = `{"virtualMachine": {"spec": {"dataVolumeTemplates": [{"spec": {"sourceRef": {"kind": "DataSource", "name": "fedora", "namespace": "${WHERE}"}}}]}}}`
		network = `{"virtualMachine": {"spec": {"template": {"spec": {"networks": [{"multus": {"networkName": "infra/lan"}}]}}}}}`
		local   = `{"virtualMachine": {"spec": {"template": {"spec": {"networks": [{"multus": {"networkName": "lan"}}, {"multus": {"networkName": "golden/lan"}}]}}}}}`
		ada     = "system:serviceaccount:team-a:ada team%20a"
	)
	object := func(spec, writer string, generation int) []byte {
		annotations := `"example.com/kept": "yes"`
		if writer != "" {
			annotations += fmt.Sprintf(", %q: %q", contract.AnnotationWrittenBy, writer)
		}
		return fmt.Appendf(nil, `{"metadata": {"name": "fedora", "generation": %d, "annotations": {%s}}, "spec": %s}`, generation, annotations, spec)
	}
	for name, tc := range map[string]struct {
		resource      string
		user          string
		before, after []byte
		want          string
	}{
		"a template that names no other namespace": {after: object(here, "", 0)},
		"one that does":                                     {after: object(there, "", 0), want: "1 " + ada},
		"one that may":                                      {after: object(varies, "", 0), want: "1 " + ada},
		"a network of another namespace":                    {after: object(network, "", 0), want: "1 " + ada},
		"networks of its own":                               {after: object(local, "", 0)},
		"a copy of another user's":                          {after: object(there, "1 eve", 0), want: "1 " + ada},
		"a copy of another user's that names none":          {after: object(here, "1 eve", 0)},
		"a changed specification":                           {before: object(there, "3 eve", 3), after: object(network, "3 eve", 3), want: "4 " + ada},
		"a specification that names no other namespace now": {before: object(there, "3 eve", 3), after: object(here, "3 eve", 3)},
		"a replacement without the annotation":              {before: object(there, "3 eve", 3), after: object(there, "", 3), want: "3 eve"},
		"a replacement with another name":                   {before: object(there, "3 eve", 3), after: object(there, "3 "+ada, 3), want: "3 eve"},
		"what Stencil writes itself":                        {user: "system:serviceaccount:stencil-system:stencil-manager", after: object(there, "", 0)},
		"what Stencil writes over a user's":                 {user: "system:serviceaccount:stencil-system:stencil-manager", before: object(here, "", 3), after: object(there, "3 eve", 3)},
		"an export":                                         {resource: "virtualmachinetemplateexports", after: object("{}", "", 0), want: "1 " + ada},
		"a request":                                         {resource: "virtualmachinetemplaterequests", after: object("{}", "", 0), want: "1 " + ada},
		"an import":                                         {resource: "virtualmachinetemplateimports", after: object("{}", "", 0), want: "1 " + ada},
		"an export of another user's":                       {resource: "virtualmachinetemplateexports", after: object("{}", "1 eve", 0), want: "1 " + ada},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "golden", Resource: metav1.GroupVersionResource{Resource: "virtualmachinetemplates"},
				UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:team-a:ada", Groups: []string{"team a"}},
				Object:   runtime.RawExtension{Raw: tc.after}, OldObject: runtime.RawExtension{Raw: tc.before},
			}}
			if tc.before != nil {
				request.Operation = admissionv1.Update
			}
			if tc.resource != "" {
				request.Resource.Resource = tc.resource
			}
			if tc.user != "" {
				request.UserInfo.Username = tc.user
			}
			response := writers.New("stencil-system").Handle(t.Context(), request)
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			stored := tc.after
			if len(response.Patches) > 0 {
				patch, err := json.Marshal(response.Patches)
				if err != nil {
					t.Fatal(err)
				}
				operations, err := jsonpatch.DecodePatch(patch)
				if err != nil {
					t.Fatal(err)
				}
				if stored, err = operations.Apply(tc.after); err != nil {
					t.Fatal(err)
				}
			}
			var read metav1.PartialObjectMetadata
			if err := json.Unmarshal(stored, &read); err != nil {
				t.Fatal(err)
			}
			if got := read.Annotations[contract.AnnotationWrittenBy]; got != tc.want || read.Annotations["example.com/kept"] != "yes" {
				t.Errorf("got %q, want %q; all: %v", got, tc.want, read.Annotations)
			}
		})
	}
}

// TestNothingElseIsPatched has a number that a float does not hold.
func TestNothingElseIsPatched(t *testing.T) {
	const size = 1152921504606846976
	for _, metadata := range []string{`{"name": "a"}`, `{"name": "a", "annotations": null}`, `{"name": "a", "annotations": {}}`, `{"name": "a", "annotations": {"template.kubevirt.io/written-by": "1 eve"}}`} {
		raw := fmt.Appendf(nil, `{"metadata": %s, "spec": {"source": {"upload": {"size": %d}}}}`, metadata, size)
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Namespace: "golden", Resource: metav1.GroupVersionResource{Resource: "virtualmachinetemplateimports"},
			UserInfo: authenticationv1.UserInfo{Username: "ada"}, Object: runtime.RawExtension{Raw: raw},
		}}
		response := writers.New("stencil-system").Handle(t.Context(), request)
		if len(response.Patches) != 1 || response.Patches[0].Path != "/metadata/annotations" && response.Patches[0].Path != "/metadata/annotations/template.kubevirt.io~1written-by" {
			t.Errorf("%s: %+v", metadata, response)
		}
	}
}

func TestMalformedObjectsAreRefused(t *testing.T) {
	for _, raw := range []string{"", "{", "[]", "{}"} {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)}}}
		if response := writers.New("stencil-system").Handle(t.Context(), request); response.Allowed || response.Result.Code != 400 {
			t.Errorf("%s: %+v", raw, response)
		}
	}
}
