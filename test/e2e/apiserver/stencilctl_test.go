package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vmstencil/stencil/test/controlplane"
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
		{"process", bob, "process " + space + "/box -p NAME=cli-1 -p NUMBER=1.10 -o name", 0, "virtualmachine.kubevirt.io/cli-1\n", "cli-1 has password "},
		{"an unused parameter", bob, "process " + space + "/box -p NAME=cli-1 -p UNUSED=x -o name", 0, "virtualmachine.kubevirt.io/cli-1\n", "UNUSED"},
		{"bad values", bob, "process " + space + "/box -p CORES=9 -p NAMME=a", 3, "", "parameters[CORES]: "},
		{"a template that is not there", ada, "process " + space + "/none", 3, "", "not found"},
		{"may not be read", bob, "process " + space + "/box --local", 3, "", "cannot get resource \"virtualmachinetemplates\""},
		{"may not create", bob, "create " + space + "/box -p NAME=cli-2", 3, "", "cannot create resource \"virtualmachinetemplates/create\""},
		{"a rehearsal", ada, "create " + space + "/box -p NAME=cli-2 --dry-run=server", 0, "virtualmachine.kubevirt.io/cli-2 created (server dry run)\n", "cli-2 has password "},
		{"create", ada, "create " + space + "/box -p NAME=cli-2", 0, "virtualmachine.kubevirt.io/cli-2 created\n", "cli-2 has password "},
		{"once more", ada, "process " + space + "/box -p NAME=cli-2 --create", 3, "", "already exists"},
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
		"create box -p NAME=cli-1 --dry-run=server --context ada":            {Output: "virtualmachine.kubevirt.io/cli-1 created (server dry run)\n", Problems: "cli-1 has password "},
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
