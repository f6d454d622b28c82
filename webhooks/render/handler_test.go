package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/render"
)

// fakeTemplates is a fake template cache.
type fakeTemplates struct {
	mu        sync.Mutex
	templates map[string]*templatecache.Template
	unsynced  bool
}

func (s *fakeTemplates) Synced() bool { return !s.unsynced }

func (s *fakeTemplates) Wait(_ context.Context, namespace, name string, _ time.Duration) *templatecache.Template {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.templates[namespace+"/"+name]
}

func (s *fakeTemplates) List() []*templatecache.Template {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.templates))
}

func (s *fakeTemplates) put(t testing.TB, raw string, generation int64) {
	t.Helper()
	object := fixture.Template(t, "box", raw)
	object.UID, object.Generation = "uid", generation
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.templates == nil {
		s.templates = map[string]*templatecache.Template{}
	}
	s.templates["golden/box"] = templatecache.Compile(object)
}

// rights is a fake permission checker: a set of "verb name", or an error.
type rights struct {
	granted map[string]bool
	err     error
}

func (r rights) Allowed(_ context.Context, _ authenticationv1.UserInfo, verb permission.Verb, _, name string) (bool, error) {
	return r.granted[string(verb)+" "+name], r.err
}

func (r rights) May(_ context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error) {
	return r.granted[user.Username+" "+action.String()], r.err
}

var everything = rights{granted: map[string]bool{"use box": true, "get box": true, "use gone": true, "get gone": true}}

const box = `
spec:
  objectLabels: {size: "${SIZE}"}
  parameters:
  - {name: NAME, generate: expression, from: "box-[a-z]{4}"}
  - {name: SIZE, value: small}
  - {name: PASSWORD, sensitive: true}
  - {name: UNUSED}
  virtualMachine:
    metadata:
      name: ${NAME}
      labels: {os: linux}
      annotations: {note: "of ${NAME}", template.kubevirt.io/rendered: forged, parameter.template.kubevirt.io/SIZE: huge}
    spec:
      runStrategy: Halted
      template:
        spec:
          hostname: ${NAME}
          domain: {devices: {}}
          volumes:
          - {name: init, cloudInitNoCloud: {userData: "password: ${PASSWORD}"}}
`

func create(t testing.TB, object string) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "1",
		Operation: admissionv1.Create,
		Namespace: "team-a",
		Resource:  metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		UserInfo:  authenticationv1.UserInfo{Username: "ada"},
		Object:    runtime.RawExtension{Raw: fixture.JSON(t, object)},
	}}
}

func apply(t testing.TB, request admission.Request, response admission.Response) map[string]any {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("denied: %s", response.Result.Message)
	}
	var object map[string]any
	if err := json.Unmarshal(fixture.Patched(t, request.Object.Raw, response.Patch), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func handler(t testing.TB, r rights) (*render.Handler, *fakeTemplates) {
	t.Helper()
	s := &fakeTemplates{}
	s.put(t, box, 7)
	return render.New(render.Options{Templates: s, Permissions: r, Approvals: governing(), Suffix: func() string { return "abcde" }}), s
}

const ref = "    template.kubevirt.io/template-ref: golden/box\n"

func TestCreate(t *testing.T) {
	metadata := func(name, rest string) string {
		return "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  " + name + "\n  annotations:\n" + ref + rest
	}
	for _, tc := range []struct {
		name, object  string
		want          map[string]any // JSON Pointer -> value; nil means absent
		wantWarnings  []string
		wantUntouched bool
	}{
		{
			name:          "a VM without a reference is let through as it is",
			object:        "metadata: {name: web-1}\nspec: {runStrategy: Halted}",
			want:          map[string]any{"/spec/runStrategy": "Halted"},
			wantUntouched: true,
		},
		{
			name:   "the name binds NAME wherever the template uses it",
			object: metadata("name: web-1", ""),
			want: map[string]any{
				"/metadata/name": "web-1", "/spec/template/spec/hostname": "web-1", "/metadata/annotations/note": "of web-1",
				"/metadata/labels/size": "small", "/metadata/labels/os": "linux", "/spec/template/metadata/labels/size": "small",
				"/metadata/labels/vm.kubevirt.io~1template": "box", "/metadata/labels/vm.kubevirt.io~1template.namespace": "golden", "/metadata/labels/vm.kubevirt.io~1template.revision": "7",
			},
		},
		{
			name:   "a generated name is made here and binds too",
			object: metadata("generateName: web-", ""),
			want:   map[string]any{"/metadata/name": "web-abcde", "/metadata/generateName": "web-", "/spec/template/spec/hostname": "web-abcde"},
		},
		{
			name:   "a long prefix of a generated name is cut to what a name can hold",
			object: metadata("generateName: "+strings.Repeat("a", 80), ""),
			want:   map[string]any{"/metadata/name": strings.Repeat("a", 58) + "abcde"},
		},
		{
			name:   "keys of the contract do not come from a template",
			object: metadata("name: web-1", ""),
			want:   map[string]any{"/metadata/annotations/parameter.template.kubevirt.io~1SIZE": nil},
		},
		{
			name:   "what the user wrote wins over what was rendered",
			object: metadata("name: web-1", "    note: mine\n  labels: {os: bsd}\nspec: {runStrategy: Always, template: {spec: {hostname: h}}}"),
			want: map[string]any{
				"/metadata/annotations/note": "mine", "/metadata/labels/os": "bsd", "/metadata/labels/size": "small",
				"/spec/runStrategy": "Always", "/spec/template/spec/hostname": "h", "/spec/template/spec/volumes/0/name": "init",
			},
		},
		{
			name:   "a sensitive parameter is used and forgotten",
			object: metadata("name: web-1", "    parameter.template.kubevirt.io/PASSWORD: s3cret\n"),
			want: map[string]any{
				"/spec/template/spec/volumes/0/cloudInitNoCloud/userData":        "password: s3cret",
				"/metadata/annotations/parameter.template.kubevirt.io~1PASSWORD": nil,
			},
		},
		{
			name:         "a parameter that does nothing is warned about",
			object:       metadata("name: web-1", "    parameter.template.kubevirt.io/UNUSED: x\n"),
			want:         map[string]any{"/metadata/annotations/parameter.template.kubevirt.io~1UNUSED": "x"},
			wantWarnings: []string{"parameter UNUSED has no effect: the template declares it and never refers to it"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, _ := handler(t, everything)
			request := create(t, tc.object)
			response := h.Handle(t.Context(), request)
			got := apply(t, request, response)
			for pointer, want := range tc.want {
				if diff := cmp.Diff(want, lookup(got, pointer)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", pointer, diff)
				}
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.wantUntouched != (response.Patch == nil) {
				t.Errorf("patch %s", response.Patch)
			}
		})
	}
}

func lookup(object map[string]any, pointer string) any {
	var value any = object
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			var i int
			if _, err := fmt.Sscan(token, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func TestThePatchHoldsOnlyWhatChanges(t *testing.T) {
	h, _ := handler(t, everything)
	request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, mine: stays}}\nspec: {template: {spec: {nodeSelector: {a: b}}}}")
	response := h.Handle(t.Context(), request)
	for _, word := range []string{"mine", "stays", "nodeSelector"} {
		if strings.Contains(string(response.Patch), `"`+word) {
			t.Errorf("the patch encodes %q again: %s", word, response.Patch)
		}
	}
}

// The match conditions of the webhooks search for this exact text.
func TestTheRecordSaysWhetherTheTemplateHasRules(t *testing.T) {
	for raw, want := range map[string]bool{box: false, `metadata: {annotations: {validations: "[]"}}` + box: true} {
		s := &fakeTemplates{}
		s.put(t, raw, 7)
		request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}")
		object := apply(t, request, render.New(render.Options{Templates: s, Permissions: everything, Approvals: govern{}}).Handle(t.Context(), request))
		record, _ := lookup(object, "/metadata/annotations/template.kubevirt.io~1rendered").(string)
		if got := strings.Contains(record, `"rules":true`); got != want {
			t.Errorf("the template has rules: %t, and the record is %s", want, record)
		}
	}
}

func TestDenials(t *testing.T) {
	for _, tc := range []struct {
		name       string
		object     string
		rights     rights
		unsynced   bool
		template   string
		wantCode   int32
		wantReason metav1.StatusReason
		wantText   string
	}{
		{
			name: "no permission, and not allowed to see: missing and forbidden look alike", object: "metadata: {annotations: {template.kubevirt.io/template-ref: golden/box}}",
			wantCode: 403, wantReason: metav1.StatusReasonForbidden, wantText: `it does not exist or user "ada" may not use it`,
		},
		{
			name: "a missing template, and not allowed to see", object: "metadata: {annotations: {template.kubevirt.io/template-ref: golden/gone}}",
			wantCode: 403, wantReason: metav1.StatusReasonForbidden, wantText: `it does not exist or user "ada" may not use it`,
		},
		{
			name: "no permission, but allowed to see", object: "metadata: {annotations: {template.kubevirt.io/template-ref: golden/box}}",
			rights:   rights{granted: map[string]bool{"get box": true}},
			wantCode: 403, wantReason: metav1.StatusReasonForbidden, wantText: `"golden/box" is forbidden: user "ada" may not use it; ask for verb "use"`,
		},
		{
			name: "a missing template, and allowed to see", object: "metadata: {annotations: {template.kubevirt.io/template-ref: golden/gone}}",
			rights:   everything,
			wantCode: 404, wantReason: metav1.StatusReasonNotFound, wantText: `"golden/gone" not found`,
		},
		{
			name: "the permission check fails", object: "metadata: {annotations: {template.kubevirt.io/template-ref: golden/box}}",
			rights:   rights{err: errors.New("connection refused")},
			wantCode: 503, wantReason: metav1.StatusReasonServiceUnavailable, wantText: "the permission check failed; try again in a moment",
		},
		{
			name: "the template cache is not synced", object: "metadata: {annotations: {template.kubevirt.io/template-ref: golden/gone}}",
			rights: everything, unsynced: true,
			wantCode: 503, wantReason: metav1.StatusReasonServiceUnavailable, wantText: "the template cache is not synced",
		},
		{
			name: "a template that places its VMs in another namespace", object: "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/WHERE: team-b}}",
			rights: everything, template: strings.NewReplacer("- {name: UNUSED}", "- {name: WHERE}", "name: ${NAME}\n      labels", "name: ${NAME}\n      namespace: ${WHERE}\n      labels").Replace(box),
			wantCode: 422, wantReason: metav1.StatusReasonInvalid, wantText: `metadata.namespace: Invalid value: "team-a": the template places this VM in namespace "team-b"`,
		},
		{
			name: "a template with other objects, where none are created", object: "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/PASSWORD: s3cret}}",
			rights: everything, template: box + "  objects:\n  - {apiVersion: v1, kind: Secret, metadata: {name: \"${NAME}-db\"}, stringData: {a: \"${PASSWORD}\"}}\n  - {apiVersion: v1, kind: Service, metadata: {name: web}}\n",
			wantCode: 422, wantReason: metav1.StatusReasonInvalid, wantText: `VirtualMachine.kubevirt.io "web-1" is invalid: template[golden/box].spec.objects: Forbidden: ` +
				`template golden/box has other objects, which are not created together with the VirtualMachine here (Secret ${NAME}-db, Service web); use "stencilctl process golden/box … | kubectl create -f -"`,
		},
		{
			name: "annotations that are no object", object: "metadata: {annotations: [1]}",
			rights:   everything,
			wantCode: 422, wantReason: metav1.StatusReasonInvalid, wantText: "metadata.annotations: Invalid value",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, s := handler(t, tc.rights)
			s.unsynced = tc.unsynced
			if tc.template != "" {
				s.put(t, tc.template, 1)
			}
			response := h.Handle(t.Context(), create(t, tc.object))
			if response.Allowed || response.Patch != nil {
				t.Fatal("it was allowed")
			}
			status := response.Result
			if status.Code != tc.wantCode || status.Reason != tc.wantReason || !strings.Contains(status.Message, tc.wantText) {
				t.Errorf("got %d %s %q; want %d %s %q", status.Code, status.Reason, status.Message, tc.wantCode, tc.wantReason, tc.wantText)
			}
		})
	}
}

func TestARenderingIsNeverAMixtureOfTwoVersions(t *testing.T) {
	h, s := handler(t, everything)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for generation := int64(8); ; generation++ {
			select {
			case <-stop:
				return
			default:
				s.put(t, strings.Replace(box, "linux", fmt.Sprintf("linux-%d", generation), 1), generation)
			}
		}
	})
	request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}")
	for range 500 {
		vm := apply(t, request, h.Handle(t.Context(), request))
		revision, os := lookup(vm, "/metadata/labels/vm.kubevirt.io~1template.revision"), lookup(vm, "/metadata/labels/os")
		if want := fmt.Sprintf("linux-%s", revision); os != want && revision != "7" {
			t.Fatalf("revision %s rendered %s", revision, os)
		}
	}
	close(stop)
	wg.Wait()
}

func TestLongTemplateNamesFitIntoALabel(t *testing.T) {
	long := strings.Repeat("fedora.", 30) + "x"
	s := &fakeTemplates{}
	s.put(t, box, 1)
	found := s.templates["golden/box"]
	renamed := *found
	renamed.Name = long
	s.templates["golden/"+long] = &renamed
	h := render.New(render.Options{Templates: s, Approvals: governing(), Permissions: rights{granted: map[string]bool{"use " + long: true}}})
	request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/"+long+"}}")
	label, _ := lookup(apply(t, request, h.Handle(t.Context(), request)), "/metadata/labels/vm.kubevirt.io~1template").(string)
	if len(label) > 63 || !strings.HasPrefix(label, "fedora.fedora.") {
		t.Errorf("label %q", label)
	}
}

func BenchmarkCreate(b *testing.B) {
	h, _ := handler(b, everything)
	request := create(b, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}")
	b.ReportAllocs()
	for b.Loop() {
		if response := h.Handle(context.Background(), request); !response.Allowed {
			b.Fatal(response.Result.Message)
		}
	}
}
