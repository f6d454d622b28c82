package mover

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// store is a registry on loopback that needs a password, and answers some requests otherwise.
type store struct {
	*httptest.Server
	password string
	// answer is the status of uploads, if it is not 0; fails counts those that are answered with it.
	answer, fails atomic.Int64
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{password: "hidden"}
	stored := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != s.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="store"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if code := s.answer.Load(); code != 0 && r.Method == http.MethodPost && s.fails.Add(-1) >= 0 {
			w.WriteHeader(int(code))
			return
		}
		stored.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *store) image() string { return strings.TrimPrefix(s.URL, "http://") + "/templates/web:v1" }

// pushTask returns a task that exports to the store, and what is mounted for it.
func pushTask(t *testing.T, s *store, password string) (Folders, *transfer.Task) {
	t.Helper()
	task := exportTask("web.oci.tar", v1beta1.ExportOCI)
	task.Package.Target = &v1beta1.ExportTargetRegistry{Image: s.image(), Insecure: true}
	task.AllowedNetworks = []string{"127.0.0.0/8"}
	return mounts(t, map[string][]byte{
		filepath.Join(transfer.DisksFolder, "root", transfer.DiskFile): rootDisk(), transfer.DisksFolder + "/tools": toolsDisk(), transfer.ResultFolder + "/.keep": nil,
		transfer.CredentialsFolder + "/username": []byte("ada"), transfer.CredentialsFolder + "/password": []byte(password),
	}), task
}

func TestAPackageIsWrittenToARegistry(t *testing.T) {
	s := newStore(t)
	f, task := pushTask(t, s, s.password)
	state := succeed(t, f, task)
	if want := regexp.MustCompile(`^` + regexp.QuoteMeta(strings.TrimSuffix(s.image(), ":v1")) + `@sha256:[0-9a-f]{64}$`); !want.MatchString(state.Image) {
		t.Errorf("image %q, want %s", state.Image, want)
	}
	// It is imported from there, by its digest.
	inspect := fromHTTP(transfer.Inspect, "")
	inspect.Source, inspect.AllowedNetworks = &v1beta1.ImportSource{Registry: &v1beta1.ImportSourceRegistry{Image: state.Image, Insecure: true}}, task.AllowedNetworks
	credentials := map[string][]byte{transfer.CredentialsFolder + "/username": []byte("ada"), transfer.CredentialsFolder + "/password": []byte(s.password)}
	plan := succeed(t, mounts(t, credentials), inspect).Plan
	imported := toImport(inspect, plan)
	to := volumes(t, imported)
	for name, content := range credentials {
		write(t, to.path(name), content)
	}
	succeed(t, to, imported)
	isImported(t, to, imported)
}

// A mover that has written the package, and not sent it, sends it when it starts again.
func TestAPackageIsSentByTheNextMover(t *testing.T) {
	s := newStore(t)
	s.answer.Store(http.StatusServiceUnavailable)
	s.fails.Store(1 << 30)
	f, task := pushTask(t, s, s.password)
	state := work(t, f, task)
	if state.Failure == nil || !state.Failure.Retry || state.Failure.Reason != transfer.ReasonUnreachableTarget || !strings.HasPrefix(state.Failure.Message, s.image()+": ") {
		t.Fatalf("%s %+v", state.Phase, state.Failure)
	}
	digest := state.Digest
	s.answer.Store(0)
	// The disks are not read again.
	write(t, f.path(transfer.DisksFolder, "root", transfer.DiskFile), []byte("other"))
	if state = succeed(t, f, task); state.Digest != digest || digest == "" || state.Image == "" {
		t.Errorf("digest %q, before %q; image %q", state.Digest, digest, state.Image)
	}
}

// Answers that are errors for a moment are no failures.
func TestAnUploadIsTriedAgain(t *testing.T) {
	s := newStore(t)
	s.answer.Store(http.StatusBadGateway)
	s.fails.Store(2)
	f, task := pushTask(t, s, s.password)
	succeed(t, f, task)
}

func TestAPackageIsNotWrittenToARegistry(t *testing.T) {
	s := newStore(t)
	wrong, task := pushTask(t, s, "wrong")
	fails(t, wrong, task, transfer.Failure{Reason: transfer.ReasonTargetDenied, Message: "the registry answers 401: check the image and the credentials of the target"})

	private, task := pushTask(t, s, s.password)
	task.AllowedNetworks = nil
	state := work(t, private, task)
	if state.Failure == nil || state.Failure.Reason != transfer.ReasonTargetDenied || state.Failure.Retry || !strings.Contains(state.Failure.Message, "127.0.0.1") {
		t.Errorf("a private address: %s %+v", state.Phase, state.Failure)
	}

	s.answer.Store(http.StatusForbidden)
	s.fails.Store(1 << 30)
	denied, task := pushTask(t, s, s.password)
	fails(t, denied, task, transfer.Failure{Reason: transfer.ReasonTargetDenied, Message: "the registry answers 403: check the image and the credentials of the target"})

	f, task := pushTask(t, s, s.password)
	task.Package.Target.Image = "no image"
	state = work(t, f, task)
	if state.Failure == nil || state.Failure.Reason != transfer.ReasonInvalidTask || !strings.HasPrefix(state.Failure.Message, "the image of the target: ") {
		t.Errorf("no image: %s %+v", state.Phase, state.Failure)
	}
	for _, each := range []*transfer.Failure{state.Failure} {
		if strings.Contains(each.Message, s.password) {
			t.Errorf("the message has the password: %s", each.Message)
		}
	}
}
