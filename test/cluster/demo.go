package cluster

import (
	"context"
	_ "embed" // the examples
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// Manifests of the demo.
var (
	// GoldenExample has templates that boot the guest.
	//go:embed examples/golden.yaml
	GoldenExample []byte
	//go:embed examples/approval.yaml
	approvalExample []byte
)

// bootLimit is far above the time in which a guest boots by emulation.
const bootLimit = 4 * time.Minute

// demo creates a VM from an approved template as a user with the role edit, and logs in at its serial console.
type demo struct {
	cluster *Cluster
	out     io.Writer
	ada     *controlplane.User
}

// Demo installs KubeVirt and Stencil, and shows a user's way from a template to the login of a guest.
func (c *Cluster) Demo(ctx context.Context, out io.Writer) error {
	d := &demo{cluster: c, out: out}
	for _, step := range []func(context.Context) error{d.prepare, d.create, d.show, d.logIn} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) prepare(ctx context.Context) error {
	if err := d.cluster.Install(ctx); err != nil {
		return err
	}
	if err := d.cluster.PushGuest(ctx); err != nil {
		return err
	}
	const team = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n---\n"
	if err := harness.Apply(ctx, d.cluster.Plane, team+string(GoldenExample)+"---\n"+string(approvalExample), "-"); err != nil {
		return err
	}
	var err error
	d.ada, err = gen.User(ctx, d.cluster.Plane, "ada", gen.Role("team-a", "edit"), gen.UsesTemplates("golden"))
	return err
}

// run prints a command of kubectl and its output.
func (d *demo) run(ctx context.Context, as *controlplane.User, stdin string, arguments ...string) error {
	fmt.Fprintf(d.out, "\n$ kubectl %s\n", strings.Join(arguments, " "))
	result, err := d.cluster.Plane.Kubectl(ctx, as, stdin, arguments...)
	if err != nil {
		return err
	}
	fmt.Fprint(d.out, result.Stdout, result.Stderr)
	if result.Code != 0 {
		return fmt.Errorf("kubectl %s ended with %d", arguments[0], result.Code)
	}
	return nil
}

// request is the VM that ada creates.
const request = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
  annotations:
    template.kubevirt.io/template-ref: golden/small
`

func (d *demo) create(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nAs ada, who has the role edit in team-a, and may use the templates of golden:\n\n%s", request)
	if err := d.run(ctx, d.ada, request, "create", "--namespace=team-a", "--filename=-"); err != nil {
		return err
	}
	return deadline.Wait(ctx, "the VM runs", bootLimit, func(ctx context.Context) error {
		result, err := d.cluster.Plane.Kubectl(ctx, d.ada, "", "get", "virtualmachine", "web", "--namespace=team-a", "--output=jsonpath={.status.printableStatus}")
		if err != nil || result.Stdout == "Running" {
			return err
		}
		return fmt.Errorf("its status is %s%s", result.Stdout, result.Stderr)
	})
}

func (d *demo) show(ctx context.Context) error {
	for _, each := range []struct {
		as        *controlplane.User
		arguments []string
	}{
		{nil, []string{"get", "nodes,pods", "--all-namespaces"}},
		{d.ada, []string{"get", "virtualmachines", "--namespace=team-a"}},
	} {
		if err := d.run(ctx, each.as, "", each.arguments...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) logIn(ctx context.Context) error {
	password, err := d.cluster.GeneratedPassword(ctx, d.ada, "team-a", "web")
	if err != nil {
		return err
	}
	console, err := d.cluster.Console(ctx, d.ada, "team-a", "web")
	if err != nil {
		return err
	}
	defer console.Close()
	if err := console.LogIn(ctx, "ada", password, bootLimit); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe serial console of web, at which ada logs in with the generated password:\n\n%s\n", console.Text())
	return nil
}
