package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/webhooks/render"
)

// shop is a template of which every place but the size depends on the name of the VM.
const shop = `
spec:
  objectLabels: {owner: "${NAME}"}
  parameters:
  - {name: NAME, required: true}
  - {name: TOKEN, sensitive: true, generate: expression, from: "[a-z]{8}"}
  - {name: SHOWN, generate: expression, from: "[a-z]{8}"}
  virtualMachine:
    metadata:
      name: ${NAME}
      annotations: {note: "of ${NAME}"}
    spec:
      runStrategy: Halted
      dataVolumeTemplates: [{metadata: {name: "${NAME}-root"}, spec: {source: {blank: {}}}}]
      template:
        metadata: {annotations: {seen: "${SHOWN}"}}
        spec:
          hostname: ${NAME}
          domain: {cpu: {cores: 2}, devices: {disks: [{name: root}, {name: init, serial: "${NAME}"}]}}
          volumes:
          - {name: root, dataVolume: {name: "${NAME}-root"}}
          - {name: init, cloudInitNoCloud: {secretRef: {name: "${NAME}-access"}}}
  objects:
  - {apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-access"}, stringData: {token: "${TOKEN}"}}
  - {apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {selector: {owner: "${NAME}"}, ports: [{port: 80}]}}
`

// copyOf returns the manifest of the VM that KubeVirt's controller creates as a copy of web-1: its disk has another name, and a user has changed the
// number of its cores.
func copyOf(t *testing.T, template, parameters string) map[string]any {
	t.Helper()
	o, _ := objectsOf()
	h := objectsHandler(t, template, render.Options{Permissions: mayCreate("ada", allObjects...), Objects: o})
	request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box"+parameters+"}}")
	vm := apply(t, request, h.Handle(t.Context(), request))
	metadata := vm["metadata"].(map[string]any)
	metadata["name"] = "web-2"
	delete(metadata["annotations"].(map[string]any), "objects.template.kubevirt.io/pending")
	inner := lookup(vm, "/spec/template").(map[string]any)
	if annotations := lookup(inner, "/metadata/annotations").(map[string]any); annotations != nil {
		delete(annotations, "objects.template.kubevirt.io/hold")
	}
	lookup(vm, "/spec/dataVolumeTemplates/0/metadata").(map[string]any)["name"] = "restore-1-root"
	if volume, is := lookup(inner, "/spec/volumes/0/dataVolume").(map[string]any); is {
		volume["name"] = "restore-1-root"
	}
	if cpu, is := lookup(inner, "/spec/domain/cpu").(map[string]any); is {
		cpu["cores"] = 4
	}
	return vm
}

func TestACopyHasObjectsOfItsOwn(t *testing.T) {
	source := copyOf(t, shop, "")
	o, keys := objectsOf()
	h := objectsHandler(t, shop, render.Options{Permissions: mayCreate(copier, allObjects...), Exempt: exemption.Users{copier}, Objects: o})
	raw, err := json.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	request := create(t, string(raw))
	request.UserInfo.Username = copier
	got := apply(t, request, h.Handle(t.Context(), request))

	pending := opened(t, keys, got)
	if len(pending.Sensitive) != 1 || len(pending.Sensitive[0]) != len("abcdefgh") {
		t.Errorf("the sensitive values are %q", pending.Sensitive)
	}
	var names []string
	for _, each := range pending.Objects {
		var object struct {
			Metadata   struct{ Name string }
			StringData map[string]string
			Spec       struct{ Selector map[string]string }
		}
		if err := json.Unmarshal(each.Manifest, &object); err != nil {
			t.Fatal(err)
		}
		names = append(names, each.Resource+"/"+object.Metadata.Name+" "+object.Spec.Selector["owner"])
	}
	if diff := cmp.Diff([]string{"secrets/web-2-access ", "services/web-2 web-2"}, names); diff != "" {
		t.Errorf("the objects (-want +got):\n%s", diff)
	}

	// Where the template inserts the name is the new one. All else is that of the copy.
	text := strings.NewReplacer(`"web-1"`, `"web-2"`, `"of web-1"`, `"of web-2"`, `web-1-access`, `web-2-access`).Replace(string(raw))
	var want map[string]any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	lookup(want, "/metadata/annotations").(map[string]any)["objects.template.kubevirt.io/pending"] = lookup(got, pendingAt)
	lookup(want, annotationsAt).(map[string]any)["objects.template.kubevirt.io/hold"] = "objects"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	for _, place := range []string{"/spec/template/spec/hostname", "/spec/template/spec/volumes/1/cloudInitNoCloud/secretRef/name", "/metadata/labels/owner"} {
		if value, _ := lookup(got, place).(string); !strings.HasPrefix(value, "web-2") {
			t.Errorf("%s is %q", place, value)
		}
	}
}

func TestACopySharesTheObjectsThatItCannotHave(t *testing.T) {
	for name, tc := range map[string]struct {
		changed    string // a change of shop after the original VM was created
		parameters string
		rights     []string
		unused     bool // KubeVirt's controller may not use the template
		prepare    func(*render.Objects)
	}{
		"KubeVirt's controller may not use the template":        {unused: true, rights: allObjects},
		"KubeVirt's controller may not create one of the kinds": {rights: []string{"secrets"}},
		"the template has changed":                              {changed: "port: 81", rights: allObjects},
		"a sensitive value was given":                           {parameters: ", parameter.template.kubevirt.io/TOKEN: mysecret", rights: allObjects},
		"one of the objects exists": {rights: allObjects, prepare: func(o *render.Objects) {
			o.Try = func(context.Context, schema.GroupVersionResource, string, []byte) error {
				return objects.Denied("it exists")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(copyOf(t, shop, tc.parameters))
			if err != nil {
				t.Fatal(err)
			}
			o, _ := objectsOf()
			if tc.prepare != nil {
				tc.prepare(o)
			}
			now := shop
			if tc.changed != "" {
				now = strings.Replace(shop, "port: 80", tc.changed, 1)
			}
			may := mayCreate(copier, tc.rights...)
			may.granted["use box"] = !tc.unused
			h := objectsHandler(t, now, render.Options{Permissions: may, Exempt: exemption.Users{copier}, Objects: o})
			request := create(t, string(raw))
			request.UserInfo.Username = copier
			var want map[string]any
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, apply(t, request, h.Handle(t.Context(), request))); diff != "" {
				t.Errorf("the copy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACopyIsTriedAgainWhileItsObjectsCannotBeChecked(t *testing.T) {
	raw, err := json.Marshal(copyOf(t, shop, ""))
	if err != nil {
		t.Fatal(err)
	}
	o, _ := objectsOf()
	o.Try = func(context.Context, schema.GroupVersionResource, string, []byte) error {
		return errors.New("connection refused")
	}
	h := objectsHandler(t, shop, render.Options{Permissions: mayCreate(copier, allObjects...), Exempt: exemption.Users{copier}, Objects: o})
	request := create(t, string(raw))
	request.UserInfo.Username = copier
	response := h.Handle(t.Context(), request)
	if response.Allowed || response.Result.Code != 503 {
		t.Errorf("it is admitted without objects: %v", response)
	}
}

func TestACopyHasItsOwnSecretOfSecretize(t *testing.T) {
	secretized := strings.Replace(strings.Replace(shop, "spec:\n", "spec:\n  secretize: true\n", 1), `{secretRef: {name: "${NAME}-access"}}`, `{userData: "token: ${TOKEN}"}`, 1)
	raw, err := json.Marshal(copyOf(t, secretized, ""))
	if err != nil {
		t.Fatal(err)
	}
	o, keys := objectsOf()
	h := objectsHandler(t, secretized, render.Options{Permissions: mayCreate(copier, allObjects...), Exempt: exemption.Users{copier}, Objects: o})
	request := create(t, string(raw))
	request.UserInfo.Username = copier
	got := apply(t, request, h.Handle(t.Context(), request))
	if name := lookup(got, "/spec/template/spec/volumes/1/cloudInitNoCloud/secretRef/name"); name != "web-2-init" {
		t.Errorf("the copy refers to Secret %v", name)
	}
	pending := opened(t, keys, got)
	if last := string(pending.Objects[len(pending.Objects)-1].Manifest); !strings.Contains(last, `"web-2-init"`) || !strings.Contains(last, `"userdata":"token: `) {
		t.Errorf("the Secret is %s", last)
	}
}
