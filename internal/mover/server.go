package mover

import (
	"archive/tar"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// Server serves the state of a mover to the manager, and an exported package to users, and receives one that they import.
type Server struct {
	mover *Mover
	token string
	once  sync.Once
	// acknowledged is closed when the manager has acknowledged the end.
	acknowledged chan struct{}
}

// NewServer returns a server. token is the manager's.
func NewServer(m *Mover, token string) *Server {
	return &Server{mover: m, token: token, acknowledged: make(chan struct{})}
}

// Acknowledged is closed when the manager has acknowledged the end of the mover.
func (s *Server) Acknowledged() <-chan struct{} { return s.acknowledged }

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+transfer.StatePath, s.authorized(s.state))
	mux.HandleFunc("POST "+transfer.AcknowledgePath, s.authorized(s.acknowledge))
	mux.HandleFunc("GET "+transfer.PackagePath+"{file}", s.download)
	// HEAD too.
	mux.HandleFunc("GET "+transfer.UploadPath, s.offset)
	mux.HandleFunc("PATCH "+transfer.UploadPath, s.add)
	return mux
}

// has reports whether a request has a token in the header Authorization.
func has(request *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && equal(given, token)
}

// equal compares digests, so that the time does not depend on the length. No token equals an empty one.
func equal(given, token string) bool {
	got, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func deny(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "the request has no valid token in the header Authorization", http.StatusUnauthorized)
}

func (s *Server) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		if !has(request, s.token) {
			deny(w)
			return
		}
		next(w, request)
	}
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	text, err := s.mover.report.encode()
	if err != nil {
		http.Error(w, "the state cannot be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func (s *Server) acknowledge(w http.ResponseWriter, _ *http.Request) {
	if s.mover.report.phase() == transfer.Running {
		http.Error(w, "the mover has not ended", http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	s.once.Do(func() { close(s.acknowledged) })
}

func (s *Server) download(w http.ResponseWriter, request *http.Request) {
	p := s.mover.Task.Package
	if s.mover.Task.Stage != transfer.Export || p == nil {
		http.NotFound(w, request)
		return
	}
	if !has(request, p.DownloadToken) && !equal(request.Header.Get(transfer.TokenHeader), p.DownloadToken) {
		deny(w)
		return
	}
	name := request.PathValue("file")
	if name != p.File && p.Format == v1beta1.ExportOCI {
		http.NotFound(w, request)
		return
	}
	s.mover.report.mutex.Lock()
	phase, digest := s.mover.report.state.Phase, s.mover.report.state.Digest
	s.mover.report.mutex.Unlock()
	if phase == transfer.Failed {
		http.Error(w, "the export has failed", http.StatusGone)
		return
	}
	if phase != transfer.Succeeded {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the package is not ready", http.StatusServiceUnavailable)
		return
	}
	file, err := os.Open(s.mover.packagePath())
	if err != nil {
		http.Error(w, "the package cannot be opened", http.StatusInternalServerError)
		return
	}
	defer file.Close()
	var content io.ReadSeeker = file
	if name != p.File {
		if content = memberOf(file, name); content == nil {
			http.NotFound(w, request)
			return
		}
		digest += "/" + name
	}
	w.Header().Set("ETag", `"`+digest+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	http.ServeContent(w, request, "", time.Time{}, content)
}

// memberOf returns a file in an OVA, and nil if there is none: an OVA can be read as a folder, too.
func memberOf(ova *os.File, name string) io.ReadSeeker {
	for archive := tar.NewReader(ova); ; {
		header, err := archive.Next()
		if err != nil {
			return nil
		}
		if header.Name != name {
			continue
		}
		// The reader stops behind a header.
		offset, err := ova.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil
		}
		return io.NewSectionReader(ova, offset, header.Size)
	}
}
