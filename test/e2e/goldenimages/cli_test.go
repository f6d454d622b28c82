package goldenimages_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestTheCommandLineKeepsAnImage takes an image through its life with stencilctl, as a user with the role edit.
func TestTheCommandLineKeepsAnImage(t *testing.T) {
	own := namespace(t)
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image := func(line string) stencilctl.Result {
		t.Helper()
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: owner.Kubeconfig, Line: "image " + line + " -n " + own}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ran
	}
	// want runs a command that has to print this, with this in standard error.
	want := func(line, output, problems string) {
		t.Helper()
		ran := image(line)
		if diff := cmp.Diff(output, ran.Output); diff != "" || ran.Code != 0 || !strings.Contains(ran.Problems, problems) {
			t.Fatalf("stencilctl image %s: exit code %d, output (-want +got):\n%s\nstandard error %q, want %q in it\n%s", line, ran.Code, diff, ran.Problems, problems, stage.Manager.Logs())
		}
	}
	const name, following = "goldenimage.stencil.kubevirt.io/fedora ", " --poll-interval 200ms --timeout 2m"

	first := push(t, "cli/fedora", "41")
	want("add fedora --registry "+images+"/cli/fedora --semver >=41 --size 1Gi"+following,
		"goldenimage.stencil.kubevirt.io "+own+"/fedora up to date: DataSource fedora stands for "+first+" (tag 41)\n", "UpToDate True (Latest): DataSource fedora stands for "+first)
	patch(t, own, "fedora", `{"channels": [{"name": "next"}, {"name": "stable", "promote": {"manual": true}}]}`)
	standsFor(t, own, "fedora-stable", first)

	second := push(t, "cli/fedora", "42")
	want("refresh fedora"+following, name+"up to date: DataSource fedora stands for "+second+" (tag 42)\n", "Importing True (Importing): "+second+" into fedora-"+second[7:19]+": ")
	row := regexp.MustCompile(`(?m)^fedora +fedora +42 +` + second[7:19] + ` +\S+ +Latest +\S+ +\S+ +next=` + second[7:19] + `,stable=` + first[7:19] + `$`)
	lists := func(what string, row *regexp.Regexp) {
		t.Helper()
		eventually(t, what, func() error {
			if listed := image("list"); listed.Code != 0 || !row.MatchString(listed.Output) {
				return fmt.Errorf("%+v", listed)
			}
			return nil
		})
	}
	lists("the channel next follows", row)

	want("promote fedora stable", name+"channel stable promoted to "+second+" (tag 42)\n", "")
	lists("the channel stable follows", regexp.MustCompile(`,stable=`+second[7:19]+`\n`))
	standsFor(t, own, "fedora-stable", second)
	want("rollback fedora --channel stable"+following, name+"channel stable rolled back to "+first+" (tag 41)\n", "")
	standsFor(t, own, "fedora-stable", first)

	want("rollback fedora"+following, name+"rolled back to "+first+" (tag 41)\n", "it follows no newer image until you unpin it: stencilctl image unpin "+own+"/fedora\n")
	standsFor(t, own, "fedora", first)
	history := image("history fedora").Output
	rows := regexp.MustCompile(`(?m)^<none> +` + second + ` +42 +\S+Z +fedora-` + second[7:19] + ` +<none>\n<none> +` + first + ` +41 +\S+Z +fedora-` + first[7:19] + ` +\(current\),next,stable$`)
	if !rows.MatchString(history) {
		t.Errorf("history:\n%s", history)
	}
	want("unpin fedora", name+"unpinned\n", "")
	standsFor(t, own, "fedora", second)

	want("pin fedora 41 --channel next", name+"channel next pinned to "+first+" (tag 41)\n", "stencilctl image unpin "+own+"/fedora --channel next\n")
	standsFor(t, own, "fedora-next", first)
	want("pin fedora "+first[7:17], name+"pinned to "+first+" (tag 41)\n", "")
	standsFor(t, own, "fedora", first)
	want("unpin fedora", name+"unpinned\n", "")
	standsFor(t, own, "fedora", second)

	// The error of the check is that of the registry.
	must(t, own, "", "patch", "gimg", "fedora", "--type=merge", "-p", `{"spec": {"source": {"registry": {"url": "`+images+`/cli/nothing"}}}}`)
	failed := image("refresh fedora" + following)
	if problem := get(t, own, "fedora").Status.CheckError; failed.Code != 1 || !strings.Contains(problem, images+"/cli/nothing") || !strings.HasSuffix(failed.Problems, problem+"\n") {
		t.Errorf("refresh: %+v, want %q", failed, problem)
	}
}
