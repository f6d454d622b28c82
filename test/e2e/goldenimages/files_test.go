package goldenimages_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane/kubelet"
)

// file is a file of an HTTP server on loopback, with a file of checksums beside it.
type file struct {
	url, sums string
	content   atomic.Pointer[string]
}

// serveFile serves a file until the test ends.
func serveFile(t *testing.T, content string) *file {
	t.Helper()
	f := &file{}
	f.content.Store(&content)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := *f.content.Load()
		if strings.HasSuffix(r.URL.Path, "/CHECKSUM") {
			_, _ = fmt.Fprintf(w, "# Fedora\nSHA256 (fedora.qcow2) = %s\n", sum(content))
			return
		}
		w.Header().Set("ETag", `"`+sum(content)[:8]+`"`)
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(server.Close)
	f.url, f.sums = server.URL+"/fedora.qcow2", server.URL+"/CHECKSUM"
	return f
}

func sum(content string) string {
	hash := sha256.Sum256([]byte(content))
	return hex.EncodeToString(hash[:])
}

// ofFile returns a GoldenImage of a source, with these fields of its spec in YAML flow style.
func ofFile(named, source, fields string) string {
	return fmt.Sprintf(`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: GoldenImage, metadata: {name: %s},
  spec: {source: %s, storage: {size: 1Gi}%s}}`, named, source, fields)
}

// TestAFileIsKeptFresh follows a file whose checksum changes through its life: imports, going back, channels, a failed import, the end.
func TestAFileIsKeptFresh(t *testing.T) {
	own := namespace(t)
	served := serveFile(t, "one")
	first := "sha256:" + sum("one")
	must(t, own, ofFile("fedora", fmt.Sprintf("{http: {url: %q, checksumFile: %q}}", served.url, served.sums), `, importsToKeep: 2, retention: Delete, channels: [{name: stable, promote: {manual: true}}]`), "create", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+first)
	standsFor(t, own, "fedora", first)
	standsFor(t, own, "fedora-stable", first)
	has(t, own, "dv/"+volume("fedora", first), "{.spec.source.http.checksum}", first)

	next := "two"
	served.content.Store(&next)
	second := "sha256:" + sum(next)
	refresh(t, own, "fedora", "1")
	standsFor(t, own, "fedora", second)
	standsFor(t, own, "fedora-stable", first)
	image := becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+second)
	if len(image.Status.History) != 2 || image.Status.History[0].Digest != second {
		t.Errorf("history %+v", image.Status.History)
	}

	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, first))
	standsFor(t, own, "fedora", first)
	becomes(t, own, "fedora", "UpToDate", "True Pinned")
	unknown := "sha256:" + sum("never")
	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, unknown))
	becomes(t, own, "fedora", "UpToDate", "False DigestUnknown: spec.digest: no image has the digest "+unknown+": take one of status.history")
	standsFor(t, own, "fedora", first)
	patch(t, own, "fedora", `{"digest": null}`)
	standsFor(t, own, "fedora", second)

	// The error of CDI's importer for a file with another checksum.
	const mismatch = "Unable to process data: checksum validation failed: checksum mismatch"
	recovered := stage.Plane.Nodes().When(kubelet.Rule{Namespace: own, Prefix: "importer-", Fail: mismatch})
	wrong := "three"
	served.content.Store(&wrong)
	refresh(t, own, "fedora", "2")
	third := "sha256:" + sum(wrong)
	becomes(t, own, "fedora", "Importing", "True ImportFailed: "+third)
	becomes(t, own, "fedora", "UpToDate", "False ImportFailed")
	standsFor(t, own, "fedora", second)
	right := "four"
	served.content.Store(&right)
	refresh(t, own, "fedora", "3")
	vanishes(t, own, "dv/"+volume("fedora", third))
	recovered()
	standsFor(t, own, "fedora", "sha256:"+sum(right))
	standsFor(t, own, "fedora-stable", first)

	must(t, own, "", "delete", "gimg", "fedora", "--timeout=60s")
	nothingIsLeft(t, own)
}

// TestAFileWithoutChecksumIsFollowed imports a file again when its ETag changes, and then an image of a registry under the same DataSource.
func TestAFileWithoutChecksumIsFollowed(t *testing.T) {
	own := namespace(t)
	served := serveFile(t, "one")
	must(t, own, ofFile("fedora", fmt.Sprintf("{http: {url: %q}}", served.url), ""), "create", "-f", "-")
	image := becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for version:")
	before := image.Status.History[0]
	has(t, own, "datasource/fedora", "{.spec.source.pvc.name}", before.Volume)
	next := "two"
	served.content.Store(&next)
	refresh(t, own, "fedora", "1")
	eventually(t, "the newer version is imported", func() error {
		if image := get(t, own, "fedora"); len(image.Status.History) != 2 || image.Status.Architectures[0].Current == nil || image.Status.Architectures[0].Current.Digest == before.Digest {
			return fmt.Errorf("%+v", image.Status)
		}
		return nil
	})

	pushed := push(t, "files/fedora", "latest")
	patch(t, own, "fedora", fmt.Sprintf(`{"source": {"http": null, "registry": {"url": %q}}}`, images+"/files/fedora"))
	standsFor(t, own, "fedora", pushed)
	patch(t, own, "fedora", fmt.Sprintf(`{"source": {"registry": null, "http": {"url": %q}}}`, served.url))
	becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for version:")
	vanishes(t, own, "dataimportcron/fedora")
	has(t, own, "datasource/fedora", ready, "True")
}
