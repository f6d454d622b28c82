package transfers_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/packages"
)

// uploads creates an import with the source upload.
func (s *shop) uploads(t *testing.T, size int, more string) {
	t.Helper()
	s.imports(t, "web", fmt.Sprintf(`{"source": {"upload": {"size": %d}}%s}`, size, more))
}

// waits waits until the package of the import can be sent.
func (s *shop) waits(t *testing.T) (to *packages.Package) {
	t.Helper()
	harness.Within(t, "the import waits for its package", limit, func() (err error) {
		if to, err = packages.For(t.Context(), stencil.Plane, s.owner, s.namespace, "web"); err != nil {
			return err
		}
		response, err := to.Get(t.Context(), to.Authorized())
		if err == nil && response.Code != http.StatusOK {
			err = fmt.Errorf("status %d: %s", response.Code, response.Body)
		}
		return err
	})
	return to
}

// TestAnUploadSurvives sends a part of a package, disturbs the import, and has the command line send the rest.
func TestAnUploadSurvives(t *testing.T) {
	ova, disk := appliance(t)
	half := len(ova) / 2
	for name, disturb := range map[string]func(t *testing.T, s *shop, uid string){
		"a killed mover": func(t *testing.T, s *shop, uid string) {
			if err := stencil.Plane.Nodes().Kill(s.namespace, s.mover(t, uid+"-receive")); err != nil {
				t.Fatal(err)
			}
		},
		"a deleted Job": func(t *testing.T, s *shop, uid string) {
			pod := s.mover(t, uid+"-receive")
			s.does(t, "", "delete", "job", "transfer-"+uid+"-receive")
			s.gone(t, "pod", pod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.uploads(t, len(ova), "")
			to := s.waits(t)
			if response, err := to.Append(t.Context(), 0, ova[:half]); err != nil || response.Code != http.StatusNoContent {
				t.Fatalf("the first part: %+v, %v", response, err)
			}
			disturb(t, s, s.uid(t, "vmti", "web"))
			to = s.waits(t)
			if response, err := to.Get(t.Context(), to.Authorized()); err != nil || response.Header.Get("Upload-Offset") != fmt.Sprint(half) {
				t.Fatalf("afterwards: %+v, %v", response, err)
			}
			if err := packages.Offer(t.Context(), stencil.Plane, s.namespace, to); err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "app.ova"), ova, 0o600); err != nil {
				t.Fatal(err)
			}
			if ran := s.runs(t, s.owner.Kubeconfig, folder, "ova upload web app.ova --poll-interval 200ms --through-api-server"); ran.Code != 0 || ran.Output != "virtualmachinetemplate.template.kubevirt.io "+s.namespace+"/web ready\n" {
				t.Fatalf("%+v", ran)
			}
			if got := s.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
				t.Error("the disk of the VM has other bytes")
			}
			s.leaves(t, "web")
		})
	}
}

// TestUploadsThatEnd tests what ends an upload, after which nothing is left.
func TestUploadsThatEnd(t *testing.T) {
	ova, _ := appliance(t)
	for name, tc := range map[string]struct {
		size int
		more string
		// act does something when the import waits; nil if it never waits.
		act  func(t *testing.T, s *shop, to *packages.Package)
		want string
	}{
		"another digest": {len(ova), `, "checksum": "sha256:` + strings.Repeat("0", 64) + `"`, func(t *testing.T, _ *shop, to *packages.Package) {
			if response, err := to.Append(t.Context(), 0, ova); err != nil || response.Code != http.StatusNoContent {
				t.Errorf("%+v, %v", response, err)
			}
		}, "ChecksumMismatch: the package has the digest "},
		"no package": {20, "", func(t *testing.T, _ *shop, to *packages.Package) {
			if response, err := to.Append(t.Context(), 0, []byte("this is no package..")); err != nil || response.Code != http.StatusNoContent {
				t.Errorf("%+v, %v", response, err)
			}
		}, "NotAPackage: "},
		"too large":       {1 << 60, "", nil, "LimitExceeded: the package has 1152921504606846976 bytes, and at most "},
		"nothing arrives": {len(ova), `, "timeout": "10s"`, nil, "TimedOut: "},
		"its deletion": {len(ova), "", func(t *testing.T, s *shop, to *packages.Package) {
			if response, err := to.Append(t.Context(), 0, ova[:1000]); err != nil || response.Code != http.StatusNoContent {
				t.Errorf("%+v, %v", response, err)
			}
			uid := s.uid(t, "vmti", "web")
			s.does(t, "", "delete", "vmti", "web")
			s.nothing(t, uid)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.uploads(t, tc.size, tc.more)
			uid := s.uid(t, "vmti", "web")
			if tc.act != nil {
				tc.act(t, s, s.waits(t))
			}
			if tc.want == "" {
				return
			}
			s.reaches(t, "vmti", "web", "{.status.phase}", "Failed")
			if got := s.condition(t, "vmti", "web"); !strings.HasPrefix(got, tc.want) {
				t.Errorf("the condition is %s", got)
			}
			s.nothing(t, uid)
		})
	}
}

// TestWhoUploads tests users with less than the role edit, and what the owner of the namespace may do around an upload.
func TestWhoUploads(t *testing.T) {
	t.Parallel()
	s := open(t)
	ova, _ := appliance(t)
	s.uploads(t, len(ova), "")
	to := s.waits(t)
	for header, want := range map[string]int{"": http.StatusUnauthorized, "Bearer wrong": http.StatusUnauthorized} {
		if response, err := to.Get(t.Context(), http.Header{"Authorization": {header}}); err != nil || response.Code != want {
			t.Errorf("with %q: %+v, %v", header, response, err)
		}
	}
	viewer := harness.User(t, stencil.Plane, s.namespace+"-viewer", gen.Role(s.namespace, "view"))
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "app.ova"), ova, 0o600); err != nil {
		t.Fatal(err)
	}
	if ran := s.runs(t, viewer.Kubeconfig, folder, "ova upload web app.ova"); ran.Code != 3 || !strings.Contains(ran.Problems, `cannot get resource "secrets"`) {
		t.Errorf("a viewer: %+v", ran)
	}
	// The import is about the package that it names.
	if ran := harness.Kubectl(t, stencil.Plane, s.owner, "", "patch", "vmti", "web", "-n", s.namespace, "--type=merge", "-p", `{"spec": {"source": {"upload": {"size": 1}}}}`); ran.Code == 0 || !strings.Contains(ran.Stderr, "spec.source cannot be changed") {
		t.Errorf("another size: %s%s", ran.Stdout, ran.Stderr)
	}
}
