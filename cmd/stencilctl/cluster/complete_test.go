package cluster

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestCompletion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names, found := map[string][]string{
			"/api/v1/namespaces": {"golden", "gold-old", "shop"},
			"/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplates":   {"fedora", "fedora-next", "ubuntu"},
			"/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates": {"fedora"},
		}[r.URL.Path]
		if !found {
			http.Error(w, `{"kind": "Status", "code": 403}`, http.StatusForbidden)
			return
		}
		if !strings.HasPrefix(r.Header.Get("Accept"), "application/json;as=PartialObjectMetadataList") {
			t.Errorf("whole objects are asked for: %v", r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": [{"metadata": {"name": "`+strings.Join(names, `"}}, {"metadata": {"name": "`)+`"}}]}`)
	}))
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, tc := range []struct {
		name, line, want string
	}{
		{"templates of the namespace", "one fed", "fedora fedora-next :4"},
		{"all of them", "one ", "fedora fedora-next ubuntu :4"},
		{"of another namespace", "one golden/f", "golden/fedora :4"},
		{"no second one", "one fedora ", ":4"},
		{"many", "many fedora u", "ubuntu :4"},
		{"a reference begins with a namespace", "one --template go", "golden/ gold-old/ :6"},
		{"and goes on with a name", "one --template golden/", "golden/fedora :4"},
		{"a namespace", "one -n g", "golden gold-old :4"},
		{"another flag that is one", "one --target-namespace s", "shop :4"},
		{"what may not be listed", "one secret/x", ":4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := &cobra.Command{Use: "root"}
			for _, use := range []string{"one", "many"} {
				var f Flags
				command := &cobra.Command{Use: use, Run: func(*cobra.Command, []string) {}}
				command.Flags().String("target-namespace", "", "")
				command.Flags().String("template", "", "")
				f.Register(command.Flags())
				command.ValidArgsFunction = f.CompleteNames(VirtualMachineTemplate, use == "many")
				if err := command.RegisterFlagCompletionFunc("template", f.CompleteReferences(VirtualMachineTemplate)); err != nil {
					t.Fatal(err)
				}
				f.CompleteNamespaces(command, "target-namespace", "missing")
				root.AddCommand(command)
			}
			words := strings.Split(tc.line, " ")
			arguments := append([]string{cobra.ShellCompNoDescRequestCmd, words[0], "--server", server.URL}, words[1:]...)
			if words[1] != "-n" {
				arguments = append(arguments[:4], append([]string{"-n", "shop"}, arguments[4:]...)...)
			}
			var out strings.Builder
			root.SetArgs(arguments)
			root.SetOut(&out)
			root.SetErr(io.Discard)
			if err := root.ExecuteContext(context.Background()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(strings.Fields(out.String()), " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
