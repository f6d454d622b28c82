// Command floor serves two admission webhooks that do the least that a webhook can do, in a process of their own: /mutate answers a patch that was
// prepared beforehand for the VirtualMachine of that name, and /validate allows. Stencil's webhooks are compared with them, so this is a plain Go
// program: net/http, TLS and the garbage collector with their defaults, and HTTP/1.1 alone, as stencil-manager serves by default.
//
// It reads the patches from its standard input, a JSON object by VM name, writes a line with its address, and serves until its input ends. /calls
// returns the number of calls of the webhooks.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

// address is the address of the webhooks and their certificate.
type address struct {
	URL string `json:"url"`
	// CABundle is the certificate, in PEM.
	CABundle []byte `json:"caBundle"`
}

func run(in io.Reader, out io.Writer) error {
	var patches map[string][]byte
	if err := json.NewDecoder(in).Decode(&patches); err != nil {
		return fmt.Errorf("reading the patches: %w", err)
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{
		Handler:   newWebhooks(patches),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
		Protocols: &http.Protocols{},
	}
	server.Protocols.SetHTTP1(true)
	ended := make(chan error, 2)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	if err := json.NewEncoder(out).Encode(address{
		URL:      "https://" + listener.Addr().String(),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
	}); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	return <-ended
}

// selfSigned makes a serving certificate of the kind that the manager has.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key}, nil
}

// webhooks are the handlers of the two webhooks.
type webhooks struct {
	// patched are the decisions of /mutate, by VM name.
	patched map[string]string
	calls   atomic.Int64
}

// An answer is the beginning, the UID of the request, and a decision up to the end.
const (
	beginning = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"`
	allowed   = `","allowed":true`
	end       = `}}`
)

func newWebhooks(patches map[string][]byte) *webhooks {
	w := &webhooks{patched: map[string]string{}}
	for name, patch := range patches {
		w.patched[name] = allowed + `,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString(patch) + `"` + end
	}
	return w
}

func (w *webhooks) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/calls" {
		_, _ = fmt.Fprint(writer, w.calls.Load())
		return
	}
	w.calls.Add(1)
	body := make([]byte, max(0, request.ContentLength))
	if _, err := io.ReadFull(request.Body, body); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	// The API server writes the UID before all names, and the name of the VM before the VM.
	uid, rest := value(body, `"uid":"`)
	decision := allowed + end
	if request.URL.Path == "/mutate" {
		name, _ := value(rest, `"name":"`)
		decision = w.patched[string(name)]
	}
	if len(uid) == 0 || decision == "" {
		http.Error(writer, "no answer was prepared for this", http.StatusBadRequest)
		return
	}
	answer := make([]byte, 0, len(beginning)+len(uid)+len(decision))
	answer = append(append(append(answer, beginning...), uid...), decision...)
	header := writer.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = writer.Write(answer)
}

// value returns the text, of plain characters, that follows a key, and what comes after it.
func value(body []byte, key string) (text, rest []byte) {
	_, rest, _ = bytes.Cut(body, []byte(key))
	text, rest, _ = bytes.Cut(rest, []byte(`"`))
	return text, rest
}
