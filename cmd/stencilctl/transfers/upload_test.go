package transfers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

const (
	importsPath = "/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplateimports"
	uploadPath  = "/api/v1/namespaces/shop/services/https:import-1:https/proxy/upload"
)

// importer is an API server with one import, whose package the Service behind it receives.
type importer struct {
	content []byte
	// respond answers a request with a part instead, and returns false to let it be received; nth counts from 1.
	respond func(w http.ResponseWriter, r *http.Request, nth int) bool
	// lost is set if the Service is gone when the last part has arrived.
	lost bool
	// final is the phase after the upload.
	final v1beta1.TransferPhase

	mutex    sync.Mutex
	spec     v1beta1.VirtualMachineTemplateImportSpec
	received []byte
	offsets  []string
}

func newImporter() *importer {
	content := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	return &importer{content: content, final: v1beta1.TransferSucceeded}
}

func (i *importer) digest() string {
	sum := sha256.Sum256(i.content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// object returns the import. The mutex is held.
func (i *importer) object() *v1beta1.VirtualMachineTemplateImport {
	object := &v1beta1.VirtualMachineTemplateImport{Spec: i.spec}
	object.Namespace, object.Name = "shop", "web-abcde"
	status := &object.Status
	status.Phase = v1beta1.TransferUploading
	status.Upload = &v1beta1.ImportUpload{URL: "https://import-1.shop.svc/upload", TokenSecretRef: reference("access"), Received: int64(len(i.received))}
	if len(i.received) == len(i.content) {
		now := metav1.Now()
		status.Phase, status.Upload, status.TemplateRef = i.final, &v1beta1.ImportUpload{Received: int64(len(i.content)), CompletionTime: &now}, reference("web")
	}
	return object
}

func (i *importer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == importsPath:
		var created v1beta1.VirtualMachineTemplateImport
		if err := json.NewDecoder(r.Body).Decode(&created); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		i.spec = created.Spec
		_ = json.NewEncoder(w).Encode(i.object())
	case r.Method == http.MethodGet && r.URL.Path == importsPath+"/web-abcde":
		_ = json.NewEncoder(w).Encode(i.object())
	case r.URL.Path == "/api/v1/namespaces/shop/secrets/access":
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))}})
	case r.URL.Path == uploadPath && r.Header.Get("X-Stencil-Token") != token:
		http.Error(w, "another token", http.StatusUnauthorized)
	case r.URL.Path == uploadPath && i.lost && len(i.received) == len(i.content):
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "there is no such Service"}`)
	case r.URL.Path == uploadPath && r.Method == http.MethodGet:
		_, _ = fmt.Fprintf(w, `{"received": %d}`, len(i.received))
	case r.URL.Path == uploadPath && r.Method == http.MethodPatch:
		i.offsets = append(i.offsets, r.Header.Get("Upload-Offset"))
		if r.Header.Get("Upload-Offset") != strconv.Itoa(len(i.received)) || r.Header.Get("Content-Type") != "application/offset+octet-stream" || r.Header.Get("Tus-Resumable") != "1.0.0" {
			http.Error(w, fmt.Sprint(r.Header), http.StatusConflict)
			return
		}
		if i.respond != nil && i.respond(w, r, len(i.offsets)) {
			return
		}
		content, _ := io.ReadAll(r.Body)
		i.received = append(i.received, content...)
		if i.lost {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

// cut receives a part of what is sent, and ends the connection.
func (i *importer) cut(r *http.Request, size int) {
	content, _ := io.ReadAll(io.LimitReader(r.Body, int64(size)))
	i.received = append(i.received, content...)
	panic(http.ErrAbortHandler)
}

// runs runs a command in a folder with the package web.ova, and returns its output and its error.
func (i *importer) runs(ctx context.Context, t *testing.T, folder string, arguments ...string) (code int, out string) {
	t.Helper()
	server := httptest.NewServer(i)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(folder, "none"))
	path := filepath.Join(folder, "web.ova")
	if err := os.WriteFile(path, i.content, 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &output, Err: &output}
	command := NewImport(streams, v1beta1.ExportOVA)
	if arguments[0] == "upload" {
		command = NewUpload(streams, v1beta1.ExportOVA)
	}
	command.SilenceErrors, command.SilenceUsage = true, true
	line := slices.Concat(arguments[1:], []string{"-n", "shop", "--server", server.URL, "--poll-interval", "1ms"})
	for at := range line {
		line[at] = strings.ReplaceAll(line[at], "web.ova", path)
	}
	command.SetArgs(line)
	err := command.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(&output, err)
	}
	return cli.ExitCode(err), strings.ReplaceAll(output.String(), folder+string(filepath.Separator), "")
}

func TestAnUploadIsContinuedAfterLostConnections(t *testing.T) {
	pauses(t)
	i := newImporter()
	i.respond = func(w http.ResponseWriter, r *http.Request, nth int) bool {
		switch nth {
		case 1:
			i.cut(r, 1000)
		case 2:
			http.Error(w, "no endpoints available", http.StatusServiceUnavailable)
		case 3:
			i.cut(r, 4000)
		default:
			return false
		}
		return true
	}
	code, out := i.runs(t.Context(), t, t.TempDir(), "import", "web.ova")
	if want := "virtualmachinetemplateimport.template.kubevirt.io shop/web-abcde created\nvirtualmachinetemplate.template.kubevirt.io shop/web ready\n"; code != 0 || out != want {
		t.Errorf("exit code %d, %s", code, out)
	}
	if !bytes.Equal(i.received, i.content) {
		t.Errorf("%d bytes arrived, or others", len(i.received))
	}
	if got := strings.Join(i.offsets, " "); got != "0 1000 1000 5000" {
		t.Errorf("parts at %s", got)
	}
	if i.spec.Checksum != i.digest() || i.spec.Source.Upload == nil || i.spec.Source.Upload.Size != int64(len(i.content)) || i.spec.TemplateName != "web" {
		t.Errorf("the import has the spec %+v", i.spec)
	}
}

func TestTheLastResponseOfAnUploadIsLost(t *testing.T) {
	pauses(t)
	i := newImporter()
	i.lost = true
	if code, out := i.runs(t.Context(), t, t.TempDir(), "import", "web.ova"); code != 0 || !strings.HasSuffix(out, "/web ready\n") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

func TestAnotherCommandContinuesAnUpload(t *testing.T) {
	pauses(t)
	i, folder := newImporter(), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	i.respond = func(_ http.ResponseWriter, r *http.Request, nth int) bool {
		if nth == 1 {
			cancel()
			i.cut(r, 70000)
		}
		return false
	}
	code, out := i.runs(ctx, t, folder, "import", "web.ova")
	if code != cli.ExitInternal || !strings.HasSuffix(out, "web-abcde waits: continue with upload web-abcde web.ova\nuploading the package: context canceled\n") {
		t.Errorf("exit code %d, %s", code, out)
	}
	code, out = i.runs(t.Context(), t, folder, "upload", "web-abcde", "web.ova")
	if code != 0 || out != "virtualmachinetemplate.template.kubevirt.io shop/web ready\n" || !bytes.Equal(i.received, i.content) {
		t.Errorf("exit code %d, %d bytes, %s", code, len(i.received), out)
	}
	// Once more, when nothing is missing.
	if code, out = i.runs(t.Context(), t, folder, "upload", "web-abcde", "web.ova"); code != 0 || len(i.offsets) != 2 {
		t.Errorf("exit code %d, parts at %s, %s", code, i.offsets, out)
	}
}

func TestAnUploadThatFails(t *testing.T) {
	pauses(t)
	wants := func(size int64, checksum string) func(*importer) {
		return func(i *importer) {
			i.spec.Source.Upload, i.spec.Checksum = &v1beta1.ImportSourceUpload{Size: size}, checksum
		}
	}
	zero := "sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		change  func(*importer)
		command []string
		code    int
		want    string
	}{
		"another source":   {func(*importer) {}, []string{"upload", "web-abcde", "web.ova"}, cli.ExitUsage, "web-abcde has another source than an upload"},
		"another size":     {wants(7, ""), []string{"upload", "web-abcde", "web.ova"}, cli.ExitUsage, "web-abcde is about a package of 7 bytes, and web.ova has 1048576"},
		"another digest":   {wants(1<<20, zero), []string{"upload", "web-abcde", "web.ova"}, cli.ExitUsage, "web-abcde is about a package with the digest " + zero + ", and web.ova has sha256:"},
		"no import":        {func(*importer) {}, []string{"upload", "other", "web.ova"}, cli.ExitCluster, "virtualmachinetemplateimport.template.kubevirt.io/other does not exist"},
		"no file":          {func(*importer) {}, []string{"upload", "web-abcde", "none.ova"}, cli.ExitUsage, "none.ova: no such file or directory"},
		"an empty file":    {func(i *importer) { i.content = nil }, []string{"import", "web.ova"}, cli.ExitUsage, "web.ova is empty"},
		"another checksum": {func(*importer) {}, []string{"import", "web.ova", "--checksum", zero}, cli.ExitUsage, ", and " + zero + " is requested"},
		"the import fails": {func(i *importer) { i.final = v1beta1.TransferFailed }, []string{"import", "web.ova"}, 1, "web-abcde has failed"},
		"no permission": {func(i *importer) {
			i.respond = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "you may not patch services/proxy"}`)
				return true
			}
		}, []string{"import", "web.ova"}, cli.ExitCluster, "uploading the package: you may not patch services/proxy"},
		"no answer": {func(i *importer) {
			i.respond = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				http.Error(w, "no endpoints available", http.StatusServiceUnavailable)
				return true
			}
		}, []string{"import", "web.ova"}, cli.ExitCluster, "uploading the package: "},
	} {
		t.Run(name, func(t *testing.T) {
			i := newImporter()
			tc.change(i)
			code, out := i.runs(t.Context(), t, t.TempDir(), tc.command...)
			if code != tc.code || !strings.Contains(out, tc.want) || strings.Contains(out, token) {
				t.Errorf("exit code %d, %s, want %d, %s", code, out, tc.code, tc.want)
			}
		})
	}
}
