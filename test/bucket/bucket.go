// Package bucket runs an S3 server on loopback, which verifies signatures.
package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// Keys of the server, and its region: what CDI and Stencil derive from the host, which is an address.
const (
	AccessKey = "the-access-key"
	SecretKey = "a-secret-that-no-status-shows"
	Region    = "127"
)

const (
	// startAttempts is how often the server is started with another port, because one that was free may be taken meanwhile.
	startAttempts = 5
	// startLimit bounds the wait for the server.
	startLimit = time.Minute
)

// Bucket is a bucket of the server.
type Bucket struct{ URL string }

// New starts a server until the test ends, and creates a bucket.
func New(t *testing.T) Bucket {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "versitygw")
	if err != nil {
		t.Fatal(err)
	}
	for range startAttempts {
		if url := start(t, tools["versitygw"]); url != "" {
			b := Bucket{url + "/images"}
			b.Put(t, "", nil)
			return b
		}
	}
	t.Fatal("the S3 server does not start")
	return Bucket{}
}

// start starts a server, and returns its URL; empty if it has ended.
func start(t *testing.T, program string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	data, metadata := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "metadata")
	for _, folder := range []string{data, metadata} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var output bytes.Buffer
	// Not the context of the test, which ends before its cleanup.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port", address, "--region", Region, "posix", "--sidecar", metadata, data)
	command.Env = []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey, "HOME=" + t.TempDir()}
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("S3 server: %s", output.String())
		}
	})
	up := ""
	harness.Within(t, "the S3 server listens", startLimit, func() error {
		select {
		case <-ended:
			return nil
		default:
		}
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			up = "http://" + address
			err = connection.Close()
		}
		return err
	})
	return up
}

// Put writes an object, or creates the bucket if there is no key.
func (b Bucket) Put(t *testing.T, key string, content []byte) {
	t.Helper()
	// As Amazon's libraries escape it, which is what is signed.
	escaped := strings.NewReplacer("%2F", "/", "+", "%2B").Replace(url.PathEscape(key))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, strings.TrimSuffix(b.URL+"/"+escaped, "/"), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(content)
	hash := hex.EncodeToString(digest[:])
	request.Header.Set("X-Amz-Content-Sha256", hash)
	if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(t.Context(), aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey}, request, hash, "s3", Region, time.Now()); err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("PUT %s: %s", request.URL, response.Status)
	}
}
