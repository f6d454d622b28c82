package main

import (
	"fmt"
	"strings"
	"testing"
)

// lacking is the API server's response to a user without the permission for a subresource, or for a resource of another group.
func lacking(verb, resource, group, namespace string) string {
	kind, name := resource, `\"web\" `
	if resource == "virtualmachines" {
		name = ""
	}
	kind, _, _ = strings.Cut(kind, "/")
	return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "details": {"name": "web", "group": %q, "kind": %q},
		"message": "%[2]s.%[1]s %[3]sis forbidden: User \"ada\" cannot %[4]s resource \"%[5]s\" in API group %[6]s in the namespace \"%[7]s\""}`,
		group, kind, name, verb, resource, `\"`+group+`\"`, namespace)
}

// The response of stencil-apiserver to a user who may create in the namespace of the template only.
const lackingTarget = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
	"message": "virtualmachinetemplates.template.kubevirt.io \"web\" is forbidden: user \"ada\" may not create VirtualMachines from templates in namespace \"shop\"",
	"details": {"name": "web", "group": "template.kubevirt.io", "kind": "virtualmachinetemplates",
	"causes": [{"field": "targetNamespace", "message": "the permission to create there is missing"}]}}`

// TestVMOwnersNeedNoVerbOnSubresources lets users create and process with the permissions that kubectl requires of them.
func TestVMOwnersNeedNoVerbOnSubresources(t *testing.T) {
	t.Chdir("testdata")
	const subresourceGroup = "subresources.template.kubevirt.io"
	var (
		mayNotProcess = lacking("create", "virtualmachinetemplates/process", subresourceGroup, "golden")
		mayNotCreate  = lacking("create", "virtualmachinetemplates/create", subresourceGroup, "golden")
		mayNotGet     = lacking("get", "virtualmachinetemplates", "template.kubevirt.io", "golden")
		mayNotWrite   = lacking("create", "virtualmachines", "kubevirt.io", "shop")
		notApproved   = respondWithError(403, "Forbidden", `admission webhook "render.template.kubevirt.io" denied the request: not approved`, "spec: not approved")
	)
	const stored = `{"metadata": {"namespace": "shop", "name": "web-1"}}`
	for name, tc := range map[string]struct {
		line    string
		answers map[string][]string
	}{
		"process without the verb": {line: "process golden/web -n shop -p NAME=web-1 -p TOKEN=t0ken", answers: map[string][]string{
			"POST " + rendered: {mayNotProcess}, "GET " + templateAt: {"FILE templates/web.yaml"}, "POST " + reviewsAt: {may},
		}},
		"process without both verbs": {line: "process golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + rendered: {mayNotProcess}, "GET " + templateAt: {mayNotGet},
		}},
		"process without the verb and a template": {line: "process golden/web -n shop -p NAME=web-1", answers: map[string][]string{"POST " + rendered: {mayNotProcess}}},
		"process without the verb from a server that fails": {line: "process golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + rendered: {mayNotProcess}, "GET " + templateAt: {respondWithError(400, "BadRequest", "etcd is away")},
		}},
		"process denied by something else": {line: "process golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + rendered: {respondWithError(403, "Forbidden", "the quota of calls is used up")}, "GET " + templateAt: {"FILE templates/web.yaml"},
		}},
		"process with the verb to create only, dry run": {line: "create golden/web -n shop -p NAME=web-1 -p TOKEN=t0ken --dry-run=client", answers: map[string][]string{
			"POST " + rendered: {mayNotProcess}, "GET " + templateAt: {"FILE templates/web.yaml"}, "POST " + reviewsAt: {may},
		}},
		"explained without the verb": {line: "process golden/web -n shop -p NAME=web-1 --explain", answers: map[string][]string{
			"POST " + rendered: {mayNotProcess}, "POST " + vmAt: {stored},
		}},
		"explained without the verb, denied": {line: "process golden/web -n shop -p NAME=web-1 --explain -o json", answers: map[string][]string{
			"POST " + rendered: {mayNotProcess}, "POST " + vmAt: {notApproved}, "POST " + reviewsAt: {may},
		}},
		"create without the verb": {line: "create golden/web -n shop -p NAME=web-1 -p PASSWORD=staple", answers: map[string][]string{
			"POST " + created: {mayNotCreate}, "POST " + vmAt: {stored},
		}},
		"create without the verb in the other namespace": {line: "create golden/web -n shop --dry-run=server -o name", answers: map[string][]string{
			"POST " + created: {lackingTarget}, "POST " + vmAt: {stored},
		}},
		"create without the verb, by process": {line: "process golden/web -n shop -p NAME=web-1 --create -o name", answers: map[string][]string{
			"POST " + created: {mayNotCreate}, "POST " + vmAt: {stored},
		}},
		"create without the verb, denied": {line: "create golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + created: {mayNotCreate}, "POST " + vmAt: {notApproved}, "POST " + reviewsAt: {may},
		}},
		"create without any verb": {line: "create golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + created: {mayNotCreate}, "POST " + vmAt: {mayNotWrite}, "POST " + reviewsAt: {mayNot},
		}},
		"create without the verb to use it": {line: "create golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + created: {mayNotCreate},
			"POST " + vmAt:    {respondWithError(404, "NotFound", "template golden/web: it does not exist or user \"ada\" may not use it")}, "POST " + reviewsAt: {may, mayNot},
		}},
		"create without the verb, there already": {line: "create golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + created: {mayNotCreate}, "POST " + vmAt: {respondWithError(409, "AlreadyExists", "there is one")},
		}},
		"create denied by an approval": {line: "create golden/web -n shop -p NAME=web-1", answers: map[string][]string{
			"POST " + created: {notApproved}, "POST " + vmAt: {stored},
		}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, name, runInCluster(t, tc.line, tc.answers)) })
	}
}
