package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/internal/preview"
)

var vmResource = schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}

// creates authorizes users to create from the template box of shop.
func creates(a authorizer.Attributes) bool {
	return a.GetVerb() == "create" && a.GetNamespace() == "shop" && a.GetResource() == "virtualmachinetemplates" && a.GetSubresource() == "create" && a.GetName() == "box"
}

// writes authorizes users to create their own VirtualMachines from box in floor.
func writes(a authorizer.Attributes) bool {
	return a.GetVerb() == "create" && a.GetNamespace() == "floor" && a.GetAPIGroup() == "kubevirt.io" && a.GetResource() == "virtualmachines" ||
		a.GetVerb() == "use" && a.GetNamespace() == "shop" && a.GetAPIGroup() == "template.kubevirt.io" && a.GetResource() == "virtualmachinetemplates" && a.GetName() == "box"
}

func TestExplain(t *testing.T) {
	said := []v1beta1.Decision{{Decision: v1beta1.EffectDeny, Kind: v1beta1.DecisionKindPolicy, Policy: "sizes", Message: "too large", Field: "spec", Fix: "smaller"}}
	const body = "parameters: {NAME: web-1, PASSWORD: longenough, UNUSED: x}\nexplain: true\n"
	for _, tc := range []struct {
		name, body    string
		allow         func(authorizer.Attributes) bool
		wantNamespace string
		wantDenied    string // the decision about somebody who may not
	}{
		{name: "where the template is", body: body, allow: creates, wantNamespace: "shop"},
		{name: "elsewhere, for somebody who writes manifests", body: body + "targetNamespace: floor", allow: writes, wantNamespace: "floor"},
		{name: "the right for one template is none elsewhere", body: body + "targetNamespace: floor", allow: creates,
			wantDenied: `user "ada" may not create VirtualMachines from template shop/box in namespace "floor", which takes verb "create" on virtualmachinetemplates/create of group subresources.template.kubevirt.io there`},
		{name: "somebody who may create nothing", body: body,
			wantDenied: `user "ada" may not create VirtualMachines from template shop/box in namespace "shop", which takes verb "create" on virtualmachinetemplates/create of group subresources.template.kubevirt.io there`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fixture{allow: tc.allow, creator: &recorder{decisions: said}}
			got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", tc.body)
			var answer struct {
				VirtualMachine map[string]any
				Message        string
				Decisions      []v1beta1.Decision
			}
			if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || got.Code != http.StatusOK {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			want := said
			if tc.wantDenied != "" {
				want = []v1beta1.Decision{{Decision: v1beta1.EffectDeny, Message: tc.wantDenied}}
			}
			if diff := cmp.Diff(want, answer.Decisions); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			if answer.Message != "web-1 is small" || answer.VirtualMachine["kind"] != "VirtualMachine" {
				t.Errorf("the rendering is missing: %s", got.Body)
			}
			if f.creator.namespace != tc.wantNamespace || tc.wantDenied != "" && f.creator.asked > 0 {
				t.Errorf("asked %d times, last in %q", f.creator.asked, f.creator.namespace)
			}
			if diff := cmp.Diff(warnings{"parameter UNUSED has no effect: the template declares it and never refers to it"}, f.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreateExplains(t *testing.T) {
	f := fixture{allow: creates, creator: &recorder{decisions: []v1beta1.Decision{{Decision: v1beta1.EffectAllow, Policy: "team"}}}}
	got := f.do(t, "POST", base+"virtualmachinetemplates/box/create", "", "parameters: {NAME: web-1, PASSWORD: longenough}\nexplain: true")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"stored":true`) || !strings.Contains(got.Body.String(), `"decisions":[{"decision":"allow","policy":"team"}]`) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestWhatCannotBeExplained(t *testing.T) {
	moved := apierrors.NewConflict(templateResource, "shop/box", errors.New("it changed"))
	f := fixture{allow: creates, creator: &recorder{failures: []error{moved, moved, apierrors.NewServiceUnavailable("nobody is there")}}}
	got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", "parameters: {NAME: web-1, PASSWORD: longenough}\nexplain: true")
	if got.Code != http.StatusServiceUnavailable || f.creator.asked != 3 {
		t.Errorf("%d after %d attempts: %s", got.Code, f.creator.asked, got.Body)
	}
	got = f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", "parameters: {NAME: web-1, PASSWORD: longenough}\nexplain: true\ntargetNamespace: ../x")
	if got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body.String(), "targetNamespace") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// cluster answers the dry runs of a preview.
type cluster struct {
	marked, plain         *metav1.Status // nil stores
	warnMarked, warnPlain []string
	asked                 []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, warnings, what := c.plain, c.warnPlain, "plain"
	if r.Header.Get("Impersonate-Extra-Delegation.template.kubevirt.io%2fpreview") == "true" {
		status, warnings, what = c.marked, c.warnMarked, "marked"
	}
	c.asked = append(c.asked, what+" "+r.URL.Query().Get("dryRun")+" for "+r.Header.Get("Impersonate-Extra-Delegation.template.kubevirt.io%2fuser"))
	for _, text := range warnings {
		w.Header().Add("Warning", `299 - "`+text+`"`)
	}
	w.Header().Set("Content-Type", "application/json")
	if status == nil {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"VirtualMachine"}`))
		return
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func TestPreviewOfADelegate(t *testing.T) {
	decided := func(decisions ...v1beta1.Decision) *metav1.Status {
		status := preview.Status(decisions)
		return &status
	}
	fails := func(err *apierrors.StatusError) *metav1.Status { return &err.ErrStatus }
	allow := v1beta1.Decision{Decision: v1beta1.EffectAllow, Policy: "team"}
	warn := v1beta1.Decision{Decision: v1beta1.EffectWarn, Kind: v1beta1.DecisionKindPolicy, Policy: "owners", Message: "no owner"}
	deny := v1beta1.Decision{Decision: v1beta1.EffectDeny, Kind: v1beta1.DecisionKindPolicy, Policy: "sizes", Message: "too large"}
	exists := fails(apierrors.NewAlreadyExists(vmResource, "web-1"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}, "web-1", nil)
	invalid.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "spec.running", Message: "both"}}
	record := apierrors.NewForbidden(vmResource, "web-1", errors.New("moved"))
	record.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "metadata.annotations[template.kubevirt.io/rendered]"}}
	both := []string{"marked All for ada", "plain All for ada"}
	for _, tc := range []struct {
		name      string
		cluster   cluster
		want      []v1beta1.Decision
		wantError int32
		wantAsked []string
	}{
		{name: "a denial is all there is to know", cluster: cluster{marked: decided(deny, allow)}, want: []v1beta1.Decision{deny, allow}, wantAsked: both[:1]},
		{name: "consent, and nobody else objects", cluster: cluster{marked: decided(allow)}, want: []v1beta1.Decision{allow}, wantAsked: both},
		{name: "nobody judges", cluster: cluster{marked: decided()}, want: []v1beta1.Decision{}, wantAsked: both},
		{
			name:    "somebody else warns; our own warnings are no others",
			cluster: cluster{marked: decided(warn, allow), warnMarked: []string{"policy owners: no owner"}, warnPlain: []string{"policy owners: no owner", "deprecated field"}},
			want:    []v1beta1.Decision{warn, {Decision: v1beta1.EffectWarn, Message: "deprecated field"}, allow}, wantAsked: both,
		},
		{
			name: "somebody else denies what ours let pass", cluster: cluster{marked: decided(allow), plain: exists},
			want: []v1beta1.Decision{{Decision: v1beta1.EffectDeny, Message: `virtualmachines.kubevirt.io "web-1" already exists`}, allow}, wantAsked: both,
		},
		{
			name: "somebody else denies it before ours see it", cluster: cluster{marked: &invalid.ErrStatus},
			want: []v1beta1.Decision{{Decision: v1beta1.EffectDeny, Message: invalid.ErrStatus.Message, Field: "spec.running"}}, wantAsked: both[:1],
		},
		{name: "nobody answers previews", wantError: 500, wantAsked: both[:1]},
		{name: "nobody can judge", cluster: cluster{marked: fails(apierrors.NewServiceUnavailable("not read yet"))}, wantError: 503, wantAsked: both[:1]},
		{name: "the second dry run fails", cluster: cluster{marked: decided(allow), plain: fails(apierrors.NewTimeoutError("slow", 0))}, wantError: 504, wantAsked: both},
		{name: "the template moved", cluster: cluster{marked: &record.ErrStatus}, wantError: 403, wantAsked: both[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(&tc.cluster)
			defer server.Close()
			delegate, err := NewDelegate(&rest.Config{Host: server.URL}, "the-server")
			if err != nil {
				t.Fatal(err)
			}
			got, err := delegate.Preview(context.Background(), authenticationv1.UserInfo{Username: "ada"}, "shop", []byte(`{}`))
			var status apierrors.APIStatus
			switch {
			case tc.wantError == 0 && err != nil:
				t.Fatal(err)
			case tc.wantError != 0 && (!errors.As(err, &status) || status.Status().Code != tc.wantError):
				t.Errorf("error %v, want code %d", err, tc.wantError)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantAsked, tc.cluster.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}
