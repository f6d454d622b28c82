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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

const (
	token       = "hidden"
	exportsPath = "/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplateexports"
	proxied     = "/api/v1/namespaces/shop/services/https:export-1:https/proxy/package/web.ova"
)

// exporter is an API server with one export, whose package the Service behind it offers.
type exporter struct {
	content []byte
	// digest of the status, outside the URL from outside of the cluster, and authorities the certificate of its server.
	digest, outside string
	authorities     []byte
	// respond answers a request for the package instead, and returns false to let it be served; nth counts from 1.
	respond func(w http.ResponseWriter, r *http.Request, nth int) bool

	mutex   sync.Mutex
	ranges  []string
	deleted bool
}

func newExporter() *exporter {
	content := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	sum := sha256.Sum256(content)
	return &exporter{content: content, digest: "sha256:" + hex.EncodeToString(sum[:])}
}

func (e *exporter) object(phase v1beta1.TransferPhase) *v1beta1.VirtualMachineTemplateExport {
	object := &v1beta1.VirtualMachineTemplateExport{}
	object.Namespace, object.Name, object.Status.Phase = "shop", "web-abcde", phase
	object.Status.URL, object.Status.Digest, object.Status.Size = "https://export-1.shop.svc/package/web.ova", e.digest, int64(len(e.content))
	object.Status.ExternalURL, object.Status.TokenSecretRef = e.outside, reference("access")
	return object
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == exportsPath:
		_ = json.NewEncoder(w).Encode(e.object(""))
	case r.Method == http.MethodGet && r.URL.Path == exportsPath+"/web-abcde":
		_ = json.NewEncoder(w).Encode(e.object(v1beta1.TransferReady))
	case r.Method == http.MethodDelete && r.URL.Path == exportsPath+"/web-abcde":
		e.mutex.Lock()
		defer e.mutex.Unlock()
		e.deleted = true
		_, _ = io.WriteString(w, `{"kind": "Status", "status": "Success"}`)
	case r.URL.Path == "/api/v1/namespaces/shop/secrets/access":
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token)), "ca.crt": base64.StdEncoding.EncodeToString(e.authorities)}})
	case r.URL.Path == proxied, r.TLS != nil && r.URL.Path == "/package/web.ova":
		e.mutex.Lock()
		e.ranges = append(e.ranges, r.Header.Get("Range"))
		nth := len(e.ranges)
		e.mutex.Unlock()
		if got := r.Header.Get("X-Stencil-Token"); got != token {
			http.Error(w, got, http.StatusUnauthorized)
			return
		}
		if e.respond != nil && e.respond(w, r, nth) {
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(e.content))
	default:
		http.NotFound(w, r)
	}
}

// cut sends part of what is requested, and ends the connection.
func (e *exporter) cut(w http.ResponseWriter, from, to int) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", fmt.Sprint(len(e.content)-from))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(e.content[from:to])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// run runs the command in a folder, with the target web.ova.
func (e *exporter) run(ctx context.Context, t *testing.T, folder string, arguments ...string) (code int, out string, err error) {
	t.Helper()
	server := httptest.NewServer(e)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(folder, "none"))
	var output bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &output, Err: &output}
	command := NewExport(streams, v1beta1.ExportOVA)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append(arguments, filepath.Join(folder, "web.ova"), "-n", "shop", "--server", server.URL, "--poll-interval", "1ms"))
	err = command.ExecuteContext(ctx)
	return cli.ExitCode(err), strings.ReplaceAll(output.String(), folder+string(filepath.Separator), ""), err
}

// holds requires exactly these files of a folder.
func holds(t *testing.T, folder string, want map[string][]byte) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if expected, is := want[entry.Name()]; !is || !bytes.Equal(content, expected) {
			t.Errorf("the file %s has %d bytes, which are not expected", entry.Name(), len(content))
		}
		delete(want, entry.Name())
	}
	for name := range want {
		t.Errorf("there is no file %s", name)
	}
}

func TestADownloadIsContinuedAfterLostConnections(t *testing.T) {
	e, folder := newExporter(), t.TempDir()
	e.respond = func(w http.ResponseWriter, _ *http.Request, nth int) bool {
		switch nth {
		case 1:
			e.cut(w, 0, 1000)
		case 2:
			http.Error(w, "no endpoints available", http.StatusServiceUnavailable)
		case 3:
			e.cut(w, 1000, 5000)
		default:
			return false
		}
		return true
	}
	pauses(t)
	code, out, err := e.run(t.Context(), t, folder, "web")
	want := "virtualmachinetemplateexport.template.kubevirt.io shop/web-abcde created\nweb.ova written: 1048576 bytes, " + e.digest + "\n"
	if code != 0 || out != want {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
	holds(t, folder, map[string][]byte{"web.ova": e.content})
	if got := strings.Join(e.ranges, " "); got != "bytes=0- bytes=1000- bytes=1000- bytes=5000-" {
		t.Errorf("requests: %s", got)
	}
	if !e.deleted {
		t.Error("the export is left")
	}
}

func TestAnotherCommandContinuesADownload(t *testing.T) {
	e, folder := newExporter(), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	e.respond = func(w http.ResponseWriter, r *http.Request, nth int) bool {
		if nth > 1 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(e.content)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(e.content[:70000])
		w.(http.Flusher).Flush()
		for { // until the client has it
			if info, err := os.Stat(filepath.Join(folder, e.part())); err == nil && info.Size() == 70000 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel()
		<-r.Context().Done()
		return true
	}
	code, out, err := e.run(ctx, t, folder, "web")
	if code != cli.ExitInternal || !strings.Contains(out, "web-abcde is kept: continue with --export web-abcde\n") || err.Error() != "downloading the package: context canceled" {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
	holds(t, folder, map[string][]byte{e.part(): e.content[:70000]})
	code, out, err = e.run(t.Context(), t, folder, "--export", "web-abcde", "--keep")
	if code != 0 || e.deleted {
		t.Errorf("exit code %d, %v, %s, deleted %t", code, err, out, e.deleted)
	}
	holds(t, folder, map[string][]byte{"web.ova": e.content})
	if got := strings.Join(e.ranges, " "); got != "bytes=0- bytes=70000-" {
		t.Errorf("requests: %s", got)
	}
}

func TestADownloadThatFails(t *testing.T) {
	pauses(t)
	for name, tc := range map[string]struct {
		change func(*exporter)
		code   int
		want   string
		kept   bool
	}{
		"another digest": {
			func(e *exporter) { e.digest = "sha256:" + strings.Repeat("0", 64) },
			cli.ExitCluster, "in the status of the export: it is not kept", false,
		},
		"no digest": {
			func(e *exporter) { e.digest = "../../etc/passwd" },
			cli.ExitCluster, "the export web-abcde has no package", false,
		},
		"no permission": {
			func(e *exporter) {
				e.respond = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "you may not get services/proxy"}`)
					return true
				}
			},
			cli.ExitCluster, "downloading the package: you may not get services/proxy", true,
		},
		"no answer": {
			func(e *exporter) {
				e.respond = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
					http.Error(w, "no endpoints available", http.StatusServiceUnavailable)
					return true
				}
			},
			cli.ExitCluster, "downloading the package: ", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, folder := newExporter(), t.TempDir()
			tc.change(e)
			code, out, err := e.run(t.Context(), t, folder, "web")
			if code != tc.code || err == nil || !strings.Contains(err.Error(), tc.want) || e.deleted || strings.Contains(out+err.Error(), token) {
				t.Errorf("exit code %d, %v, %s, deleted %t", code, err, out, e.deleted)
			}
			want := map[string][]byte{}
			if tc.kept {
				want[e.part()] = nil
			}
			holds(t, folder, want)
		})
	}
}

// part is the name of the file of a download that has not ended.
func (e *exporter) part() string { return "web.ova." + e.digest[7:19] + ".part" }

// pauses shortens what the command waits for.
func pauses(t *testing.T) {
	t.Helper()
	before := defaults
	defaults = retrying{pause: time.Millisecond, tolerate: 50 * time.Millisecond}
	t.Cleanup(func() { defaults = before })
}
