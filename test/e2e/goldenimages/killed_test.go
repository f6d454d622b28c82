package goldenimages_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTheManagerIsKilledAtEachStep kills the manager as the failure of its host would, each time that an image has reached a step of its life. A second
// image, which takes a DataSource over, is at other steps then.
//
//suite:long
func TestTheManagerIsKilledAtEachStep(t *testing.T) {
	// A successor would have to wait until the lease of the manager that was killed ends.
	restart := func(more ...string) {
		t.Helper()
		if err := stage.RestartManager(more...); err != nil {
			t.Fatal(err)
		}
	}
	restart("--leader-elect=false")
	t.Cleanup(func() { restart() })
	own := namespace(t)
	kill := func(object, path, when string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s of %s has %q, at which the manager is to be killed", path, object, when), func() error {
			if got := kubectl(t, own, "", "get", object, "-o", "jsonpath="+path); got.Code != 0 || !strings.Contains(got.Stdout, when) {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
		if err := stage.Manager.Kill(); err != nil {
			t.Fatal(err)
		}
		restart("--leader-elect=false")
	}
	filled(t, own, "by-hand")
	dataSource(t, own, "adopted", "by-hand", "")
	spec := must(t, own, "", "get", "datasource", "adopted", "-o", "jsonpath={.spec}")
	both := []string{"made", "adopted"}

	first := push(t, "killed/made", "latest")
	must(t, own, manifest("made", "killed/made", ", retention: Delete, channels: [{name: stable}]"), "create", "-f", "-")
	kill("gimg/made", "{.metadata.finalizers}", "golden-image")
	must(t, own, manifest("adopted", "killed/made", ", retention: Delete, adopt: Always"), "create", "-f", "-")
	kill("datasource/made", "{.metadata.name}", "made")
	kill("dataimportcron/made", "{.metadata.name}", "made")
	kill("dv/"+volume("made", first), "{.metadata.name}", "made")
	kill("gimg/made", "{.status.history}", first)
	for _, dataSource := range append(both, "made-stable") {
		standsFor(t, own, dataSource, first)
	}
	kill("datasource/adopted", "{.metadata.annotations}", "previous-source")

	second := push(t, "killed/made", "latest")
	for _, name := range both {
		refresh(t, own, name, "second")
	}
	kill("dataimportcron/made", "{.metadata.annotations}", second)
	kill("dv/"+volume("adopted", second), "{.metadata.name}", "adopted")
	for _, dataSource := range append(both, "made-stable") {
		standsFor(t, own, dataSource, second)
	}

	for _, name := range both {
		patch(t, own, name, fmt.Sprintf(`{"digest": %q}`, first))
	}
	kill("gimg/made", "{.spec.digest}", first)
	kill("dataimportcron/adopted", "{.metadata.annotations}", first)
	for _, name := range both {
		standsFor(t, own, name, first)
		image := becomes(t, own, name, "UpToDate", "True Pinned")
		if len(image.Status.History) != 2 {
			t.Errorf("history of %s: %+v", name, image.Status.History)
		}
	}
	var want []string
	for _, name := range both {
		want = append(want, volume(name, first), volume(name, second))
	}
	want = append(want, "by-hand")
	slices.Sort(want)
	eventually(t, "there are two volumes of each image and that of the user", func() error {
		if got := kubectl(t, own, "", "get", "pvc", "-o", "jsonpath={.items[*].metadata.name}"); got.Stdout != strings.Join(want, " ") {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})

	must(t, own, "", "delete", "gimg", "--all", "--wait=false")
	kill("gimg", "{.items[*].metadata.deletionTimestamp}", "")
	eventually(t, "all but what the user made is gone", func() error {
		got := asAdmin(t, own, "", "get", "gimg,datasource,dataimportcron,dv,pvc,volumesnapshot", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name},{end}")
		if got != "DataSource adopted,DataVolume by-hand,PersistentVolumeClaim by-hand," {
			return errors.New(got)
		}
		return nil
	})
	has(t, own, "datasource/adopted", "{.spec}", spec)
	has(t, own, "datasource/adopted", ready, "True")
}

// TestANamespaceIsNoLongerEnabled takes the permissions in a namespace away from a manager that has images there.
func TestANamespaceIsNoLongerEnabled(t *testing.T) {
	own := namespace(t)
	first := push(t, "disabled/fedora", "latest")
	must(t, own, manifest("fedora", "disabled/fedora", ""), "create", "-f", "-")
	standsFor(t, own, "fedora", first)
	if err := stage.RestartManager("--image-namespaces=elsewhere"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stage.RestartManager(); err != nil {
			t.Fatal(err)
		}
	}()
	becomes(t, own, "fedora", "UpToDate", "Unknown NamespaceNotEnabled: Golden images are not enabled in the namespace: add "+own+" to the chart's value goldenImages.namespaces")
	must(t, own, "", "delete", "gimg", "fedora", "--timeout=60s")
}
