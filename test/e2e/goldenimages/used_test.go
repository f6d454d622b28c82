package goldenimages_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestWhereAnImageIsUsed counts the templates and VMs of an image, which a user without permission for it creates in another namespace.
func TestWhereAnImageIsUsed(t *testing.T) {
	own, team := namespace(t), harness.Namespace(t, stage.Plane, "team")
	user := harness.User(t, stage.Plane, "user-"+team, gen.Role(team, "edit"))
	first := push(t, "used/fedora", "latest")
	must(t, own, manifest("fedora", "used/fedora", ", channels: [{name: stable}]"), "create", "-f", "-")
	standsFor(t, own, "fedora-stable", first)
	usage := func() string {
		return kubectl(t, own, "", "get", "gimg", "fedora", "-o", "jsonpath={.status.usage.templates} {.status.usage.virtualMachines}").Stdout
	}
	becomesUsed := func(want string) {
		t.Helper()
		eventually(t, "the usage is "+want, func() error {
			if got := usage(); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	becomesUsed("0 0")
	disk := func(name, dataSource string) gen.Modifier {
		return gen.DataVolumeDisk(name, "${NAME}-"+name, "sourceRef: {kind: DataSource, name: "+dataSource+", namespace: "+own+"}")
	}
	// A template with two disks from the image is one.
	templates := gen.Manifest(
		gen.Template("box", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), disk("root", "fedora"), disk("data", "fedora-stable"))),
		gen.Template("slow", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), disk("root", "fedora-stable"))),
		gen.Template("other", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), disk("root", "missing"))),
	)
	as := func(stdin string, arguments ...string) string {
		t.Helper()
		return harness.Must(t, stage.Plane, user, stdin, append(arguments, "-n", team)...).Stdout
	}
	as(templates, "create", "-f", "-")
	becomesUsed("2 0")

	const vms = 40
	var burst strings.Builder
	for i := range vms {
		name, from := fmt.Sprintf("vm-%02d", i), "fedora"
		if i%2 == 1 {
			from = "fedora-stable"
		}
		burst.WriteString("---\n" + gen.Manifest(gen.VM(name, gen.SmallSpec(), gen.DataVolumeDisk("root", name+"-root", "sourceRef: {kind: DataSource, name: "+from+", namespace: "+own+"}"))) + "\n")
	}
	started := time.Now()
	created := make(chan string, 1)
	go func() {
		got := harness.Kubectl(t, stage.Plane, user, burst.String(), "create", "-n", team, "-f", "-")
		created <- got.Stderr
	}()
	var seen []string
	for {
		now := usage()
		if !slices.Contains(seen, now) {
			seen = append(seen, now)
		}
		if now == fmt.Sprintf("2 %d", vms) {
			break
		}
		if time.Since(started) > harness.Limit {
			t.Fatalf("the usage is %s\n%s", now, stage.Manager.Logs())
		}
		time.Sleep(50 * time.Millisecond)
	}
	if problems := <-created; problems != "" {
		t.Errorf("creating the VMs: %s", problems)
	}
	took := time.Since(started)
	t.Logf("%d VMs were created and counted in %s, in which the usage was %s", vms, took, strings.Join(seen, ", "))
	if most := int(took/(5*time.Second)) + 2; len(seen) > most {
		t.Errorf("the usage was written for %q, which is more than once in 5 s", seen)
	}

	as("", "delete", "vm", "vm-00", "vm-01")
	as("", "delete", "vmt", "slow")
	becomesUsed(fmt.Sprintf("1 %d", vms-2))
	if got := must(t, own, "", "get", "gimg", "fedora", "-o", "wide"); !strings.Contains(got, "VMS") {
		t.Errorf("the columns are %s", got)
	}
	as("", "delete", "vm", "--all")
	becomesUsed("1 0")
}
