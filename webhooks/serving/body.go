package serving

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
)

// maximumBody is the largest AdmissionReview that is read, in bytes. The API server takes objects of
// at most 3 MiB, and etcd stores half of that, so the new and the old state of an object that can be stored fit.
const maximumBody = 3 << 20

// maximumDiscarded is how much of an oversize body is received, and thrown away, beyond maximumBody, in bytes. It
// covers whatever an API server may send: two objects of 3 MiB, escaped.
const maximumDiscarded = 13 << 20

var errBodyTooLarge = errors.New("the request body is too large")

// readBody reads the body of request. When the body is larger than limit it returns what was read of it
// with errBodyTooLarge.
func readBody(request *http.Request, limit int64) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	// One byte more than allowed tells a body of exactly limit bytes from a larger one.
	var buffer bytes.Buffer
	if request.ContentLength > 0 {
		buffer.Grow(int(min(request.ContentLength, limit)) + bytes.MinRead)
	}
	read, err := buffer.ReadFrom(io.LimitReader(request.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if read > limit {
		return buffer.Bytes(), errBodyTooLarge
	}
	return buffer.Bytes(), nil
}

// reviewUID finds request.uid in the beginning of an AdmissionReview, or returns an empty UID. The API
// server believes only an answer that carries the UID of its question, and writes the UID before the objects.
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

// seekKey consumes members of the object that decoder is in up to and including the given key.
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
