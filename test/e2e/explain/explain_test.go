// Package explain_test runs `stencilctl explain` against a real API server with the chart and a stencil-manager: its output has to match what kubectl
// gets.
package explain_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/stencilctl"
)

var (
	stencil *platform.Platform
	binary  string
	// ada owns VirtualMachines in team-a and may use the golden templates; bob owns VirtualMachines there and may use none.
	ada, bob *controlplane.User
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if stencil, err = platform.Start(ctx, platform.Options{Log: os.Stderr}); err != nil {
		return nil, err
	}
	return stencil.Stop, prepare(ctx)
}

const bobs = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bob, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`

func prepare(ctx context.Context) (err error) {
	if binary, err = stencilctl.Binary(ctx); err != nil {
		return err
	}
	if ada, err = stencil.Plane.User("ada", "team-a"); err != nil {
		return err
	}
	if bob, err = stencil.Plane.User("bob"); err != nil {
		return err
	}
	if err := harness.Apply(ctx, stencil.Plane, bobs, stencil.Example("golden"), stencil.Example("access"), "-", stencil.Example("approvals/team-a.yaml")); err != nil {
		return err
	}
	result, err := stencil.Plane.Kubectl(ctx, nil, "", "wait", "namespace/team-a", "--timeout=60s", `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	return err
}

func explain(t *testing.T, as *controlplane.User, namespace, manifest string) (code int, output string) {
	t.Helper()
	ran, err := stencilctl.Command{Binary: binary, Kubeconfig: as.Kubeconfig, Line: "explain -n " + namespace + " -f -", Stdin: manifest}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ran.Code, ran.Output + ran.Problems
}

func vm(name, template string, modifiers ...gen.Modifier) string {
	return gen.Manifest(gen.VM(name, append(modifiers, gen.FromTemplate(template))...))
}

func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		name     string
		as       func() *controlplane.User
		manifest string
		wantCode int
		want     []string
	}{
		{
			name: "an approved machine", as: func() *controlplane.User { return ada },
			manifest: vm("web-1", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.small")),
			want: []string{
				"VirtualMachine team-a/web-1 would be created\n",
				"  ok      you may create VirtualMachines in namespace team-a\n",
				"  ok      you may use template golden/fedora\n",
			},
		},
		{
			name: "a value and a field that nobody approved", as: func() *controlplane.User { return ada },
			manifest: vm("web-2", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.8xlarge"), gen.Spec("template: {spec: {nodeSelector: {disktype: ssd}}}")),
			wantCode: 1,
			want: []string{
				"VirtualMachine team-a/web-2 would be denied\n",
				"denied by webhook render.template.kubevirt.io (rendering: ",
				"denied the request: virtualmachines.kubevirt.io \"web-2\" is forbidden: it is not approved in namespace \"team-a\"\n",
				"\n  - spec.template.spec.nodeSelector.disktype: Forbidden: may not be written or changed beside the template",
				"\n  - parameters[INSTANCETYPE]: Invalid value: \"u1.8xlarge\": must be one of",
			},
		},
		{
			name: "a template that one may not use", as: func() *controlplane.User { return bob },
			manifest: vm("web-3", "golden/fedora"),
			wantCode: 1,
			want: []string{
				"  no      you may use template golden/fedora\n          no role gives you verb use on virtualmachinetemplates.template.kubevirt.io with resourceName fedora in namespace golden\n",
				"  unknown template golden/fedora exists and is valid\n          you may not read it, which using it does not take: ",
				"denied by webhook render.template.kubevirt.io (",
			},
		},
		{
			name: "no template", as: func() *controlplane.User { return ada },
			manifest: gen.Manifest(gen.VM("by-hand", gen.LeastSpec())),
			wantCode: 1,
			want:     []string{"  ok      it names no template, and is created as specified\n", "denied by webhook governed.template.kubevirt.io (approvals: this namespace accepts VMs from approved templates only)\n", "in namespace \"team-a\"; name an approved template in annotation template.kubevirt.io/template-ref; you may use: golden/fedora, golden/ubuntu\n  - metadata.annotations[template.kubevirt.io/template-ref]: Forbidden: "},
		},
		{
			name: "values that the template does not take, which its owner is told before the approval", as: func() *controlplane.User { return stencil.Plane.Admin() },
			manifest: vm("Web", "golden/windows", gen.Parameter("DISK", "1Gi")),
			wantCode: 1,
			want: []string{
				"  ok      template golden/windows exists and is valid\n",
				"  no      it can be rendered with these parameters\n",
				"parameter.template.kubevirt.io/DISK",
			},
		},
		{
			name: "a template that is not there", as: func() *controlplane.User { return stencil.Plane.Admin() },
			manifest: vm("web-4", "golden/none"),
			wantCode: 1,
			want:     []string{"  no      template golden/none exists and is valid\n          there is no such template\n"},
		},
		{
			name: "an unknown field", as: func() *controlplane.User { return ada },
			manifest: vm("web-5", "golden/fedora", gen.Spec("runstrategy: Always")),
			wantCode: 1,
			want:     []string{"VirtualMachine team-a/web-5 would be denied\n", "runstrategy"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, output := explain(t, tc.as(), "team-a", tc.manifest)
			if code != tc.wantCode {
				t.Errorf("exit code %d, want %d", code, tc.wantCode)
			}
			for _, want := range tc.want {
				if !strings.Contains(output, want) {
					t.Errorf("%q is missing in:\n%s", want, output)
				}
			}
			if testing.Verbose() {
				t.Log(output)
			}
		})
	}
	stored, err := stencil.Plane.Kubectl(t.Context(), nil, "", "get", "vm", "-A", "-o", "name")
	if err != nil || stored.Stdout != "" {
		t.Errorf("something was stored: %v %s", err, stored.Stdout)
	}
}

func TestExplainWarnsOfADiskThatWillNotCome(t *testing.T) {
	const source = "{sourceRef: {kind: DataSource, namespace: golden, name: fedora}, storage: {}}"
	private := gen.Template("private", gen.InNamespace("golden"), gen.Label("stencil.kubevirt.io/disk-access", "None"), gen.Declares("NAME"),
		gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", source)))
	if err := harness.Apply(t.Context(), stencil.Plane, gen.Manifest(gen.Namespace("lab"), private), "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		harness.Must(t, stencil.Plane, nil, "", "delete", "vmt", "private", "-n", "golden")
	})
	grace, err := gen.User(t.Context(), stencil.Plane, "grace", gen.Permits("lab", rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"create"}}), gen.UsesTemplates("golden", "private"))
	if err != nil {
		t.Fatal(err)
	}
	code, output := explain(t, grace, "lab", vm("web", "golden/private"))
	for _, want := range []string{
		"VirtualMachine lab/web would be created\n",
		`disk "web-root" will not be created: VirtualMachineTemplate golden/private does not lend its disks: it lacks label stencil.kubevirt.io/disk-access=Lend`,
		"system:serviceaccount:lab:default may not copy from namespace golden, which this grants: kubectl create role copy-to-lab -n golden",
	} {
		if code != 0 || !strings.Contains(output, want) {
			t.Errorf("exit code %d; %q is missing in:\n%s", code, want, output)
		}
	}
}

func TestExplainAChangeOfParameters(t *testing.T) {
	tuned := gen.Template("tuned", gen.InNamespace("golden"), gen.Declares("NAME"), gen.Declares("CORES", "value: '2'", "maximum: 8", "type: int", "mutable: true"),
		gen.Renders("${NAME}", gen.SmallSpec(), gen.Spec("template: {spec: {domain: {cpu: {cores: '${{CORES}}'}}}}")))
	if err := harness.Apply(t.Context(), stencil.Plane, gen.Manifest(gen.Namespace("tuning"), tuned), "-"); err != nil {
		t.Fatal(err)
	}
	owner, err := gen.User(t.Context(), stencil.Plane, "tuner", gen.Permits("tuning", rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"create", "get", "patch"}}), gen.UsesTemplates("golden", "tuned"))
	if err != nil {
		t.Fatal(err)
	}
	harness.Must(t, stencil.Plane, owner, vm("box", "golden/tuned"), "create", "-n", "tuning", "-f", "-")
	t.Cleanup(func() {
		harness.Must(t, stencil.Plane, nil, "", "delete", "vm", "box", "-n", "tuning")
		harness.Must(t, stencil.Plane, nil, "", "delete", "vmt", "tuned", "-n", "golden")
	})
	for _, tc := range []struct {
		name, line string
		code       int
		want       []string
	}{
		{"a change", "-p CORES=4", 0, []string{"VirtualMachine tuning/box would be changed\n", "  ok      you may change VirtualMachine tuning/box\n", "  ok      you may use template golden/tuned\n", "  spec.template.spec.domain.cpu.cores\n          2 -> 4\n"}},
		{"the same value", "-p CORES=2", 0, []string{"VirtualMachine tuning/box would not change, besides its annotations\n"}},
		{"a value that the template rejects", "-p CORES=9", 1, []string{"VirtualMachine tuning/box would be denied\n", "must be at most 8"}},
		{"a fixed parameter", "-p NAME=other", 1, []string{"VirtualMachine tuning/box would be denied\n", "denied by ValidatingAdmissionPolicy stencil-template-reference", "parameter.template.kubevirt.io/NAME"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ran, err := stencilctl.Command{Binary: binary, Kubeconfig: owner.Kubeconfig, Line: "explain box -n tuning " + tc.line}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if ran.Code != tc.code || !strings.Contains(ran.Output+ran.Problems, want) {
					t.Errorf("exit code %d; %q is missing in:\n%s%s", ran.Code, want, ran.Output, ran.Problems)
				}
			}
		})
	}
	if got := harness.Must(t, stencil.Plane, nil, "", "get", "vm", "box", "-n", "tuning", "-o", "jsonpath={.spec.template.spec.domain.cpu.cores}").Stdout; got != "2" {
		t.Errorf("it has %s cores: something was stored", got)
	}
}
