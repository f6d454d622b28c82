package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// client returns a client of a server that answers each request, by path and query,
// with a status and a body.
func client(t *testing.T, answers map[string]string, arguments ...string) *Client {
	t.Helper()
	return clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, found := answers[r.URL.RequestURI()]
		if !found {
			body = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}`
		}
		var status struct {
			Kind string
			Code int
		}
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if status.Kind == "Status" {
			w.WriteHeader(status.Code)
		}
		fmt.Fprint(w, body)
	}, arguments...)
}

// clientOf returns a client of a server.
func clientOf(t *testing.T, handler http.HandlerFunc, arguments ...string) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var flags Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.RegisterForAll(set)
	if err := set.Parse(append([]string{"--server", server.URL}, arguments...)); err != nil {
		t.Fatal(err)
	}
	c, err := flags.Client(t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestListGoesOnWhenItHasBecomeTooOld(t *testing.T) {
	const path = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines?"
	c := client(t, map[string]string{
		path + "labelSelector=a%3Db&limit=250":                `{"metadata": {"continue": "one"}, "items": [{"n": 1}, {"n": 9007199254740993}]}`,
		path + "continue=one&labelSelector=a%3Db&limit=250":   `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "metadata": {"continue": "again"}}`,
		path + "continue=again&labelSelector=a%3Db&limit=250": `{"metadata": {}, "items": [{"n": 3}]}`,
	}, "-n", "shop")
	var got []any
	err := c.List(t.Context(), VirtualMachines, "a=b", func(object map[string]any) error {
		got = append(got, object["n"])
		return nil
	})
	if diff := cmp.Diff([]any{json.Number("1"), json.Number("9007199254740993"), json.Number("3")}, got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s\nerror: %v", diff, err)
	}
}

func TestListOfWhatIsNotServed(t *testing.T) {
	err := client(t, nil, "-A").List(t.Context(), VirtualMachines, "", nil)
	if cli.ExitCode(err) != cli.ExitCluster || err.Error() != "the cluster does not serve virtualmachines.kubevirt.io" {
		t.Errorf("error %v with exit code %d", err, cli.ExitCode(err))
	}
}

func TestResolve(t *testing.T) {
	const revision = `{"metadata": {"labels": {"instancetype.kubevirt.io/object-name": "u1"}}, "data": {"kind": "VirtualMachineClusterInstancetype", "metadata": {"name": "u1", "uid": "7"}, "spec": {"cpu": {"guest": 1}}}}`
	answers := map[string]string{
		"/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes/u1":          `{"metadata": {"name": "u1", "labels": {"class": "general"}, "managedFields": []}, "spec": {"cpu": {"guest": 2}}}`,
		"/apis/instancetype.kubevirt.io/v1beta1/namespaces/shop/virtualmachineinstancetypes/u1": `{"metadata": {"name": "u1", "namespace": "shop"}, "spec": {"cpu": {"guest": 3}}}`,
		"/apis/apps/v1/namespaces/shop/controllerrevisions/u1-old":                              revision,
		"/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterpreferences/secret":        `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}`,
	}
	for name, tc := range map[string]struct {
		reference sizing.Reference
		guest     string
		fails     string
	}{
		"an object of the cluster":         {reference: sizing.Reference{Kind: sizing.KindClusterInstancetype, Name: "u1"}, guest: "2"},
		"an object of the namespace":       {reference: sizing.Reference{Kind: sizing.KindInstancetype, Name: "u1"}, guest: "3"},
		"a revision":                       {reference: sizing.Reference{Kind: sizing.KindClusterInstancetype, Name: "u1", Revision: "u1-old"}, guest: "1"},
		"a revision that the status names": {reference: sizing.Reference{Kind: sizing.KindInstancetype, Name: "u1", Revision: "u1-old", Loose: true}, guest: "1"},
		"a revision of another object":     {reference: sizing.Reference{Kind: sizing.KindClusterInstancetype, Name: "u2", Revision: "u1-old", Loose: true}, fails: "it does not exist"},
		"a revision that is gone":          {reference: sizing.Reference{Kind: sizing.KindClusterInstancetype, Name: "u1", Revision: "none"}, fails: "ControllerRevision none does not exist"},
		"an object that is gone":           {reference: sizing.Reference{Kind: sizing.KindPreference, Name: "none"}, fails: "it does not exist"},
		"an object that may not be read":   {reference: sizing.Reference{Kind: sizing.KindClusterPreference, Name: "secret"}, fails: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewContext(client(t, answers))
			tc.reference.Namespace = "shop"
			for range 2 { // the second time from the cache
				object, err := s.Resolve(t.Context(), tc.reference)
				if tc.fails != "" {
					if err == nil || err.Error() != tc.fails {
						t.Errorf("error %v, want %q", err, tc.fails)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				spec, _ := object["spec"].(map[string]any)
				if diff := cmp.Diff(map[string]any{"cpu": map[string]any{"guest": json.Number(tc.guest)}}, spec); diff != "" {
					t.Errorf("spec (-want +got):\n%s", diff)
				}
				metadata, _ := object["metadata"].(map[string]any)
				if metadata["uid"] != nil || metadata["managedFields"] != nil || metadata["labels"] == nil {
					t.Errorf("metadata %v", metadata)
				}
			}
		})
	}
}

// TestADryRunOfADeletionIsInItsBody is what keeps the object: the API server ignores the query of a DELETE that has a body.
func TestADryRunOfADeletionIsInItsBody(t *testing.T) {
	var got string
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{}`)
	})
	for dry, want := range map[bool]string{
		true:  `DELETE /apis/kubevirt.io/v1/namespaces/shop/virtualmachines/web {"dryRun":["All"]}`,
		false: `DELETE /apis/kubevirt.io/v1/namespaces/shop/virtualmachines/web {}`,
	} {
		if err := c.Delete(t.Context(), VirtualMachines, "shop", "web", Written{DryRun: dry}); err != nil || got != want {
			t.Errorf("dry run %t: %s, %v, want %s", dry, got, err, want)
		}
	}
}
