package web

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/internal/s3/s3test"
)

func TestObjectsOfBuckets(t *testing.T) {
	etag := `"one"`
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodHead || r.URL.RawQuery != "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.HasPrefix(r.URL.Path, "/elsewhere/"):
			http.Redirect(w, r, "/bucket/images/disk.raw", http.StatusMovedPermanently)
		case !s3test.Signed(r.Context(), r, "127", "key", "secret"):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path != "/bucket/images/disk.raw" && r.URL.Path != "/bucket/a b+c=d/ü.raw":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("ETag", etag)
		}
	})
	newest := func(object, secret string) string {
		image := &v1alpha1.GoldenImageSpec{Storage: v1alpha1.GoldenImageStorage{Size: resource.MustParse("1Gi")}}
		image.Source.S3 = &v1alpha1.GoldenImageS3{URL: server + object, SecretRef: "bucket"}
		return result((&Client{Allowed: loopback}).Newest(t.Context(), key, image, outbound.Credentials{Username: "key", Password: secret}))
	}
	first := newest("/bucket/images/disk.raw", "secret")
	if !strings.HasPrefix(first, "version:") {
		t.Fatal(first)
	}
	equal(t, newest("/bucket/images/disk.raw", "secret"), first)
	etag = `"two"`
	if got := newest("/bucket/images/disk.raw", "secret"); !strings.HasPrefix(got, "version:") || got == first {
		t.Error(got)
	}
	if got := newest("/bucket/a%20b+c=d/%C3%BC.raw", "secret"); !strings.HasPrefix(got, "version:") {
		t.Error(got)
	}
	equal(t, newest("/bucket/images/disk.raw", "wrong"), server+"/bucket/images/disk.raw: 403 Forbidden: correct the URL, or the credentials in the Secret that secretRef names")
	equal(t, newest("/bucket/none", "secret"), server+"/bucket/none: 404 Not Found: correct the URL")
	equal(t, newest("/bucket/images/disk.raw", ""), "spec.source.s3.secretRef: the Secret must have the keys accessKeyId and secretKey")
	equal(t, newest("/elsewhere/disk.raw", "secret"), server+"/elsewhere/disk.raw: 301 Moved Permanently: the bucket may be in another region: use the URL https://s3.REGION.amazonaws.com/BUCKET/KEY of its region")
}
