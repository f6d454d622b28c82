package chart

import (
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// Kubernetes' own roles take the chart's up by aggregation, which is the controller manager's work and takes a moment.
func TestRightsOfPeople(t *testing.T) {
	plane := installed(t, install.Options{})
	own, other := namespace(t, plane), namespace(t, plane)

	const templates, requests = "virtualmachinetemplates", "virtualmachinetemplaterequests"
	cases := map[string]struct {
		role string
		may  map[string][]string
		not  map[string][]string
	}{
		"an admin of a namespace": {
			role: "admin",
			may: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
			},
			not: map[string][]string{requests: {"use"}},
		},
		"an editor of a namespace": {
			role: "edit",
			may: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
			},
			not: map[string][]string{requests: {"use"}},
		},
		"a viewer of a namespace reads and does not use": {
			role: "view",
			may:  map[string][]string{templates: {"get", "list", "watch"}, requests: {"get", "list", "watch"}},
			not: map[string][]string{
				templates: {"create", "update", "patch", "delete", "deletecollection", "use"},
				requests:  {"create", "update", "patch", "delete", "deletecollection", "use"},
			},
		},
		"a template user uses and does not read": {
			role: "stencil-template-user",
			may:  map[string][]string{templates: {"use"}},
			not: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			user, err := plane.User("person-" + tc.role)
			if err != nil {
				t.Fatal(err)
			}
			if err := plane.Bind(t.Context(), user, own, tc.role); err != nil {
				t.Fatal(err)
			}
			allowed := func(verb, resource, namespace string) bool {
				return may(t.Context(), t, plane, user, verb, "template.kubevirt.io", resource, namespace, "fedora")
			}
			for resource, verbs := range tc.may {
				for _, verb := range verbs {
					eventually(t, func() string {
						if !allowed(verb, resource, own) {
							return "may not " + verb + " " + resource
						}
						return ""
					})
					if allowed(verb, resource, other) {
						t.Errorf("may %s %s in a namespace of others", verb, resource)
					}
				}
			}
			for resource, verbs := range tc.not {
				for _, verb := range verbs {
					if allowed(verb, resource, own) {
						t.Errorf("may %s %s", verb, resource)
					}
				}
			}
		})
	}
}
