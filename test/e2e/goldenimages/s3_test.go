package goldenimages_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/vmstencil/stencil/test/controlplane"
)

const (
	accessKey, secretKey = "golden-images", "a-secret-that-no-status-shows"
	// region is what CDI and Stencil derive from the host of the server, which is an address.
	region = "127"
	// startAttempts is how often the server is started with another port, because one that was free may be taken meanwhile.
	startAttempts = 5
)

// bucket is a bucket of an S3 server on loopback.
type bucket struct{ url string }

// newBucket starts a server, which verifies signatures, until the test ends.
func newBucket(t *testing.T) bucket {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "versitygw")
	if err != nil {
		t.Fatal(err)
	}
	for range startAttempts {
		if url := startS3(t, tools["versitygw"]); url != "" {
			b := bucket{url + "/images"}
			b.put(t, "", "")
			return b
		}
	}
	t.Fatal("the S3 server does not start")
	return bucket{}
}

// startS3 starts a server, and returns its URL; empty if it has ended.
func startS3(t *testing.T, program string) string {
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
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port", address, "--region", region, "posix", "--sidecar", metadata, data)
	command.Env = []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey, "HOME=" + t.TempDir()}
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
	eventually(t, "the S3 server listens", func() error {
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

// put writes an object, or creates the bucket if there is no key.
func (b bucket) put(t *testing.T, key, content string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, strings.TrimSuffix(b.url+"/"+key, "/"), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	hash := sum(content)
	request.Header.Set("X-Amz-Content-Sha256", hash)
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}, request, hash, "s3", region, time.Now()); err != nil {
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

// TestAnObjectOfABucketIsFollowed follows an object of a real S3 server, as a user with the role edit.
func TestAnObjectOfABucketIsFollowed(t *testing.T) {
	own := namespace(t)
	images := newBucket(t)
	images.put(t, "fedora.qcow2", "one")
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	must(t, own, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bucket"},"data":{"accessKeyId":%q,"secretKey":%q}}`, encoded(accessKey), encoded("wrong")), "create", "-f", "-")
	must(t, own, ofFile("fedora", fmt.Sprintf("{s3: {url: %q, secretRef: bucket}}", images.url+"/fedora.qcow2"), ""), "create", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "False CheckFailed: spec.source.s3.secretRef: secrets "+own+"/bucket must not be read: add it to the chart's value goldenImages.readable")

	// What the chart grants for goldenImages.readable.
	asAdmin(t, own, "", "create", "role", "readable", "--verb=get", "--resource=secrets", "--resource-name=bucket")
	asAdmin(t, own, "", "create", "rolebinding", "readable", "--role=readable", "--serviceaccount=stencil-system:stencil-images")
	refresh(t, own, "fedora", "1")
	becomes(t, own, "fedora", "UpToDate", "False CheckFailed: "+images.url+"/fedora.qcow2: 403 Forbidden: correct the URL, or the credentials in the Secret that secretRef names")
	must(t, own, "", "patch", "secret", "bucket", "--type=merge", "-p", fmt.Sprintf(`{"data":{"secretKey":%q}}`, encoded(secretKey)))
	refresh(t, own, "fedora", "2")
	first := becomes(t, own, "fedora", "UpToDate", "True Latest").Status.History[0]
	dataVolume := must(t, own, "", "get", "dv", first.Volume, "-o", "jsonpath={.spec.source.s3}")
	if want := fmt.Sprintf(`{"secretRef":"bucket","url":"%s/fedora.qcow2"}`, images.url); dataVolume != want {
		t.Errorf("CDI imports %s, want %s", dataVolume, want)
	}

	// The same object again is the same version; another one is newer.
	refresh(t, own, "fedora", "3")
	eventually(t, "it is checked again", func() error {
		if image := get(t, own, "fedora"); image.Status.Refreshed != "3" || len(image.Status.History) != 1 {
			return fmt.Errorf("status %+v", image.Status)
		}
		return nil
	})
	images.put(t, "fedora.qcow2", "another one")
	refresh(t, own, "fedora", "4")
	eventually(t, "the newer object is imported", func() error {
		image := get(t, own, "fedora")
		if len(image.Status.History) != 2 || image.Status.History[0].Digest == first.Digest || !strings.HasPrefix(condition(image, "UpToDate"), "True Latest") {
			return errors.New(condition(image, "UpToDate"))
		}
		return nil
	})
	all := asAdmin(t, own, "", "get", "gimg,dv,datasource,events", "-o", "yaml")
	if strings.Contains(all, secretKey) || strings.Contains(all, encoded(secretKey)) {
		t.Error("the secret key is in an object")
	}
}
