package oci

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	containers "github.com/google/go-containerregistry/pkg/registry"
)

// server is a registry whose connections and answers a test controls.
type server struct {
	host string
	next http.Handler

	mutex sync.Mutex
	// cutDownload and cutUpload are numbers of bytes after which transfers of layers are cut; the first of them is used once. Negative ones cut nothing.
	cutDownload, cutUpload []int
	// forgetful means that the registry does not report what an upload has.
	forgetful bool
	// answer, if set, may answer a request in the place of the registry.
	answer func(w http.ResponseWriter, r *http.Request) bool
	// received are the bytes of uploads, by their path.
	received map[string]int
	// requests are method and path of each request, with its range.
	requests []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{next: containers.New(containers.Logger(log.New(io.Discard, "", 0)), containers.WithReferrersSupport(true)), received: map[string]int{}}
	listening := httptest.NewServer(s)
	// What the server reports of connections that it cuts.
	listening.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(listening.Close)
	s.host = strings.TrimPrefix(listening.URL, "http://")
	return s
}

// at is an artifact in the registry.
func (s *server) at(name string) string { return scheme + s.host + "/" + name }

// did returns the requests that begin with a text.
func (s *server) did(what string) (all []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, request := range s.requests {
		if strings.HasPrefix(request, what) {
			all = append(all, request)
		}
	}
	return all
}

func (s *server) forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = nil
}

// next takes the next cut.
func (s *server) cut(cuts *[]int) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(*cuts) == 0 {
		return -1
	}
	cut := (*cuts)[0]
	*cuts = (*cuts)[1:]
	return cut
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")+r.Header.Get("Content-Range")))
	answer := s.answer
	s.mutex.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	upload := strings.Contains(r.URL.Path, "/blobs/uploads/")
	switch {
	case upload && r.Method == http.MethodGet:
		s.status(w, r.URL.Path)
	case upload && r.Method == http.MethodPatch:
		s.patch(w, r)
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:"):
		s.blob(w, r)
	default:
		s.next.ServeHTTP(w, r)
	}
}

func (s *server) status(w http.ResponseWriter, path string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.forgetful {
		http.NotFound(w, nil)
		return
	}
	w.Header().Set("Location", path)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(s.received[path]-1, 0)))
	w.WriteHeader(http.StatusNoContent)
}

// patch passes the body to the registry, as much of it as arrives before a cut.
func (s *server) patch(w http.ResponseWriter, r *http.Request) {
	whole, err := io.ReadAll(r.Body)
	cut := -1
	// The config is never cut.
	if len(whole) > 2000 {
		cut = s.cut(&s.cutUpload)
	}
	if cut >= 0 && cut < len(whole) {
		whole = whole[:cut]
	}
	r.Body = io.NopCloser(bytes.NewReader(whole))
	answered := httptest.NewRecorder()
	s.next.ServeHTTP(answered, r)
	if answered.Code == http.StatusAccepted {
		s.mutex.Lock()
		s.received[r.URL.Path] += len(whole)
		s.mutex.Unlock()
	}
	if err != nil || cut >= 0 {
		panic(http.ErrAbortHandler)
	}
	copyAnswer(w, answered, -1)
}

// blob answers a blob, up to a cut.
func (s *server) blob(w http.ResponseWriter, r *http.Request) {
	answered := httptest.NewRecorder()
	s.next.ServeHTTP(answered, r)
	cut := -1
	if answered.Body.Len() > 2000 {
		cut = s.cut(&s.cutDownload)
	}
	copyAnswer(w, answered, cut)
	if cut >= 0 {
		panic(http.ErrAbortHandler)
	}
}

func copyAnswer(w http.ResponseWriter, answered *httptest.ResponseRecorder, cut int) {
	for key, values := range answered.Header() {
		w.Header()[key] = values
	}
	content := answered.Body.Bytes()
	if cut >= 0 {
		content = content[:min(cut, len(content))]
	}
	w.WriteHeader(answered.Code)
	_, _ = w.Write(content)
	_ = http.NewResponseController(w).Flush()
}

// lie answers requests of one blob or manifest with another content.
func lie(path string, content func(real []byte) []byte) func(next http.Handler) func(w http.ResponseWriter, r *http.Request) bool {
	return func(next http.Handler) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, path) {
				return false
			}
			r.Header.Del("Range")
			answered := httptest.NewRecorder()
			next.ServeHTTP(answered, r)
			made := content(answered.Body.Bytes())
			w.Header().Set("Content-Type", answered.Header().Get("Content-Type"))
			w.Header().Set("Content-Length", strconv.Itoa(len(made)))
			w.WriteHeader(answered.Code)
			_, _ = w.Write(made)
			return true
		}
	}
}

// noWait does not wait between attempts.
func noWait(ctx context.Context, _ int) error { return ctx.Err() }
