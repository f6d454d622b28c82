package serving

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maximumBody is the size of the largest AdmissionReview that is read, in bytes. The API server accepts objects of at
// most 3 MiB, and etcd stores half of that, so the new and the old state of an object that can be stored fit.
const maximumBody = 3 << 20

// maximumDiscarded is how much of an oversize body is received and discarded beyond maximumBody, in bytes. It covers
// everything that an API server may send: two objects of 3 MiB, escaped.
const maximumDiscarded = 13 << 20

var errBodyTooLarge = errors.New("the request body is too large")

// largestPooled is the capacity, in bytes, above which a buffer is not pooled: otherwise a few large objects would
// hold memory permanently.
const largestPooled = 256 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// takeBuffer returns an empty buffer. The caller returns it with returnBuffer.
func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func returnBuffer(buffer *bytes.Buffer) {
	if buffer.Cap() <= largestPooled {
		buffer.Reset()
		buffers.Put(buffer)
	}
}

// readBody reads the body of request into an empty buffer. If the body is larger than limit, it returns
// errBodyTooLarge, with the beginning of the body in the buffer.
func readBody(into *bytes.Buffer, request *http.Request, limit int64) error {
	if request.Body == nil {
		return nil
	}
	if request.ContentLength > 0 {
		into.Grow(int(min(request.ContentLength, limit)) + bytes.MinRead)
	}
	// One byte more than the limit distinguishes a body of exactly limit bytes from a larger one.
	read, err := into.ReadFrom(io.LimitReader(request.Body, limit+1))
	if err == nil && read > limit {
		err = errBodyTooLarge
	}
	return err
}

// reviewUID returns request.uid from the beginning of an AdmissionReview, or an empty UID. The API server accepts
// only a response with the UID of its request, and writes the UID before the objects.
func reviewUID(truncated []byte) types.UID {
	decoder := json.NewDecoder(bytes.NewReader(truncated))
	if !openObject(decoder) || !seekKey(decoder, "request") || !openObject(decoder) || !seekKey(decoder, "uid") {
		return ""
	}
	token, err := decoder.Token()
	if err != nil {
		return ""
	}
	uid, _ := token.(string)
	return types.UID(uid)
}

// openObject consumes the opening brace of an object.
func openObject(decoder *json.Decoder) bool {
	token, err := decoder.Token()
	return err == nil && token == json.Delim('{')
}

// seekKey consumes members of the decoder's current object up to and including the given key.
func seekKey(decoder *json.Decoder, key string) bool {
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if token == key {
			return true
		}
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return false
		}
	}
	return false
}
