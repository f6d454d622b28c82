package mover

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmstencil/stencil/transfer"
)

// upload is a package that users send by requests, one at a time, each with a part of it.
type upload struct {
	// done has the result, once.
	done chan error
	// ready is set when it is known what the volume has.
	ready atomic.Bool

	// writing is held by the request that writes.
	writing sync.Mutex
	// current is that request, and nil if there is none.
	mutex   sync.Mutex
	current *part
}

// part is the body of a request.
type part struct {
	body       io.Reader
	controller *http.ResponseController
	stall      time.Duration

	mutex sync.Mutex
	ended bool
}

var errInterrupted = errors.New("another request continues the upload")

// Read implements io.Reader. It waits for the client no longer than the stall.
func (p *part) Read(b []byte) (int, error) {
	p.mutex.Lock()
	if p.ended {
		p.mutex.Unlock()
		return 0, errInterrupted
	}
	var deadline time.Time
	if p.stall > 0 {
		deadline = time.Now().Add(p.stall)
	}
	// A server that does not support deadlines waits for longer.
	_ = p.controller.SetReadDeadline(deadline)
	p.mutex.Unlock()
	return p.body.Read(b)
}

// interrupt ends a read.
func (p *part) interrupt() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.controller.SetReadDeadline(time.Now())
	}
}

// end is called before the request ends, after which its connection must not be changed.
func (p *part) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.ended = true
}

// begin interrupts the request that writes, whose client may be gone, and takes its place.
func (u *upload) begin(p *part) {
	u.mutex.Lock()
	if u.current != nil {
		u.current.interrupt()
	}
	u.current = p
	u.mutex.Unlock()
	u.writing.Lock()
}

func (u *upload) end(p *part) {
	p.end()
	u.mutex.Lock()
	if u.current == p {
		u.current = nil
	}
	u.mutex.Unlock()
	u.writing.Unlock()
}

// finish ends the stage.
func (u *upload) finish(err error) {
	select {
	case u.done <- err:
	default:
	}
}

// receive waits until the package is complete. A mover that starts again continues with what is in the volume.
func (m *Mover) receive(ctx context.Context) error {
	if m.Task.Upload == nil || m.Task.Upload.Size < 1 || m.Task.Upload.Token == "" {
		return failed(transfer.ReasonInvalidTask, false, "the task has no upload")
	}
	file, err := m.openUpload()
	if err != nil {
		return err
	}
	err = m.expect(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	m.upload.ready.Store(true)
	if m.received() == m.Task.Upload.Size {
		return nil
	}
	select {
	case err := <-m.upload.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// expect compares the volume with the package.
func (m *Mover) expect(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := m.Task.Upload.Size
	if info.Size() > size {
		return failed(transfer.ReasonSourceChanged, false, "the volume of the package has a file of %d bytes, and the package has %d: create the import again", info.Size(), size)
	}
	var on unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &on); err != nil {
		return err
	}
	if free := float64(on.Bavail) * float64(on.Bsize); free < float64(size-info.Size()) {
		return failed(transfer.ReasonVolumeTooSmall, false, "the volume of the package has %.0f bytes left, and %d are missing", free, size-info.Size())
	}
	m.report.change(func(s *transfer.State) { s.Received = info.Size() })
	return nil
}

func (m *Mover) received() int64 {
	m.report.mutex.Lock()
	defer m.report.mutex.Unlock()
	return m.report.state.Received
}

// openUpload opens the file of the package. Users may mount its volume, so that a link in it is not followed.
func (m *Mover) openUpload() (*os.File, error) {
	root, err := os.OpenRoot(m.Folders.path(transfer.ResultFolder))
	if err != nil {
		return nil, failed(transfer.ReasonInvalidTask, false, "the volume for the package is not mounted")
	}
	defer root.Close()
	file, err := root.OpenFile(transfer.UploadFile, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o660)
	if err != nil {
		return nil, failed(transfer.ReasonSourceChanged, false, "the file of the package cannot be opened: %v", cause(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = failed(transfer.ReasonSourceChanged, false, "the file of the package was replaced: create the import again")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// uploading reports whether there is an upload that a request may see; it responds if there is none.
func (s *Server) uploading(w http.ResponseWriter, request *http.Request) bool {
	w.Header().Set(transfer.TusVersion, transfer.Tus)
	to := s.mover.Task.Upload
	switch {
	case s.mover.Task.Stage != transfer.Receive || to == nil:
		http.NotFound(w, request)
	case !has(request, to.Token) && !equal(request.Header.Get(transfer.TokenHeader), to.Token):
		deny(w)
	case s.mover.report.phase() == transfer.Failed:
		http.Error(w, "the upload has failed", http.StatusGone)
	case !s.mover.upload.ready.Load():
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the volume of the package is not ready", http.StatusServiceUnavailable)
	default:
		return true
	}
	return false
}

// offset responds with how many bytes have arrived, in the header as tus does, and in JSON.
func (s *Server) offset(w http.ResponseWriter, request *http.Request) {
	if !s.uploading(w, request) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(transfer.UploadLength, strconv.FormatInt(s.mover.Task.Upload.Size, 10))
	w.Header().Set("Content-Type", "application/json")
	received := s.mover.received()
	w.Header().Set(transfer.UploadOffset, strconv.FormatInt(received, 10))
	_ = json.NewEncoder(w).Encode(transfer.Received{Received: received})
}

func (s *Server) arrived(w http.ResponseWriter, status int) {
	w.Header().Set(transfer.UploadOffset, strconv.FormatInt(s.mover.received(), 10))
	w.WriteHeader(status)
}

// add adds a part to the package.
func (s *Server) add(w http.ResponseWriter, request *http.Request) {
	if !s.uploading(w, request) {
		return
	}
	size := s.mover.Task.Upload.Size
	offset, err := strconv.ParseInt(request.Header.Get(transfer.UploadOffset), 10, 64)
	version := request.Header.Get(transfer.TusVersion)
	switch {
	case version != "" && version != transfer.Tus:
		http.Error(w, "the header "+transfer.TusVersion+" must be "+transfer.Tus, http.StatusPreconditionFailed)
		return
	case request.Header.Get("Content-Type") != transfer.UploadType:
		http.Error(w, "the header Content-Type must be "+transfer.UploadType, http.StatusUnsupportedMediaType)
		return
	case err != nil || offset < 0:
		http.Error(w, "the header "+transfer.UploadOffset+" must be the position of the content in the package", http.StatusBadRequest)
		return
	case offset > size || request.ContentLength > size-offset:
		http.Error(w, "the package has "+strconv.FormatInt(size, 10)+" bytes, as the import says, and the content ends after them", http.StatusRequestEntityTooLarge)
		return
	}
	p := &part{body: request.Body, controller: http.NewResponseController(w), stall: s.mover.stall()}
	s.mover.upload.begin(p)
	defer s.mover.upload.end(p)
	switch err := s.mover.addPart(p, offset); {
	case err == nil:
		s.arrived(w, http.StatusNoContent)
	case errors.Is(err, errOffset):
		s.arrived(w, http.StatusConflict)
	case errors.Is(err, errTooLong):
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		http.Error(w, "the volume of the package is full", http.StatusInsufficientStorage)
	default:
		// What has arrived stays.
		http.Error(w, "the content did not arrive completely", http.StatusBadRequest)
	}
}

var (
	errOffset  = errors.New("the package has another size by now")
	errTooLong = errors.New("the content is longer than the package, as the import says")
)

// addPart adds a part at the end of the file. An error of the volume ends the mover.
func (m *Mover) addPart(p *part, offset int64) error {
	if m.report.phase() != transfer.Running || offset != m.received() {
		return errOffset
	}
	file, err := m.openUpload()
	if err != nil {
		m.upload.finish(err)
		return err
	}
	left := m.Task.Upload.Size - offset
	to := &appended{m: m, file: io.NewOffsetWriter(file, offset)}
	_, arrived := io.Copy(to, io.LimitReader(p, left))
	if to.err == nil && m.received() == m.Task.Upload.Size {
		to.err = file.Sync()
	}
	if to.err = errors.Join(to.err, file.Close()); to.err != nil {
		m.upload.finish(to.err)
		return to.err
	}
	if m.received() < m.Task.Upload.Size {
		return arrived
	}
	if n, _ := io.ReadFull(p, make([]byte, 1)); n > 0 {
		err := failed(transfer.ReasonSourceChanged, false, "more than the %d bytes were sent that the import names: create another import", m.Task.Upload.Size)
		m.upload.finish(err)
		return errTooLong
	}
	m.upload.finish(nil)
	return nil
}

// appended is the file of the package, and keeps the error of a write.
type appended struct {
	m    *Mover
	file io.Writer
	err  error
}

// Write implements io.Writer.
func (a *appended) Write(b []byte) (int, error) {
	n, err := a.file.Write(b)
	a.m.report.change(func(s *transfer.State) { s.Received += int64(n) })
	a.err = err
	return n, err
}
