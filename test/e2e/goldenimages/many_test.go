package goldenimages_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// TestManyImages makes many images of few repositories at once. All are checked, and their next checks have to be spread. Most have a DataSource
// that a user provides, so that they import nothing: CDI's controllers import about one image in a second.
//
//suite:long
func TestManyImages(t *testing.T) {
	const number, imported, repositories = 300, 20, 10
	own := namespace(t)
	for i := range repositories {
		push(t, fmt.Sprintf("many/os%d", i), "latest")
	}
	var manifests strings.Builder
	for i := range number {
		name := fmt.Sprintf("image-%03d", i)
		if i >= imported {
			fmt.Fprintf(&manifests, "---\n{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataSource, metadata: {name: %s}, spec: {source: {pvc: {name: by-hand, namespace: %s}}}}\n", name, own)
		}
		fmt.Fprintf(&manifests, "---\n%s\n", manifest(name, fmt.Sprintf("many/os%d", i%repositories), ""))
	}
	started := time.Now()
	must(t, own, manifests.String(), "create", "-f", "-")
	created := time.Since(started)
	eventually(t, "all images are checked, and up to date if no user provides them", func() error {
		reasons := kubectl(t, own, "", "get", "gimg", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="UpToDate")].reason}`).Stdout
		if latest, provided := strings.Count(reasons, "Latest"), strings.Count(reasons, "Provided"); latest != imported || provided != number-imported {
			return fmt.Errorf("%d are up to date and %d provided", latest, provided)
		}
		return nil
	})
	t.Logf("%d images were created in %s and in their final state after %s", number, created, time.Since(started))
	var list v1alpha1.GoldenImageList
	if err := json.Unmarshal([]byte(must(t, own, "", "get", "gimg", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	at := map[time.Time]int{}
	for _, image := range list.Items {
		if image.Status.NextCheckTime == nil {
			t.Fatalf("%s has no next check: %+v", image.Name, image.Status)
		}
		at[image.Status.NextCheckTime.UTC()]++
	}
	// 300 of the 14 400 seconds of the window, at random, are 297 different ones on average.
	if len(at) < number*9/10 {
		t.Errorf("the next checks are at %d times only", len(at))
	}
}
