package goldenimages_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestAnImageIsKeptFresh follows an image through its life, as a user with the role edit: the first import, a newer tag, going back, and the
// end.
func TestAnImageIsKeptFresh(t *testing.T) {
	own := namespace(t)
	first := push(t, "fresh/fedora", "41", "latest")
	push(t, "fresh/fedora", "rawhide")
	must(t, own, manifest("fedora", "fresh/fedora, tags: {semver: '>=41 <43'}", `, defaults: {instancetype: u1.medium, preference: fedora}`), "create", "-f", "-")
	image := becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+first+" (tag 41)")
	standsFor(t, own, "fedora", first)
	if len(image.Status.History) != 1 || image.Status.NextCheckTime == nil || image.Status.LastCheckTime == nil {
		t.Errorf("status %+v", image.Status)
	}
	labels := must(t, own, "", "get", "datasource", "fedora", "-o", "jsonpath={.metadata.labels}")
	for _, want := range []string{`"instancetype.kubevirt.io/default-instancetype":"u1.medium"`, `"instancetype.kubevirt.io/default-preference":"fedora"`, `"cdi.kubevirt.io/dataImportCron":"fedora"`} {
		if !strings.Contains(labels, want) {
			t.Errorf("the DataSource has no label %s: %s", want, labels)
		}
	}

	second := push(t, "fresh/fedora", "42.1")
	push(t, "fresh/fedora", "43")
	refresh(t, own, "fedora", "1")
	standsFor(t, own, "fedora", second)
	image = becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+second+" (tag 42.1)")
	if len(image.Status.History) != 2 || image.Status.History[0].Digest != second {
		t.Errorf("history %+v", image.Status.History)
	}

	// Going back needs no import.
	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, first))
	standsFor(t, own, "fedora", first)
	image = becomes(t, own, "fedora", "UpToDate", "True Pinned")
	if len(image.Status.History) != 2 {
		t.Errorf("history %+v", image.Status.History)
	}
	patch(t, own, "fedora", `{"digest": null}`)
	standsFor(t, own, "fedora", second)

	events := must(t, own, "", "get", "events", "--field-selector=involvedObject.kind=GoldenImage", "-o", "jsonpath={.items[*].message}")
	if want := "imported " + second + " (tag 42.1) into fedora-" + second[7:19]; !strings.Contains(events, want) {
		t.Errorf("no event %q: %s", want, events)
	}

	must(t, own, "", "delete", "gimg", "fedora", "--timeout=60s")
	standsAlone := must(t, own, "", "get", "datasource", "fedora", "-o", `jsonpath={.metadata} {.status.conditions[?(@.type=="Ready")].status}`)
	if strings.Contains(standsAlone, "ownerReferences") || strings.Contains(standsAlone, "stencil.kubevirt.io/digest") || !strings.HasSuffix(standsAlone, " True") {
		t.Errorf("the DataSource that is kept: %s", standsAlone)
	}
}

func TestNothingIsLeftWithRetentionDelete(t *testing.T) {
	own := namespace(t)
	first := push(t, "deleted/fedora", "latest")
	must(t, own, manifest("fedora", "deleted/fedora", `, retention: Delete, channels: [{name: stable}]`), "create", "-f", "-")
	standsFor(t, own, "fedora-stable", first)
	must(t, own, "", "delete", "gimg", "fedora", "--timeout=60s")
	nothingIsLeft(t, own)
}

// TestChannelsKeepTheirImages moves the newest image on until all older images are deleted but those that channels stand for.
func TestChannelsKeepTheirImages(t *testing.T) {
	own := namespace(t)
	first := push(t, "channels/fedora", "latest")
	must(t, own, manifest("fedora", "channels/fedora", `, importsToKeep: 2, channels: [{name: next}, {name: stable, promote: {manual: true}}, {name: slow, promote: {after: 1000h}}]`), "create", "-f", "-")
	for _, channel := range []string{"fedora", "fedora-next", "fedora-stable", "fedora-slow"} {
		standsFor(t, own, channel, first)
	}
	var digests []string
	for i := range 3 {
		digests = append(digests, push(t, "channels/fedora", "latest"))
		refresh(t, own, "fedora", fmt.Sprint(i))
		standsFor(t, own, "fedora", digests[i])
		standsFor(t, own, "fedora-next", digests[i])
	}
	second, third, last := digests[0], digests[1], digests[2]
	eventually(t, "the second image is deleted", func() error {
		if got := kubectl(t, own, "", "get", "pvc", "fedora-"+second[7:19]); got.Code == 0 {
			return errors.New(got.Stdout)
		}
		return nil
	})
	for _, channel := range []string{"fedora-stable", "fedora-slow"} {
		standsFor(t, own, channel, first)
	}
	image := get(t, own, "fedora")
	for _, c := range image.Status.Channels {
		if c.Name != "next" && (c.Digest != first || c.Next == "") || c.Name == "slow" && c.NextTime == nil {
			t.Errorf("channel %+v", c)
		}
	}

	must(t, own, "", "annotate", "gimg", "fedora", "stencil.kubevirt.io/promote-stable="+last)
	standsFor(t, own, "fedora-stable", last)
	patch(t, own, "fedora", fmt.Sprintf(`{"channels": [{"name": "next"}, {"name": "stable", "digest": %q}]}`, third))
	standsFor(t, own, "fedora-stable", third)
	eventually(t, "the DataSource of the channel that is gone is deleted", func() error {
		if got := kubectl(t, own, "", "get", "datasource", "fedora-slow"); got.Code == 0 {
			return errors.New(kubectl(t, own, "", "get", "gimg/fedora", "datasource/fedora-slow", "-o", "yaml").Stdout)
		}
		return nil
	})
	patch(t, own, "fedora", fmt.Sprintf(`{"channels": [{"name": "next"}, {"name": "stable", "digest": %q}]}`, second))
	becomes(t, own, "fedora", "UpToDate", "False ChannelNotImported: channel stable: the volume of "+second+" does not exist: pin one of status.history")
	standsFor(t, own, "fedora-stable", third)
}

func TestArchitecturesHaveDataSources(t *testing.T) {
	own := namespace(t)
	digests := pushIndex(t, "arch/fedora", "latest", "amd64", "arm64")
	must(t, own, manifest("fedora", "arch/fedora", `, architectures: [arm64, amd64], channels: [{name: stable}]`), "create", "-f", "-")
	for _, architecture := range []string{"amd64", "arm64"} {
		standsFor(t, own, "fedora-"+architecture, digests[architecture])
		standsFor(t, own, "fedora-stable-"+architecture, digests[architecture])
	}
	eventually(t, "the DataSources without architecture stand for those of the first", func() error {
		for dataSource, want := range map[string]string{"fedora": "fedora-arm64", "fedora-stable": "fedora-stable-arm64"} {
			got := kubectl(t, own, "", "get", "datasource", dataSource, "-o", `jsonpath={.spec.source.dataSource.name} {.status.conditions[?(@.type=="Ready")].status}`)
			if got.Stdout != want+" True" {
				return errors.New(dataSource + ": " + got.Stdout + got.Stderr)
			}
		}
		return nil
	})
	t.Run("an index is a digest of each", func(t *testing.T) { architecturesGoBack(t, own, digests) })
	patch(t, own, "fedora", `{"architectures": ["amd64", "s390x"]}`)
	becomes(t, own, "fedora", "UpToDate", "False CheckFailed: reading "+images+"/arch/fedora:latest: it has no image for linux/s390x, only for amd64, arm64: take s390x out of spec.architectures")
}

// architecturesGoBack pins an image of two architectures by digests, with kubectl and stencilctl.
func architecturesGoBack(t *testing.T, own string, older map[string]string) {
	image := func(line, want string) {
		t.Helper()
		binary, err := stencilctl.Binary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: owner.Kubeconfig, Line: "image " + line + " -n " + own}.Run(t.Context())
		if err != nil || ran.Code != 0 || !strings.Contains(ran.Output, want) {
			t.Fatalf("stencilctl image %s: %v %+v, want %q", line, err, ran, want)
		}
	}
	both := func(dataSource string, digests map[string]string) {
		t.Helper()
		for _, architecture := range []string{"amd64", "arm64"} {
			standsFor(t, own, dataSource+architecture, digests[architecture])
		}
	}
	newer := pushIndex(t, "arch/fedora", "latest", "amd64", "arm64")
	refresh(t, own, "fedora", "newer")
	both("fedora-", newer)
	both("fedora-stable-", newer)
	image("rollback fedora --poll-interval 200ms --timeout 2m", "rolled back to "+older[""]+" (tag latest)")
	both("fedora-", older)
	becomes(t, own, "fedora", "UpToDate", "True Pinned")
	image("pin fedora --channel stable "+older[""][7:19], "channel stable pinned to "+older[""])
	both("fedora-stable-", older)
	image("unpin fedora", "unpinned")
	both("fedora-", newer)
	patch(t, own, "fedora", `{"channels": [{"name": "stable", "promote": {"manual": true}}]}`)
	image("promote fedora stable", "channel stable promoted to "+newer[""])
	both("fedora-stable-", newer)
	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, older["amd64"]))
	becomes(t, own, "fedora", "UpToDate", "False DigestUnknown: spec.digest: no image for arm64 has the digest "+older["amd64"]+", nor its index: ")
	both("fedora-", map[string]string{"amd64": older["amd64"], "arm64": newer["arm64"]})
	patch(t, own, "fedora", `{"digest": null}`)
	both("fedora-", newer)
}
