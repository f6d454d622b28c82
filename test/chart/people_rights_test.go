package chart

import (
	"slices"
	"strconv"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// kube-controller-manager aggregates the chart's roles into Kubernetes' own, which takes a moment.
func TestRightsOfPeople(t *testing.T) {
	plane := installed(t, install.Options{})
	own, other := namespace(t, plane), namespace(t, plane)

	const templates, requests, source = "virtualmachinetemplates", "virtualmachinetemplaterequests", "virtualmachinetemplaterequests/source"
	const imports, exports = "virtualmachinetemplateimports", "virtualmachinetemplateexports"
	cases := map[string]struct {
		role string
		may  map[string][]string
		not  map[string][]string
	}{
		"an admin of a namespace": {
			role: "admin",
			may: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "export"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				imports:   {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				exports:   {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				source:    {"create"},
			},
			not: map[string][]string{requests: {"use"}},
		},
		"an editor of a namespace": {
			role: "edit",
			may: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "export"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				imports:   {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				exports:   {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				source:    {"create"},
			},
			not: map[string][]string{requests: {"use"}},
		},
		"a viewer of a namespace reads and does not use": {
			role: "view",
			may:  map[string][]string{templates: {"get", "list", "watch"}, requests: {"get", "list", "watch"}, imports: {"get", "list", "watch"}, exports: {"get", "list", "watch"}},
			not: map[string][]string{
				templates: {"create", "update", "patch", "delete", "deletecollection", "use", "export"},
				imports:   {"create", "update", "patch", "delete", "deletecollection"},
				exports:   {"create", "update", "patch", "delete", "deletecollection"},
				requests:  {"create", "update", "patch", "delete", "deletecollection", "use"},
				source:    {"create"},
			},
		},
		"a template user uses and does not read": {
			role: "stencil-template-user",
			may:  map[string][]string{templates: {"use"}},
			not: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "export"},
				exports:   {"create"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
				source:    {"create"},
			},
		},
		"somebody who may make templates elsewhere of the machines of a namespace": {
			role: "stencil-template-source",
			may:  map[string][]string{source: {"create"}},
			not: map[string][]string{
				templates: {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use"},
				requests:  {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			user := harness.User(t, plane, "person-"+tc.role)
			harness.Bind(t, plane, user, own, tc.role)
			allowed := func(verb, resource, namespace string) bool {
				return may(t.Context(), t, plane, user, verb, "template.kubevirt.io", resource, namespace, "fedora")
			}
			for resource, verbs := range tc.may {
				for _, verb := range verbs {
					eventually(t, "the person may "+verb+" "+resource, func() string {
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

// The permissions for the aggregated API are in another group than those for the templates.
func TestRightsOnSubresources(t *testing.T) {
	plane := installed(t, install.Options{APIServerAddress: "localhost:1", Values: map[string]any{"defaulting": map[string]any{"enabled": true}}})
	space := namespace(t, plane)
	const process, create, sent, defaults, available = "virtualmachinetemplates/process", "virtualmachinetemplates/create", "processedtemplates", "defaults", "availabletemplates"
	for role, tc := range map[string]struct{ may, not []string }{
		"admin":                       {may: []string{process, create, sent, defaults, available}},
		"edit":                        {may: []string{process, create, sent, defaults, available}},
		"view":                        {not: []string{process, create, sent, defaults, available}},
		"stencil-template-process":    {may: []string{process, sent}, not: []string{create, defaults, available}},
		"stencil-template-create":     {may: []string{create}, not: []string{process, sent, defaults, available}},
		"stencil-template-user":       {not: []string{process, create, sent, defaults, available}},
		"stencil-defaults":            {may: []string{defaults}, not: []string{process, create, sent, available}},
		"stencil-available-templates": {may: []string{available}, not: []string{process, create, sent, defaults}},
	} {
		t.Run(role, func(t *testing.T) {
			user := harness.User(t, plane, "caller-"+role)
			harness.Bind(t, plane, user, space, role)
			allowed := func(resource string) bool {
				verb := "create"
				if resource == available {
					verb = "list"
				}
				return may(t.Context(), t, plane, user, verb, "subresources.template.kubevirt.io", resource, space, "fedora")
			}
			for _, resource := range tc.may {
				eventually(t, "the user has permission for "+resource, func() string {
					if !allowed(resource) {
						return "has no permission for " + resource
					}
					return ""
				})
			}
			for _, resource := range tc.not {
				if allowed(resource) {
					t.Errorf("has permission for %s", resource)
				}
			}
		})
	}
}

// Approvals are cluster-scoped: a role counts for them only with a ClusterRoleBinding.
func TestRightsOnApprovals(t *testing.T) {
	plane := installed(t, install.Options{})
	space := namespace(t, plane)
	cases := map[string]decider{
		"an approver":                                 {role: "stencil-template-approver", may: everything},
		"an approver of one namespace is none":        {role: "stencil-template-approver", namespace: space, not: everything},
		"who views the cluster":                       {role: "view", may: reading, not: writing},
		"who views a namespace":                       {role: "view", namespace: space, not: everything},
		"who edits the cluster":                       {role: "edit", may: reading, not: writing},
		"who administrates the cluster's namespaces":  {role: "admin", may: reading, not: writing},
		"who administrates one namespace":             {role: "admin", namespace: space, not: everything},
		"who uses the templates of the whole cluster": {role: "stencil-template-user", not: everything},
		"who manages policies":                        {role: "stencil-policy-admin", not: everything},
	}
	runDeciders(t, plane, "templateapprovals", cases)
}

// So are policies.
func TestRightsOnPolicies(t *testing.T) {
	plane := installed(t, install.Options{})
	space := namespace(t, plane)
	runDeciders(t, plane, "virtualmachinepolicies", map[string]decider{
		"who manages policies":                        {role: "stencil-policy-admin", may: everything, not: []string{"except"}},
		"who excepts policies":                        {role: "stencil-policy-exception-admin", may: append([]string{"except"}, reading...), not: writing},
		"who manages them in one namespace does not":  {role: "stencil-policy-admin", namespace: space, not: everything},
		"who approves templates":                      {role: "stencil-template-approver", not: everything},
		"who views the cluster":                       {role: "view", may: reading, not: writing},
		"who edits the cluster":                       {role: "edit", may: reading, not: append([]string{"except"}, writing...)},
		"who administrates the cluster's namespaces":  {role: "admin", may: reading, not: append([]string{"except"}, writing...)},
		"who uses the templates of the whole cluster": {role: "stencil-template-user", not: everything},
	})
}

// Who names a source of policies decides about policies.
func TestRightsOnPolicySources(t *testing.T) {
	plane := installed(t, install.Options{})
	space := namespace(t, plane)
	runDeciders(t, plane, "virtualmachinepolicysources", map[string]decider{
		"who manages policies":                       {role: "stencil-policy-admin", may: everything},
		"who manages them in one namespace does not": {role: "stencil-policy-admin", namespace: space, not: everything},
		"who excepts policies":                       {role: "stencil-policy-exception-admin", not: everything},
		"who approves templates":                     {role: "stencil-template-approver", not: everything},
		"who views the cluster":                      {role: "view", may: reading, not: writing},
		"who edits the cluster":                      {role: "edit", may: reading, not: writing},
		"who administrates the cluster's namespaces": {role: "admin", may: reading, not: writing},
	})
}

// So are exceptions from policies, which policy writers do not grant.
func TestRightsOnExceptions(t *testing.T) {
	plane := installed(t, install.Options{})
	space := namespace(t, plane)
	runDeciders(t, plane, "policyexceptions", map[string]decider{
		"who grants exceptions":                       {role: "stencil-policy-exception-admin", may: everything},
		"who grants them in one namespace does not":   {role: "stencil-policy-exception-admin", namespace: space, not: everything},
		"who manages policies":                        {role: "stencil-policy-admin", not: everything},
		"who approves templates":                      {role: "stencil-template-approver", not: everything},
		"who views the cluster":                       {role: "view", may: reading, not: writing},
		"who views a namespace":                       {role: "view", namespace: space, not: everything},
		"who edits the cluster":                       {role: "edit", may: reading, not: writing},
		"who administrates the cluster's namespaces":  {role: "admin", may: reading, not: writing},
		"who administrates one namespace":             {role: "admin", namespace: space, not: everything},
		"who uses the templates of the whole cluster": {role: "stencil-template-user", not: everything},
	})
}

// The report of stored instance types has names of objects in all namespaces: only users who may list these read it.
func TestRightsOnRevisionMigrations(t *testing.T) {
	plane := installed(t, install.Options{})
	space := namespace(t, plane)
	runDeciders(t, plane, "revisionmigrations", map[string]decider{
		"who migrates stored instance types":            {role: "stencil-revision-migration-admin", may: everything},
		"who migrates them in one namespace does not":   {role: "stencil-revision-migration-admin", namespace: space, not: everything},
		"who manages policies":                          {role: "stencil-policy-admin", not: everything},
		"who approves templates":                        {role: "stencil-template-approver", not: everything},
		"who views the cluster":                         {role: "view", may: reading, not: writing},
		"who views a namespace":                         {role: "view", namespace: space, not: everything},
		"who edits the cluster":                         {role: "edit", may: reading, not: writing},
		"who administrates the cluster's namespaces":    {role: "admin", may: reading, not: writing},
		"who administrates one namespace":               {role: "admin", namespace: space, not: everything},
		"who uses the templates of the whole cluster":   {role: "stencil-template-user", not: everything},
		"who reads the report and nothing else does so": {role: "stencil-revision-migration-view", may: reading, not: writing},
	})
	// What the report names is no secret to a viewer of the cluster.
	viewer := harness.User(t, plane, "viewer-of-revisions")
	harness.Bind(t, plane, viewer, "", "view")
	eventually(t, "a viewer of the cluster may list the ControllerRevisions of a namespace", func() string {
		if !may(t.Context(), t, plane, viewer, "list", "apps", "controllerrevisions", space, "") {
			return "may not"
		}
		return ""
	})
}

// Verbs of cluster-scoped kinds that administrators decide by.
var (
	reading    = []string{"get", "list", "watch"}
	writing    = []string{"create", "update", "patch", "delete", "deletecollection"}
	everything = slices.Concat(writing, reading)
)

// decider is a user with a role, and the verbs that the user may and may not use on cluster-scoped objects.
type decider struct {
	role, namespace string
	may, not        []string
}

func runDeciders(t *testing.T, plane *controlplane.Plane, resource string, cases map[string]decider) {
	t.Helper()
	number := 0
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			number++
			user := harness.User(t, plane, "decider-of-"+resource+"-"+strconv.Itoa(number))
			harness.Bind(t, plane, user, tc.namespace, tc.role)
			for _, verb := range tc.may {
				eventually(t, "the person may "+verb+" "+resource, func() string {
					if !may(t.Context(), t, plane, user, verb, "stencil.kubevirt.io", resource, "", "a") {
						return "may not " + verb
					}
					return ""
				})
			}
			for _, verb := range tc.not {
				if may(t.Context(), t, plane, user, verb, "stencil.kubevirt.io", resource, "", "a") {
					t.Errorf("may %s", verb)
				}
			}
		})
	}
}
