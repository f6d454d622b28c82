package apiserver_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// forged is a VirtualMachine that a user with all permissions on VirtualMachines of its namespace creates.
const forged = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"forged","annotations":{ANNOTATIONS}},
	"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}}}}}}`

func post(t *testing.T, as *controlplane.User, header http.Header, annotations string) answer {
	t.Helper()
	return posting(t, as, header, annotations).do(t)
}

func posting(t *testing.T, as *controlplane.User, header http.Header, annotations string) request {
	t.Helper()
	return request{as: as, path: "/apis/kubevirt.io/v1/namespaces/" + shop(t) + "/virtualmachines", contentType: "application/json", header: header, body: strings.Replace(forged, "ANNOTATIONS", annotations, 1)}
}

func TestNobodyElseSaysForWhomAMachineIs(t *testing.T) {
	const createdBy = `"template.kubevirt.io/created-by":"ada"`
	fromCrate := `"template.kubevirt.io/template-ref":"` + shop(t) + `/crate"`

	t.Run("not on a machine without a template", func(t *testing.T) {
		got := post(t, dora, nil, createdBy)
		if got.code < 400 || !strings.Contains(got.body, "created-by is written by Stencil alone") {
			t.Errorf("%d %s", got.code, got.body)
		}
	})
	t.Run("on a machine from a template it is discarded, and so are values", func(t *testing.T) {
		got := post(t, dora, nil, fromCrate+","+createdBy+`,"delegation.template.kubevirt.io/bound-values":"{\"digest\":\"sha256:0\",\"values\":{}}"`)
		if got.code != http.StatusCreated || strings.Contains(got.body, "created-by") || strings.Contains(got.body, "bound-values") {
			t.Errorf("%d %s", got.code, got.body)
		}
	})
	t.Run("not on a stored machine", func(t *testing.T) {
		out := kubectl(t, dora, "", "annotate", "virtualmachine", "forged", "--namespace="+shop(t), "template.kubevirt.io/created-by=ada")
		if stored := mustKubectl(t, "", "get", "virtualmachine", "forged", "--namespace="+shop(t), "-o", "json"); strings.Contains(stored, "created-by") {
			t.Errorf("%s%s", out.Stdout, out.Stderr)
		}
	})
	t.Run("nor is it changed or removed", func(t *testing.T) {
		decode(t, creation(t, ada, "box", "parameters: {NAME: web-7}").do(t))
		for _, change := range []string{"template.kubevirt.io/created-by=dora", "template.kubevirt.io/created-by-"} {
			out := kubectl(t, dora, "", "annotate", "virtualmachine", "web-7", "--namespace="+shop(t), "--overwrite", change)
			if by := mustKubectl(t, "", "get", "virtualmachine", "web-7", "--namespace="+shop(t), "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/created-by}`); by != "ada" {
				t.Errorf("%s made it %q: %s%s", change, by, out.Stdout, out.Stderr)
			}
		}
	})
}

func TestNobodyElseSpeaksForTheServer(t *testing.T) {
	server, err := stencil.Options().APIServerUser(stencil.Plane)
	if err != nil {
		t.Fatal(err)
	}
	as := func(values ...string) http.Header {
		header := http.Header{"Impersonate-User": {server.Name}}
		for i := 0; i < len(values); i += 2 {
			header.Add("Impersonate-Extra-delegation.template.kubevirt.io%2F"+values[i], values[i+1])
		}
		return header
	}
	fromCrate := `"template.kubevirt.io/template-ref":"` + shop(t) + `/crate"`

	t.Run("a person may not impersonate it", func(t *testing.T) {
		if got := post(t, dora, as("user", "ada"), fromCrate); got.code != http.StatusForbidden || !strings.Contains(got.body, "impersonate") {
			t.Errorf("%d %s", got.code, got.body)
		}
	})
	t.Run("a service account of the same name elsewhere is not it", func(t *testing.T) {
		other := harness.User(t, stencil.Plane, "system:serviceaccount:"+shop(t)+":stencil-apiserver",
			gen.Group("system:serviceaccounts", "system:serviceaccounts:"+shop(t)), gen.Role(shop(t), "kubevirt.io:edit"))
		if got := post(t, other, nil, `"template.kubevirt.io/created-by":"ada"`); got.code < 400 || !strings.Contains(got.body, "written by Stencil alone") {
			t.Errorf("%d %s", got.code, got.body)
		}
	})
	// A client with the server's token.
	for _, tc := range []struct {
		name, annotations, query string
		// bare is without spec, as the server sends it.
		bare   bool
		header http.Header
		// code is 403 if zero.
		code int
		want string
	}{
		{name: "the server creates nothing of its own making", header: as("user", "ada"), want: "creates VirtualMachines from templates only"},
		{name: "nor with the annotation", header: as("user", "ada"), annotations: `"template.kubevirt.io/created-by":"ada"`, want: "creates VirtualMachines from templates only"},
		{name: "nor beside a template", header: as("user", "ada"), annotations: fromCrate, code: http.StatusUnprocessableEntity, want: "spec: Forbidden: the API server for templates sends no spec, the template makes it"},
		{name: "nor in a dry run", header: as("user", "ada"), annotations: fromCrate, query: "?dryRun=All", code: http.StatusUnprocessableEntity, want: "spec: Forbidden: the API server for templates sends no spec"},
		{name: "nothing for KubeVirt's controller", header: as("user", "system:serviceaccount:kubevirt:kubevirt-controller"), annotations: fromCrate, bare: true,
			want: `creates no VirtualMachines for user \"system:serviceaccount:kubevirt:kubevirt-controller\", who is exempt from TemplateApprovals`},
		{name: "nothing for another service account of KubeVirt's namespace", header: as("user", "system:serviceaccount:kubevirt:x", "group", "system:serviceaccounts:kubevirt"), annotations: fromCrate, bare: true,
			want: `creates no VirtualMachines for members of group \"system:serviceaccounts:kubevirt\"`},
		{name: "nothing for nobody", annotations: fromCrate, want: "on behalf of a user only"},
		{name: "nothing for two", annotations: fromCrate, header: as("user", "ada", "user", "dora"), want: "on behalf of a user only"},
		{name: "it is nobody but itself", annotations: fromCrate, header: http.Header{"Impersonate-User": {"ada"}}, want: "impersonate"},
		{name: "it is in no group of its choice", annotations: fromCrate, header: http.Header{"Impersonate-User": {server.Name}, "Impersonate-Group": {"system:masters"}}, want: "impersonate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sent := posting(t, server, tc.header, tc.annotations)
			sent.path += tc.query
			if tc.bare {
				before, _, _ := strings.Cut(sent.body, ",\n\t\"spec\"")
				sent.body = before + "}"
			}
			if got := sent.do(t); got.code != cmp.Or(tc.code, http.StatusForbidden) || !strings.Contains(got.body, tc.want) {
				t.Errorf("%d, want %s: %s", got.code, tc.want, got.body)
			}
		})
	}
	t.Run("a member of system:masters creates as everybody", func(t *testing.T) {
		sent := creation(t, nil, "crate", "")
		sent.path += "?dryRun=All"
		if got := sent.do(t); got.code != http.StatusOK && got.code != http.StatusCreated {
			t.Errorf("%d %s", got.code, got.body)
		}
	})
	t.Run("it reads and changes no machine", func(t *testing.T) {
		for _, verb := range []string{"get", "list", "update", "patch", "delete"} {
			if out := kubectl(t, server, "", "auth", "can-i", verb, "virtualmachines.kubevirt.io", "--namespace="+shop(t)); out.Code == 0 {
				t.Errorf("it may %s VirtualMachines", verb)
			}
		}
	})
}

// The server authenticates requests with kube-apiserver, and trusts the headers of no client but the front proxy.
func TestWhoComesPastTheAggregatorIsNobody(t *testing.T) {
	got := request{host: stencil.APIServerURL(), path: subresource(t, "v1beta1", "box", "create"), body: "parameters: {NAME: web-8}",
		header: http.Header{"X-Remote-User": {"ada"}, "X-Remote-Group": {"system:masters"}}}.do(t)
	if got.code != http.StatusForbidden || !strings.Contains(got.body, "system:anonymous") {
		t.Errorf("%d %s", got.code, got.body)
	}
}
