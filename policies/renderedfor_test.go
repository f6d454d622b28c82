package policies_test

import (
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/vmstencil/stencil/internal/powers"
)

// TestUsersWriteTheirOwnNameOnly compares the policy with what the render webhook writes, for names that look like several.
func TestUsersWriteTheirOwnNameOnly(t *testing.T) {
	const (
		server = "system:serviceaccount:stencil-system:stencil-apiserver"
		denied = "annotation template.kubevirt.io/rendered-for names the user for whom Stencil has rendered the VirtualMachine, and is written for the user of the request only: leave it out of a new VirtualMachine, and as it is in a stored one"
	)
	policy := evaluateMatched(t, "rendered-for", map[string]string{"apiserverUser": "'" + server + "'"})
	kind := &kindOf{schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}, "virtualmachines"}
	grant := func(name string, groups ...string) string {
		return powers.Grant{Template: "u", Sources: "s", User: authenticationv1.UserInfo{Username: name, Groups: groups}}.String()
	}
	vm := func(text string) string {
		if text == "" {
			return "{metadata: {name: a}}"
		}
		return fmt.Sprintf("{metadata: {name: a, annotations: {template.kubevirt.io/rendered-for: %q}}}", text)
	}
	ada := grant("ada", "a team", "b")
	for name, tc := range map[string]struct {
		by            user.DefaultInfo
		before, after string
		unmatched     bool
		want          string
	}{
		"their own":                       {by: user.DefaultInfo{Name: "ada", Groups: []string{"a team", "b"}}, after: ada},
		"their own, without groups":       {by: user.DefaultInfo{Name: "ada"}, after: grant("ada")},
		"their own, with percent signs":   {by: user.DefaultInfo{Name: "a%20b", Groups: []string{"%"}}, after: grant("a%20b", "%")},
		"that of another user":            {by: user.DefaultInfo{Name: "eve", Groups: []string{"b"}}, after: ada, want: denied},
		"their own with another group":    {by: user.DefaultInfo{Name: "ada", Groups: []string{"a team"}}, after: ada, want: denied},
		"with fewer groups":               {by: user.DefaultInfo{Name: "ada", Groups: []string{"a team", "b", "c"}}, after: ada, want: denied},
		"a name that contains a group":    {by: user.DefaultInfo{Name: "ada admins"}, after: grant("ada", "admins"), want: denied},
		"not in the form of the webhook":  {by: user.DefaultInfo{Name: "ada"}, after: "ada", want: denied},
		"a stored one by a later request": {by: user.DefaultInfo{Name: "ada", Groups: []string{"a team", "b"}}, before: grant("eve"), after: ada},
		"of another user in a stored VM":  {by: user.DefaultInfo{Name: "eve"}, before: grant("eve"), after: ada, want: denied},
		"added to a stored VM":            {by: user.DefaultInfo{Name: "system:serviceaccount:kubevirt:kubevirt-controller"}, before: "-", after: ada, want: denied},
		"one that stays":                  {by: user.DefaultInfo{Name: "eve"}, before: ada, after: ada, unmatched: true},
		"one that is removed":             {by: user.DefaultInfo{Name: "eve"}, before: ada, unmatched: true},
		"none":                            {by: user.DefaultInfo{Name: "eve"}, unmatched: true},
		"by KubeVirt, of the original":    {by: user.DefaultInfo{Name: "system:serviceaccount:kubevirt:kubevirt-controller"}, after: ada, want: denied},
		"by the server, of its own":       {by: user.DefaultInfo{Name: server}, after: grant(server), want: denied},
		"by the server, of the user":      {by: user.DefaultInfo{Name: server, Extra: map[string][]string{"delegation.template.kubevirt.io/user": {"ada"}, "delegation.template.kubevirt.io/group": {"a team", "b"}}}, after: ada},
		"by the server, of another user":  {by: user.DefaultInfo{Name: server, Extra: map[string][]string{"delegation.template.kubevirt.io/user": {"eve"}, "delegation.template.kubevirt.io/group": {"a team", "b"}}}, after: ada, want: denied},
		"by who sends the server's extra": {by: user.DefaultInfo{Name: "eve", Extra: map[string][]string{"delegation.template.kubevirt.io/user": {"ada"}, "delegation.template.kubevirt.io/group": {"a team", "b"}}}, after: ada, want: denied},
	} {
		t.Run(name, func(t *testing.T) {
			w := written{after: vm(tc.after), as: tc.by.Name}
			if tc.before == "-" {
				w.before = vm("")
			} else if tc.before != "" {
				w.before = vm(tc.before)
			}
			r := w.request(t, kind, kind.resource)
			r.user = &tc.by
			if got := policy.conditions.holds(t, r); got == tc.unmatched {
				t.Errorf("its conditions match: %v", got)
			}
			if tc.unmatched {
				return
			}
			if got, _ := policy.policy.decide(t, r); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestUsersWriteTheirOwnNameInTemplates compares the policy with what the webhook writers writes.
func TestUsersWriteTheirOwnNameInTemplates(t *testing.T) {
	const denied = "annotation template.kubevirt.io/written-by names the user who wrote the specification, and is written for the user of the request only: leave it out of a new object, and as it is in a stored one"
	policy := evaluateMatched(t, "rendered-for", nil)
	ada := powers.WrittenBy(authenticationv1.UserInfo{Username: "ada", Groups: []string{"a team", "b"}}, 1)
	object := func(key, text string) string {
		return fmt.Sprintf("{metadata: {name: a, annotations: {template.kubevirt.io/%s: %q}}}", key, text)
	}
	for resource, kind := range map[string]string{"virtualmachinetemplates": "VirtualMachineTemplate", "virtualmachinetemplaterequests": "VirtualMachineTemplateRequest", "virtualmachinetemplateimports": "VirtualMachineTemplateImport", "virtualmachinetemplateexports": "VirtualMachineTemplateExport"} {
		kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: kind}, resource}
		for name, tc := range map[string]struct {
			by            user.DefaultInfo
			before, after string
			want          string
		}{
			"their own":                       {by: user.DefaultInfo{Name: "ada", Groups: []string{"a team", "b"}}, after: object("written-by", ada)},
			"that of another user":            {by: user.DefaultInfo{Name: "eve", Groups: []string{"b"}}, after: object("written-by", ada), want: denied},
			"with fewer groups":               {by: user.DefaultInfo{Name: "ada", Groups: []string{"a team", "b", "c"}}, after: object("written-by", ada), want: denied},
			"without a generation":            {by: user.DefaultInfo{Name: "ada"}, after: object("written-by", "ada"), want: denied},
			"another generation of another":   {by: user.DefaultInfo{Name: "eve"}, before: object("written-by", ada), after: object("written-by", "2"+ada[1:]), want: denied},
			"a stored one by a later request": {by: user.DefaultInfo{Name: "eve"}, before: object("written-by", ada), after: object("written-by", "2 eve")},
			"beside the other annotation":     {by: user.DefaultInfo{Name: "eve"}, before: object("rendered-for", "u s ada"), after: "{metadata: {name: a, annotations: {template.kubevirt.io/rendered-for: u s ada, template.kubevirt.io/written-by: 1 ada}}}", want: denied},
		} {
			t.Run(resource+", "+name, func(t *testing.T) {
				r := written{before: tc.before, after: tc.after, as: tc.by.Name}.request(t, kind, kind.resource)
				r.user = &tc.by
				if !policy.conditions.holds(t, r) {
					t.Error("its conditions do not match")
				}
				if got, _ := policy.policy.decide(t, r); got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
			})
		}
	}
}
