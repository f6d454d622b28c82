package mover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

const templateJSON = `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"web","namespace":"golden","labels":{"team":"a"}},
"spec":{"parameters":[{"name":"NAME","required":true}],"virtualMachine":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"${NAME}"},"spec":{"runStrategy":"Always",
"dataVolumeTemplates":[{"metadata":{"name":"${NAME}-root"},"spec":{"source":{"pvc":{"name":"fedora.44","namespace":"golden"}},"storage":{}}},{"metadata":{"name":"${NAME}-tools"},"spec":{"source":{"pvc":{"name":"tools","namespace":"golden"}},"storage":{}}}],
"template":{"spec":{"domain":{"devices":{"disks":[{"disk":{"bus":"virtio"},"name":"root"},{"cdrom":{"bus":"sata"},"name":"tools"}]},"memory":{"guest":"1Gi"}},
"volumes":[{"dataVolume":{"name":"${NAME}-root"},"name":"root"},{"dataVolume":{"name":"${NAME}-tools"},"name":"tools"}]}}}}}}`

// vmJSON is what the template renders.
var vmJSON = func() string {
	var t v1beta1.VirtualMachineTemplate
	if err := json.Unmarshal([]byte(templateJSON), &t); err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(t.Spec.VirtualMachine.Raw), "${NAME}", "web")
}()

// rootDisk is a disk with holes, toolsDisk an ISO image.
func rootDisk() []byte {
	raw := make([]byte, 24<<20)
	_, _ = mathrand.NewChaCha8([32]byte{1}).Read(raw[1<<20 : 9<<20])
	copy(raw[len(raw)-12:], "last sector.")
	return raw
}

func toolsDisk() []byte {
	raw := make([]byte, 300<<10)
	_, _ = mathrand.NewChaCha8([32]byte{2}).Read(raw[100<<10 : 200<<10])
	return raw
}

var exportDisks = []transfer.Disk{{Name: "root", Volume: "root"}, {Name: "tools", Volume: "tools", CDROM: true, Block: true}}

// exportTask exports the template.
func exportTask(file string, format v1beta1.ExportFormat) *transfer.Task {
	return &transfer.Task{Stage: transfer.Export, Disks: exportDisks, Package: &transfer.Package{
		File: file, Format: format, Template: []byte(templateJSON), VM: []byte(vmJSON), DownloadToken: "download",
	}}
}

// mounts is a folder with the mounts of a mover.
func mounts(t testing.TB, files map[string][]byte) Folders {
	t.Helper()
	f := Folders{Root: t.TempDir()}
	for name, content := range files {
		write(t, f.path(name), content)
	}
	return f
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// noWait counts attempts, and does not wait.
func noWait(context.Context, int) error { return nil }

// work runs a mover until its end, and returns its state.
func work(t testing.TB, folders Folders, task *transfer.Task) transfer.State {
	t.Helper()
	m := New(folders, task)
	m.Wait = noWait
	m.Work(t.Context())
	return m.report.state
}

// succeed runs a mover that has to succeed.
func succeed(t testing.TB, folders Folders, task *transfer.Task) transfer.State {
	t.Helper()
	state := work(t, folders, task)
	if state.Phase != transfer.Succeeded {
		t.Fatalf("%s: %+v", task.Stage, state.Failure)
	}
	return state
}

// fails runs a mover that has to fail.
func fails(t testing.TB, folders Folders, task *transfer.Task, want transfer.Failure) {
	t.Helper()
	state := work(t, folders, task)
	if state.Failure == nil || *state.Failure != want {
		t.Errorf("got %s %+v\nwant %+v", state.Phase, state.Failure, want)
	}
}

// packageOf is the exported template.
func packageOf(t testing.TB, format v1beta1.ExportFormat) []byte {
	t.Helper()
	folders := mounts(t, map[string][]byte{filepath.Join(transfer.DisksFolder, "root", transfer.DiskFile): rootDisk(), transfer.DisksFolder + "/tools": toolsDisk(), transfer.ResultFolder + "/.keep": nil})
	task := exportTask("web.pkg", format)
	state := succeed(t, folders, task)
	content := read(t, folders.path(transfer.ResultFolder, "web.pkg"))
	if sum := sha256.Sum256(content); state.Digest != "sha256:"+hex.EncodeToString(sum[:]) || state.Size != int64(len(content)) {
		t.Errorf("the state has %s and %d bytes", state.Digest, state.Size)
	}
	return content
}

// site is an HTTP server with one file.
type site struct {
	*httptest.Server
	mutex   sync.Mutex
	content []byte
	etag    string
	// noRanges has the server ignore ranges; cut ends each answer after so many bytes, stall sends nothing after them.
	noRanges bool
	cut      int
	stall    bool
	// cuts bounds cuts.
	cuts     int
	user     string
	served   atomic.Int64
	requests int
	// instead answers a request if it returns true.
	instead func(w http.ResponseWriter, r *http.Request) bool
}

func newSite(t testing.TB, content []byte) *site {
	t.Helper()
	s := &site{content: content, etag: `"one"`, cuts: 1 << 30}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// counter counts what is written, and cuts.
type counter struct {
	http.ResponseWriter
	s    *site
	left int

	request *http.Request
}

func (c *counter) Write(p []byte) (int, error) {
	if c.left >= 0 && len(p) > c.left {
		p = p[:c.left]
	}
	// Before they are sent: the client may have all of them before Write returns.
	c.s.served.Add(int64(len(p)))
	n, err := c.ResponseWriter.Write(p)
	if c.left >= 0 {
		if c.left -= n; c.left == 0 {
			if c.s.stall {
				c.ResponseWriter.(http.Flusher).Flush()
				<-c.request.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}
	}
	return n, err
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests++
	content, etag := s.content, s.etag
	left := -1
	if s.cut > 0 && s.cuts > 0 && r.Header.Get("Range") != "bytes=0-0" {
		left = s.cut
		s.cuts--
	}
	s.mutex.Unlock()
	if s.instead != nil && s.instead(w, r) {
		return
	}
	if s.user != "" && r.Header.Get("Authorization") != s.user {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	out := &counter{w, s, left, r}
	if s.noRanges {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = out.Write(content)
		return
	}
	http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(content))
}

// loopback permits the servers of tests.
var loopback = []string{"127.0.0.0/8", "::1/128"}

// fromHTTP is a task for a file of a server.
func fromHTTP(stage transfer.Stage, url string) *transfer.Task {
	return &transfer.Task{Stage: stage, Source: &v1beta1.ImportSource{HTTP: &v1beta1.ImportSourceHTTP{URL: url}}, AllowedNetworks: loopback,
		Conversion: transfer.Conversion{Namespace: "imported", Name: "shop"}}
}

// toImport is the import of an inspected package; the second disk is a block device.
func toImport(inspected *transfer.Task, plan *transfer.Plan) *transfer.Task {
	task := *inspected
	task.Stage, task.Description, task.Revision = transfer.Import, plan.Description, plan.Revision
	for i, d := range plan.Disks {
		task.Disks = append(task.Disks, transfer.Disk{Name: d.Name, File: d.File, Size: d.Size, CDROM: d.CDROM, Block: i == 1})
	}
	return &task
}

// volumes of an import. The device has a content that is not zero.
func volumes(t testing.TB, task *transfer.Task) Folders {
	t.Helper()
	f := mounts(t, nil)
	for _, d := range task.Disks {
		if d.Block {
			write(t, f.path(transfer.DisksFolder, d.Name), bytes.Repeat([]byte{0xff}, int(d.Size)+(1<<20)))
		} else if err := os.MkdirAll(f.path(transfer.DisksFolder, d.Name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// isImported compares the disks.
func isImported(t testing.TB, f Folders, task *transfer.Task) {
	t.Helper()
	for i, want := range [][]byte{rootDisk(), toolsDisk()} {
		d := task.Disks[i]
		path := f.path(transfer.DisksFolder, d.Name)
		if !d.Block {
			path += "/" + transfer.DiskFile
		}
		got := read(t, path)
		if d.Block {
			got = got[:d.Size]
		}
		if !bytes.Equal(got[:len(want)], want) || len(bytes.Trim(got[len(want):], "\x00")) > 0 {
			t.Errorf("the disk %s has another content", d.Name)
		}
	}
}
