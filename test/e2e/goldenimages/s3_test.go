package goldenimages_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/bucket"
)

// TestAnObjectOfABucketIsFollowed follows an object of a real S3 server, as a user with the role edit.
func TestAnObjectOfABucketIsFollowed(t *testing.T) {
	own := namespace(t)
	images := bucket.New(t)
	images.Put(t, "fedora.qcow2", []byte("one"))
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	must(t, own, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bucket"},"data":{"accessKeyId":%q,"secretKey":%q}}`, encoded(bucket.AccessKey), encoded("wrong")), "create", "-f", "-")
	must(t, own, ofFile("fedora", fmt.Sprintf("{s3: {url: %q, secretRef: bucket}}", images.URL+"/fedora.qcow2"), ""), "create", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "False CheckFailed: spec.source.s3.secretRef: secrets "+own+"/bucket must not be read: add it to the chart's value goldenImages.readable")

	// What the chart grants for goldenImages.readable.
	asAdmin(t, own, "", "create", "role", "readable", "--verb=get", "--resource=secrets", "--resource-name=bucket")
	asAdmin(t, own, "", "create", "rolebinding", "readable", "--role=readable", "--serviceaccount=stencil-system:stencil-images")
	refresh(t, own, "fedora", "1")
	becomes(t, own, "fedora", "UpToDate", "False CheckFailed: "+images.URL+"/fedora.qcow2: 403 Forbidden: correct the URL, or the credentials in the Secret that secretRef names")
	must(t, own, "", "patch", "secret", "bucket", "--type=merge", "-p", fmt.Sprintf(`{"data":{"secretKey":%q}}`, encoded(bucket.SecretKey)))
	refresh(t, own, "fedora", "2")
	first := becomes(t, own, "fedora", "UpToDate", "True Latest").Status.History[0]
	dataVolume := must(t, own, "", "get", "dv", first.Volume, "-o", "jsonpath={.spec.source.s3}")
	if want := fmt.Sprintf(`{"secretRef":"bucket","url":"%s/fedora.qcow2"}`, images.URL); dataVolume != want {
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
	images.Put(t, "fedora.qcow2", []byte("another one"))
	refresh(t, own, "fedora", "4")
	eventually(t, "the newer object is imported", func() error {
		image := get(t, own, "fedora")
		if len(image.Status.History) != 2 || image.Status.History[0].Digest == first.Digest || !strings.HasPrefix(condition(image, "UpToDate"), "True Latest") {
			return errors.New(condition(image, "UpToDate"))
		}
		return nil
	})
	all := asAdmin(t, own, "", "get", "gimg,dv,datasource,events", "-o", "yaml")
	if strings.Contains(all, bucket.SecretKey) || strings.Contains(all, encoded(bucket.SecretKey)) {
		t.Error("the secret key is in an object")
	}
}
