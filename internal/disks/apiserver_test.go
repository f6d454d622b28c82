package disks_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/disks"
)

func TestTheAPIServerIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/missing"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case strings.HasSuffix(r.URL.Path, "/broken"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`)
		case strings.Contains(r.URL.Path, "virtualmachines"):
			_, _ = fmt.Fprint(w, `{"kind":"VirtualMachine","apiVersion":"kubevirt.io/v1","metadata":{"name":"web","uid":"u"}}`)
		default:
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"labels":{"path":%q}}}`, "web", strings.ReplaceAll(r.URL.Path[1:], "/", "."))
		}
	}))
	defer server.Close()
	api, err := disks.NewAPIServer(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	volume, err := api.DataVolume(ctx, "team-a", "web")
	if err != nil || volume.Labels["path"] != "apis.cdi.kubevirt.io.v1beta1.namespaces.team-a.datavolumes.web" {
		t.Errorf("DataVolume: %v, %v", volume, err)
	}
	claim, err := api.Claim(ctx, "team-a", "web")
	if err != nil || claim.Labels["path"] != "api.v1.namespaces.team-a.persistentvolumeclaims.web" {
		t.Errorf("claim: %v, %v", claim, err)
	}
	vm, err := api.VirtualMachine(ctx, "team-a", "web")
	if err != nil || vm["metadata"].(map[string]any)["uid"] != "u" {
		t.Errorf("VirtualMachine: %v, %v", vm, err)
	}
	if volume, err := api.DataVolume(ctx, "team-a", "missing"); volume != nil || err != nil {
		t.Errorf("a DataVolume that is missing: %v, %v", volume, err)
	}
	if vm, err := api.VirtualMachine(ctx, "team-a", "missing"); vm != nil || err != nil {
		t.Errorf("a VirtualMachine that is missing: %v, %v", vm, err)
	}
	if _, err := api.Claim(ctx, "team-a", "broken"); err == nil || err.Error() != "looking for PersistentVolumeClaim team-a/broken: no" {
		t.Errorf("an error: %v", err)
	}
	if _, err := api.VirtualMachine(ctx, "team-a", "broken"); err == nil || err.Error() != "looking for VirtualMachine team-a/broken: no" {
		t.Errorf("an error: %v", err)
	}
}
