package mover

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/transfer"
)

// receiver is a mover that receives a package.
type receiver struct {
	*Mover
	url   string
	ended chan struct{}
}

// receives starts a mover for a package of so many bytes, with a volume that has these files.
func receives(t *testing.T, size int64, files map[string][]byte) *receiver {
	t.Helper()
	folders := mounts(t, files)
	if err := os.MkdirAll(folders.path(transfer.ResultFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	return starts(t, folders, size)
}

func starts(t *testing.T, folders Folders, size int64) *receiver {
	t.Helper()
	m := New(folders, &transfer.Task{Stage: transfer.Receive, Upload: &transfer.Upload{Size: size, Token: "upload"}, Limits: transfer.Limits{StallSeconds: 60}})
	server := httptest.NewServer(NewServer(m, "manager").Handler())
	t.Cleanup(server.Close)
	r := &receiver{Mover: m, url: server.URL + transfer.UploadPath, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		m.Work(t.Context())
	}()
	t.Cleanup(func() { <-r.ended })
	for deadline := time.Now().Add(time.Minute); !m.upload.ready.Load() && m.report.phase() == transfer.Running; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the mover is not ready")
		}
	}
	return r
}

// sends sends a part, and returns the status and the offset of the response.
func (r *receiver) sends(t *testing.T, offset int64, body io.Reader, header ...string) (status int, now, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, r.url, body)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Authorization": "Bearer upload", "Content-Type": transfer.UploadType, transfer.TusVersion: transfer.Tus, transfer.UploadOffset: strconv.FormatInt(offset, 10),
	} {
		request.Header.Set(key, value)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get(transfer.UploadOffset), strings.TrimSpace(string(content))
}

// end waits for the end of the mover, and returns its state.
func (r *receiver) end(t *testing.T) transfer.State {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		t.Fatal("the mover does not end")
	}
	return r.report.state
}

// holds requires that the volume has the package.
func (r *receiver) holds(t *testing.T, content []byte) {
	t.Helper()
	if got := read(t, r.Folders.path(transfer.ResultFolder, transfer.UploadFile)); !bytes.Equal(got, content) {
		t.Error("the package has other bytes")
	}
}

func TestAPackageIsReceivedInParts(t *testing.T) {
	content := rootDisk()
	r := receives(t, int64(len(content)), nil)
	const first = 5 << 20
	if status, now, text := r.sends(t, 0, bytes.NewReader(content[:first])); status != http.StatusNoContent || now != strconv.Itoa(first) {
		t.Fatalf("%d, offset %s: %s", status, now, text)
	}
	// The first part once more: the client has not got the response.
	if status, now, _ := r.sends(t, 0, bytes.NewReader(content[:first])); status != http.StatusConflict || now != strconv.Itoa(first) {
		t.Errorf("the same part again: %d, offset %s", status, now)
	}
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		request, err := http.NewRequestWithContext(t.Context(), method, r.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(transfer.TokenHeader, "upload")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		got := fmt.Sprint(response.StatusCode, response.Header.Get(transfer.UploadOffset), response.Header.Get(transfer.UploadLength), response.Header.Get("Cache-Control"))
		if want := fmt.Sprint(200, strconv.Itoa(first), strconv.Itoa(len(content)), "no-store"); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	// Without a length, as curl sends from a pipe.
	if status, now, text := r.sends(t, first, io.MultiReader(bytes.NewReader(content[first:]))); status != http.StatusNoContent || now != strconv.Itoa(len(content)) {
		t.Fatalf("%d, offset %s: %s", status, now, text)
	}
	if state := r.end(t); state.Phase != transfer.Succeeded || state.Received != int64(len(content)) {
		t.Errorf("%+v", state)
	}
	r.holds(t, content)
}

func TestAnUploadContinuesAfterTheMoverHasStartedAgain(t *testing.T) {
	content := toolsDisk()
	volume := map[string][]byte{transfer.ResultFolder + "/" + transfer.UploadFile: content[:1000]}
	r := receives(t, int64(len(content)), volume)
	if status, now, _ := r.sends(t, 0, bytes.NewReader(content)); status != http.StatusConflict || now != "1000" {
		t.Fatalf("%d, offset %s", status, now)
	}
	if status, _, text := r.sends(t, 1000, bytes.NewReader(content[1000:])); status != http.StatusNoContent {
		t.Fatalf("%d: %s", status, text)
	}
	r.end(t)
	// Complete, and not acknowledged.
	if state := starts(t, r.Folders, int64(len(content))).end(t); state.Phase != transfer.Succeeded {
		t.Errorf("%+v", state.Failure)
	}
	r.holds(t, content)
}

// TestAnotherRequestTakesOver has a client that sends a part of its content and is gone, without the server noticing.
func TestAnotherRequestTakesOver(t *testing.T) {
	content := toolsDisk()
	r := receives(t, int64(len(content)), nil)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(r.url, "http://"), transfer.UploadPath))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "PATCH %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer upload\r\nContent-Type: %s\r\nUpload-Offset: 0\r\nContent-Length: %d\r\n\r\n", transfer.UploadPath, transfer.UploadType, len(content))
	if _, err := connection.Write(content[:4096]); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); r.received() < 4096; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing arrives")
		}
	}
	if status, _, text := r.sends(t, 4096, bytes.NewReader(content[4096:])); status != http.StatusNoContent {
		t.Fatalf("%d: %s", status, text)
	}
	if state := r.end(t); state.Phase != transfer.Succeeded {
		t.Errorf("%+v", state.Failure)
	}
	r.holds(t, content)
}

func TestManyClientsSendOnePackage(t *testing.T) {
	content := toolsDisk()
	r := receives(t, int64(len(content)), nil)
	failures := make(chan error, 4)
	for range 4 {
		go func() {
			failures <- func() error {
				for {
					at := r.received()
					if at == int64(len(content)) {
						return nil
					}
					request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, r.url, bytes.NewReader(content[at:min(at+1000, int64(len(content)))]))
					if err != nil {
						return err
					}
					request.Header.Set("Authorization", "Bearer upload")
					request.Header.Set("Content-Type", transfer.UploadType)
					request.Header.Set(transfer.UploadOffset, strconv.FormatInt(at, 10))
					response, err := http.DefaultClient.Do(request)
					if err != nil {
						// Interrupted by another client.
						continue
					}
					_ = response.Body.Close()
				}
			}()
		}()
	}
	for range 4 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	r.end(t)
	r.holds(t, content)
}

func TestPartsThatAreRejected(t *testing.T) {
	r := receives(t, 10, nil)
	for name, tc := range map[string]struct {
		offset int64
		body   io.Reader
		header []string
		status int
		text   string
	}{
		"no token":        {0, strings.NewReader("abc"), []string{"Authorization", ""}, 401, "the request has no valid token in the header Authorization"},
		"the manager's":   {0, strings.NewReader("abc"), []string{"Authorization", "Bearer manager"}, 401, "the request has no valid token in the header Authorization"},
		"another version": {0, strings.NewReader("abc"), []string{transfer.TusVersion, "2.0.0"}, 412, "the header Tus-Resumable must be 1.0.0"},
		"another type":    {0, strings.NewReader("abc"), []string{"Content-Type", "text/plain"}, 415, "the header Content-Type must be application/offset+octet-stream"},
		"no position":     {0, strings.NewReader("abc"), []string{transfer.UploadOffset, "x"}, 400, "the header Upload-Offset must be the position of the content in the package"},
		"a gap":           {3, strings.NewReader("abc"), nil, 409, ""},
		"behind the end":  {11, strings.NewReader("abc"), nil, 413, "the package has 10 bytes, as the import says, and the content ends after them"},
		"too much":        {0, strings.NewReader("abcdefghijk"), nil, 413, "the package has 10 bytes, as the import says, and the content ends after them"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, text := r.sends(t, tc.offset, tc.body, tc.header...); status != tc.status || text != tc.text {
				t.Errorf("%d %q, want %d %q", status, text, tc.status, tc.text)
			}
		})
	}
	if got := r.received(); got != 0 {
		t.Errorf("%d bytes were received", got)
	}
	if status, _, text := r.sends(t, 0, io.MultiReader(strings.NewReader("abcdefghijk"))); status != 413 || text != errTooLong.Error() {
		t.Errorf("without a length: %d %q", status, text)
	}
	if state := r.end(t); state.Failure == nil || state.Failure.Reason != transfer.ReasonSourceChanged || state.Failure.Message != "more than the 10 bytes were sent that the import names: create another import" {
		t.Errorf("%+v", state.Failure)
	}
	if status, _, text := r.sends(t, 0, strings.NewReader("abc")); status != http.StatusGone || text != "the upload has failed" {
		t.Errorf("after the failure: %d %q", status, text)
	}
}

func TestVolumesThatAreNotThoseOfThePackage(t *testing.T) {
	in := transfer.ResultFolder + "/" + transfer.UploadFile
	link := func(t *testing.T) Folders {
		folders := mounts(t, map[string][]byte{"/etc/other": []byte("secret"), transfer.ResultFolder + "/x": nil})
		if err := os.Symlink(folders.path("/etc/other"), folders.path(in)); err != nil {
			t.Fatal(err)
		}
		return folders
	}
	for name, tc := range map[string]struct {
		folders Folders
		size    int64
		reason  string
		message string
	}{
		"no volume":    {mounts(t, nil), 10, transfer.ReasonInvalidTask, "the volume for the package is not mounted"},
		"a longer one": {mounts(t, map[string][]byte{in: []byte("12345678901")}), 10, transfer.ReasonSourceChanged, "the volume of the package has a file of 11 bytes, and the package has 10: create the import again"},
		"a link":       {link(t), 10, transfer.ReasonSourceChanged, "the file of the package cannot be opened: path escapes from parent"},
		"a folder":     {mounts(t, map[string][]byte{in + "/x": nil}), 10, transfer.ReasonSourceChanged, "the file of the package cannot be opened: is a directory"},
		"too small":    {mounts(t, map[string][]byte{in: nil}), 1 << 60, transfer.ReasonVolumeTooSmall, ""},
		"no size":      {mounts(t, nil), 0, transfer.ReasonInvalidTask, "the task has no upload"},
	} {
		t.Run(name, func(t *testing.T) {
			state := starts(t, tc.folders, tc.size).end(t)
			if f := state.Failure; f == nil || f.Retry || f.Reason != tc.reason || tc.message != "" && f.Message != tc.message {
				t.Errorf("%+v", f)
			}
		})
	}
}
