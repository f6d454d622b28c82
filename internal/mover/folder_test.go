package mover

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// folderSite serves the files of a package below /golden/, with ETags.
type folderSite struct {
	*httptest.Server
	mutex    sync.Mutex
	files    map[string][]byte
	noRanges bool
	queries  map[string]bool
	// etag is added to the ETag of a file.
	etag map[string]string
}

func newFolderSite(t *testing.T, files map[string][]byte) *folderSite {
	t.Helper()
	s := &folderSite{files: files, queries: map[string]bool{}, etag: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *folderSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/golden/")
	content, found := s.files[name]
	if !found {
		http.NotFound(w, r)
		return
	}
	s.queries[r.URL.RawQuery] = true
	w.Header().Set("ETag", fmt.Sprintf("%q", digestOf(content)+s.etag[name]))
	if s.noRanges {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// unpacked are the files of an archive.
func unpacked(t *testing.T, pkg []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, each := range members(t, pkg) {
		files[each.Name] = each.content
	}
	return files
}

func TestAPackageInAFolderIsImported(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	for name, change := range map[string]func(*folderSite, *transfer.Task){
		"with ranges":          func(*folderSite, *transfer.Task) {},
		"without ranges":       func(s *folderSite, _ *transfer.Task) { s.noRanges = true },
		"without manifest":     func(s *folderSite, _ *transfer.Task) { delete(s.files, "web.mf") },
		"without verification": func(_ *folderSite, task *transfer.Task) { task.Verification = v1beta1.ImportVerificationSkip },
		"manifest required":    func(_ *folderSite, task *transfer.Task) { task.Verification = v1beta1.ImportVerificationRequire },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFolderSite(t, unpacked(t, pkg))
			inspect := fromHTTP(transfer.Inspect, s.URL+"/golden/web.ovf?token=x")
			change(s, inspect)
			task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
			f := volumes(t, task)
			succeed(t, f, task)
			isImported(t, f, task)
			if len(s.queries) != 1 || !s.queries["token=x"] {
				t.Errorf("the queries are %v", s.queries)
			}
		})
	}
	t.Run("in a volume", func(t *testing.T) {
		files := map[string][]byte{}
		for name, content := range unpacked(t, pkg) {
			files[transfer.SourceFolder+"/images/"+name] = content
		}
		inspect := fromHTTP(transfer.Inspect, "")
		inspect.Source = &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Path: "images/web.ovf"}}
		task := toImport(inspect, succeed(t, mounts(t, files), inspect).Plan)
		f := volumes(t, task)
		for name, content := range files {
			write(t, f.path(name), content)
		}
		succeed(t, f, task)
		isImported(t, f, task)
	})
}

func TestPackagesInFoldersThatFail(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	replace := func(name, old, changed string) func(*folderSite, *transfer.Task) {
		return func(s *folderSite, _ *transfer.Task) {
			s.files[name] = bytes.Replace(s.files[name], []byte(old), []byte(changed), 1)
		}
	}
	for name, tc := range map[string]struct {
		change func(*folderSite, *transfer.Task)
		reason string
		want   string
	}{
		"a disk is missing":         {func(s *folderSite, _ *transfer.Task) { delete(s.files, "web-root.vmdk") }, transfer.ReasonUnreachableSource, "/golden/web-root.vmdk: the server answers 404 Not Found"},
		"a disk has another length": {func(s *folderSite, _ *transfer.Task) { s.files["web-tools.iso"] = []byte("x") }, transfer.ReasonNotAPackage, `OVA, member "web-tools.iso": has 1 bytes`},
		"a manifest is required": {func(s *folderSite, task *transfer.Task) {
			delete(s.files, "web.mf")
			task.Verification = v1beta1.ImportVerificationRequire
		}, transfer.ReasonManifestMissing, "OVA: contains no manifest"},
		"a checksum":           {func(_ *folderSite, task *transfer.Task) { task.Checksum = "sha256:" + strings.Repeat("0", 64) }, transfer.ReasonUnsupported, "a package in a folder has no digest of its own: remove the checksum, and use verification Require, which compares each file with the manifest"},
		"a file elsewhere":     {replace("web.ovf", `ovf:href="web-tools.iso"`, `ovf:href="../secret"`), transfer.ReasonNotAPackage, `refers to the file "../secret"`},
		"an address":           {replace("web.ovf", `ovf:href="web-tools.iso"`, `ovf:href="http://169.254.169.254/"`), transfer.ReasonNotAPackage, `refers to the file "http://169.254.169.254/"`},
		"no descriptor":        {func(s *folderSite, _ *transfer.Task) { s.files["web.ovf"] = []byte("hello") }, transfer.ReasonNotAPackage, "OVF descriptor"},
		"a large descriptor":   {func(s *folderSite, _ *transfer.Task) { s.files["web.ovf"] = make([]byte, 5<<20) }, transfer.ReasonNotAPackage, "the descriptor has 5242880 bytes, and at most 4194304 are allowed"},
		"many chunks of a CD":  {replace("web.ovf", `ovf:href="web-tools.iso"`, `ovf:href="web-tools.iso" ovf:chunkSize="1000"`), transfer.ReasonLimitExceeded, "files, and at most 256 are allowed in a folder: make an OVA of it"},
		"a descriptor changed": {replace("web.ovf", "<Envelope", "<Envelope "), transfer.ReasonManifestMismatch, `OVA, member "web.ovf": has the SHA256 digest`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFolderSite(t, unpacked(t, pkg))
			task := fromHTTP(transfer.Inspect, s.URL+"/golden/web.ovf")
			tc.change(s, task)
			state := work(t, mounts(t, nil), task)
			if state.Phase == transfer.Succeeded {
				// What is not known before the files are read.
				task = toImport(task, state.Plan)
				state = work(t, volumes(t, task), task)
			}
			if state.Failure == nil || state.Failure.Reason != tc.reason || !strings.Contains(state.Failure.Message, tc.want) || state.Failure.Retry {
				t.Errorf("got %+v, want %s %q", state.Failure, tc.reason, tc.want)
			}
		})
	}
	for name, change := range map[string]func(*folderSite){
		"another revision of a disk": func(s *folderSite) { s.etag["web-root.vmdk"] = "two" },
		"a manifest disappears":      func(s *folderSite) { delete(s.files, "web.mf") },
	} {
		s := newFolderSite(t, unpacked(t, pkg))
		inspect := fromHTTP(transfer.Inspect, s.URL+"/golden/web.ovf")
		task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
		s.mutex.Lock()
		change(s)
		s.mutex.Unlock()
		t.Log(name)
		fails(t, volumes(t, task), task, transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: "the source has changed since it was inspected: create the import again"})
	}
}
