package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestStencilctl processes and creates with the command line, as users without permission to read the templates.
func TestStencilctl(t *testing.T) {
	space := shop(t)
	for _, tc := range []struct {
		name             string
		as               *controlplane.User
		line             string
		wantCode         int
		wantOut, wantErr string
	}{
		{"process", bob, "process " + space + "/box -n " + space + " -p NAME=cli-1 -p NUMBER=1.10 -o name", 0, "virtualmachine.kubevirt.io/cli-1\n", "cli-1 has password "},
		{"an unused parameter", bob, "process " + space + "/box -n " + space + " -p NAME=cli-1 -p UNUSED=x -o name", 0, "virtualmachine.kubevirt.io/cli-1\n", "UNUSED"},
		{"bad values", bob, "process " + space + "/box -n " + space + " -p CORES=9 -p NAMME=a", 3, "", "parameters[CORES]: "},
		{"a template that is not there", ada, "process " + space + "/none -n " + space, 3, "", "not found"},
		{"may not be read", bob, "process " + space + "/box -n " + space + " --local", 3, "", "cannot get resource \"virtualmachinetemplates\""},
		{"may not create", bob, "create " + space + "/box -n " + space + " -p NAME=cli-2", 3, "", "cannot create resource \"virtualmachinetemplates/create\""},
		{"a rehearsal", ada, "create " + space + "/box -n " + space + " -p NAME=cli-2 --dry-run=server", 0, "virtualmachine.kubevirt.io " + space + "/cli-2 created (server dry run)\n", "cli-2 has password "},
		{"create", ada, "create " + space + "/box -n " + space + " -p NAME=cli-2", 0, "virtualmachine.kubevirt.io " + space + "/cli-2 created\n", "cli-2 has password "},
		{"once more", ada, "process " + space + "/box -n " + space + " -p NAME=cli-2 --create", 3, "", "already exists"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ran, err := stencilctl.Command{Binary: binary, Kubeconfig: tc.as.Kubeconfig, Line: tc.line}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ran.Code != tc.wantCode || ran.Output != tc.wantOut || !strings.Contains(ran.Problems, tc.wantErr) {
				t.Errorf("%+v", ran)
			}
		})
	}
}

// TestStencilctlProcessesAsTheCluster compares what a template makes here, of the cluster's copy and of a file, with what the cluster returns.
func TestStencilctlProcessesAsTheCluster(t *testing.T) {
	space := shop(t)
	user := harness.User(t, stencil.Plane, "paul", gen.Role(space, "stencil-template-process"), gen.Role(space, "edit"), gen.UsesTemplates(space))
	reader := harness.User(t, stencil.Plane, "rita", gen.Role(space, "stencil-template-process"), gen.Role(space, "view"))
	file := filepath.Join(t.TempDir(), "box.yaml")
	if err := os.WriteFile(file, []byte(mustKubectl(t, "", "get", "vmt", "box", "--namespace="+space, "-o", "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	const values = " -p NAME=same -p CORES=2 -p PASSWORD=given-to-all"
	process := func(t *testing.T, as *controlplane.User, arguments string) stencilctl.Result {
		t.Helper()
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: as.Kubeconfig, Line: "process " + arguments + values}.Run(t.Context())
		if err != nil || ran.Code != 0 {
			t.Fatalf("%+v, %v", ran, err)
		}
		return ran
	}
	cluster := process(t, user, space+"/box")
	if !strings.Contains(cluster.Output, referenceKey+": "+space+"/box") || strings.Contains(cluster.Output, parameterKey+"PASSWORD") {
		t.Errorf("the cluster returns %s", cluster.Output)
	}
	for what, arguments := range map[string]string{"the cluster's copy": space + "/box --local", "a file": "-f " + file} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(cluster, process(t, user, arguments)); diff != "" {
				t.Errorf("(-cluster +here):\n%s", diff)
			}
		})
	}
	t.Run("by a user who may not use it", func(t *testing.T) {
		here := process(t, reader, space+"/box --local")
		if diff := cmp.Diff(process(t, reader, space+"/box").Output, here.Output); diff != "" || !strings.Contains(here.Problems, "you may not use "+space+"/box, which takes verb use on it") {
			t.Errorf("(-cluster +here):\n%s%s", diff, here.Problems)
		}
	})
	t.Run("created here", func(t *testing.T) {
		discard(t, space, "same")
		process(t, user, space+"/box --local --create -o name --target-namespace "+space)
		got := mustKubectl(t, "", "get", "vm", "same", "--namespace="+space, "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/template-ref} {.metadata.labels.vm\.kubevirt\.io/template}`)
		if got != space+"/box box" {
			t.Errorf("it refers to %q", got)
		}
	})
}

// TestStencilctlWorksWithTheRightsOfAVMOwner compares with kubectl, which needs neither of the verbs on subresources.
func TestStencilctlWorksWithTheRightsOfAVMOwner(t *testing.T) {
	space := shop(t)
	read := rbacv1.PolicyRule{APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplates"}, Verbs: []string{"get"}}
	owner := harness.User(t, stencil.Plane, "olga", gen.Role(space, "kubevirt.io:edit"), gen.UsesTemplates(space), gen.Permits(space, read))
	run := func(line string) stencilctl.Result {
		t.Helper()
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: owner.Kubeconfig, Line: line}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ran
	}
	processed := run("process " + space + "/box -n " + space + " -p NAME=owned")
	if processed.Code != 0 || !strings.Contains(processed.Output, referenceKey+": "+space+"/box") || !strings.Contains(processed.Problems, "so the template is read, and rendered here") {
		t.Errorf("process: %+v", processed)
	}
	discard(t, space, "owned")
	made := run("create " + space + "/box -n " + space + " -p NAME=owned -p PASSWORD=staple-staple")
	if made.Code != 0 || made.Output != "virtualmachine.kubevirt.io "+space+"/owned created\n" || !strings.Contains(made.Problems, "as a manifest that refers to the template") {
		t.Fatalf("create: %+v", made)
	}
	stored := mustKubectl(t, "", "get", "vm", "owned", "--namespace="+space, "-o", "yaml")
	if !strings.Contains(stored, referenceKey+": "+space+"/box") || strings.Contains(stored, parameterKey+"PASSWORD") {
		t.Errorf("stored:\n%s", stored)
	}
}

// The kubeconfig is read as by kubectl: its contexts have a user and a namespace.
func TestStencilctlTakesAContext(t *testing.T) {
	config := clientcmdapi.NewConfig()
	for _, user := range []*controlplane.User{ada, bob} {
		own, err := clientcmd.LoadFromFile(user.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config.Clusters["plane"] = own.Clusters[own.Contexts[own.CurrentContext].Cluster]
		config.AuthInfos[user.Name] = own.AuthInfos[user.Name]
		config.Contexts[user.Name] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: user.Name, Namespace: shop(t)}
	}
	config.CurrentContext = bob.Name
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]stencilctl.Result{
		"process box -p NAME=cli-1 -o name":                                  {Output: "virtualmachine.kubevirt.io/cli-1\n", Problems: "cli-1 has password "},
		"create box -p NAME=cli-1 --dry-run=server":                          {Code: 3, Problems: "cannot create resource"},
		"create box -p NAME=cli-1 --dry-run=server --context ada":            {Output: "virtualmachine.kubevirt.io " + shop(t) + "/cli-1 created (server dry run)\n", Problems: "cli-1 has password "},
		"create box -p NAME=cli-1 --dry-run=server --context ada -n default": {Code: 3, Problems: `in the namespace "default"`},
		"process box --context nowhere":                                      {Code: 3, Problems: `context "nowhere" does not exist`},
	} {
		got, err := stencilctl.Command{Binary: binary, Kubeconfig: file, Line: line}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Code != want.Code || got.Output != want.Output || !strings.Contains(got.Problems, want.Problems) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// Under the name kubectl-stencil on the PATH it is a plugin.
func TestThePluginOfKubectl(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(folder, "kubectl-stencil")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	out := kubectl(t, bob, "", "stencil", "process", shop(t)+"/box", "-p", "NAME=cli-1", "-o", "name")
	if out.Code != 0 || out.Stdout != "virtualmachine.kubevirt.io/cli-1\n" {
		t.Errorf("%+v", out)
	}
	if out := kubectl(t, bob, "", "stencil", "process", "--nonsense"); out.Code == 0 || !strings.Contains(out.Stderr, "kubectl stencil: unknown flag: --nonsense") {
		t.Errorf("%+v", out)
	}
}
