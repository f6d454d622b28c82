package manager

import (
	"bytes"
	"io"
	"sync"
)

// log stores the output of a process and forwards it. A goroutine of os/exec writes while a test reads.
type log struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
	next   io.Writer
}

func newLog(next io.Writer) *log {
	if next == nil {
		next = io.Discard
	}
	return &log{next: next}
}

// Write never fails: a test that closes its writer early must not stop the process.
func (l *log) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.buffer.Write(text)
	_, _ = l.next.Write(text)
	return len(text), nil
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.buffer.String()
}
