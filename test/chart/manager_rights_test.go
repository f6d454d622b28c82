package chart

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/charts"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// rightsOf lists what a user may do in a namespace beyond the permissions of all users: "verb group/resource name", and "*" for any name. The API
// server's answer includes everything that RBAC grants, cluster-wide rules included.
func rightsOf(t *testing.T, user *controlplane.User, namespace string) []string {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := clientFor(t, user.Config()).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Incomplete {
		t.Fatalf("the API server does not know all rights of %s: %s", user.Name, answer.Status.EvaluationError)
	}
	rights := map[string]bool{}
	for _, rule := range answer.Status.ResourceRules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights[verb+" "+strings.TrimPrefix(group+"/"+resource, "/")+" "+name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(rights))
}

// rightsTo returns the rights to use verbs on resources, in the form of rightsOf. A key is a resource, and the name of an object unless any is meant.
func rightsTo(resources map[string]string) []string {
	var rights []string
	for resource, verbs := range resources {
		if !strings.Contains(resource, " ") {
			resource += " *"
		}
		for verb := range strings.FieldsSeq(verbs) {
			rights = append(rights, verb+" "+resource)
		}
	}
	slices.Sort(rights)
	return rights
}

// accountMay waits until an account of the release has the wanted rights by namespace, beyond those of every other account there, and no others.
func accountMay(t *testing.T, plane *controlplane.Plane, manager *controlplane.User, name string, want map[string][]string) {
	t.Helper()
	other := harness.User(t, plane, "system:serviceaccount:"+install.Namespace+":nobody", gen.Group(manager.Groups...))
	account := harness.User(t, plane, "system:serviceaccount:"+install.Namespace+":"+name, gen.Group(manager.Groups...))
	for namespace, rights := range want {
		eventually(t, "the account has the rights that are listed", func() string {
			common := rightsOf(t, other, namespace)
			got := slices.DeleteFunc(rightsOf(t, account, namespace), func(right string) bool { return slices.Contains(common, right) })
			if !slices.Equal(got, rights) {
				return "in namespace " + namespace + " it may\n" + strings.Join(got, "\n") + "\nwant\n" + strings.Join(rights, "\n")
			}
			return ""
		})
	}
}

//suite:long
func TestTheManagerMayDoWhatIsListedAndNothingElse(t *testing.T) {
	everywhere := rightsTo(map[string]string{
		"apiextensions.k8s.io/customresourcedefinitions kubevirts.kubevirt.io":                                "get",
		"apiextensions.k8s.io/customresourcedefinitions virtualmachinetemplaterequests.template.kubevirt.io":  "get",
		"apiextensions.k8s.io/customresourcedefinitions virtualmachinetemplates.template.kubevirt.io":         "get",
		"apiextensions.k8s.io/customresourcedefinitions virtualmachineinstancetypes.instancetype.kubevirt.io": "list watch",
		"apiextensions.k8s.io/customresourcedefinitions virtualmachinepreferences.instancetype.kubevirt.io":   "list watch",
		"apiextensions.k8s.io/customresourcedefinitions virtualmachines.kubevirt.io":                          "list watch",
		"apiregistration.k8s.io/apiservices v1alpha1.subresources.template.kubevirt.io":                       "get",
		"apiregistration.k8s.io/apiservices v1beta1.subresources.template.kubevirt.io":                        "get",
		"apps/controllerrevisions":                                           "get list watch",
		"authorization.k8s.io/subjectaccessreviews":                          "create",
		"cdi.kubevirt.io/dataimportcrons":                                    "list watch",
		"cdi.kubevirt.io/datasources":                                        "get list watch",
		"cdi.kubevirt.io/datavolumes":                                        "create get list watch patch delete",
		"cdi.kubevirt.io/datavolumes/source":                                 "create",
		"events":                                                             "create patch",
		"events.k8s.io/events":                                               "create patch",
		"instancetype.kubevirt.io/virtualmachineclusterinstancetypes":        "list watch",
		"instancetype.kubevirt.io/virtualmachineclusterpreferences":          "list watch",
		"instancetype.kubevirt.io/virtualmachineinstancetypes":               "list watch",
		"instancetype.kubevirt.io/virtualmachinepreferences":                 "list watch",
		"k8s.cni.cncf.io/network-attachment-definitions":                     "list watch",
		"kubevirt.io/kubevirts":                                              "list",
		"kubevirt.io/virtualmachineinstancemigrations":                       "list",
		"kubevirt.io/virtualmachineinstances":                                "list watch",
		"kubevirt.io/virtualmachines":                                        "get list watch",
		"namespaces":                                                         "get list watch patch",
		"openreports.io/reports":                                             "create get list update delete",
		"persistentvolumeclaims":                                             "get list watch",
		"pods":                                                               "list watch",
		"resourcequotas":                                                     "list watch",
		"rbac.authorization.k8s.io/clusterrolebindings cdi-sa":               "get",
		"rbac.authorization.k8s.io/clusterrolebindings kubevirt-controller":  "get",
		"rbac.authorization.k8s.io/clusterrolebindings stencil-exempt-users": "get list watch patch",
		"rbac.authorization.k8s.io/clusterroles stencil-exempt-users":        "bind",
		"rbac.authorization.k8s.io/clusterroles stencil-protected-objects":   "get",
		"serviceaccounts cdi-sa":                                             "get",
		"serviceaccounts kubevirt-apiserver":                                 "get",
		"serviceaccounts kubevirt-controller":                                "get",
		"serviceaccounts kubevirt-handler":                                   "get",
		"serviceaccounts kubevirt-operator":                                  "get",
		"serviceaccounts kubevirt-synchronization-controller":                "get",
		"snapshot.kubevirt.io/virtualmachinerestores":                        "list",
		"snapshot.kubevirt.io/virtualmachinesnapshotcontents":                "get list",
		"snapshot.kubevirt.io/virtualmachinesnapshots":                       "create get list watch delete",
		"snapshot.storage.k8s.io/volumesnapshots":                            "get list watch",
		"stencil.kubevirt.io/goldenimages":                                   "get list watch patch",
		"stencil.kubevirt.io/goldenimages/status":                            "patch",
		"stencil.kubevirt.io/policyexceptions":                               "list watch",
		"stencil.kubevirt.io/policyexceptions/status":                        "patch",
		"stencil.kubevirt.io/revisionmigrations":                             "create get list watch",
		"stencil.kubevirt.io/revisionmigrations/status":                      "patch",
		"stencil.kubevirt.io/templateapprovals":                              "get list watch",
		"stencil.kubevirt.io/templateapprovals/status":                       "get update patch",
		"stencil.kubevirt.io/virtualmachinepolicies":                         "get list watch",
		"stencil.kubevirt.io/virtualmachinepolicies/status":                  "patch",
		"stencil.kubevirt.io/virtualmachinepolicysources":                    "get list watch",
		"stencil.kubevirt.io/virtualmachinepolicysources/status":             "patch",
		"subresources.kubevirt.io/expand-vm-spec":                            "update",
		"template.kubevirt.io/virtualmachinetemplaterequests":                "get list watch patch delete",
		"template.kubevirt.io/virtualmachinetemplaterequests/status":         "patch",
		"template.kubevirt.io/virtualmachinetemplates":                       "create get list watch patch delete",
		"template.kubevirt.io/virtualmachinetemplates/status":                "patch",
	})
	// Its own admission registrations, which it restores.
	registrations := map[string][]string{
		"mutatingwebhookconfigurations":   {"a-stencil-render"},
		"validatingwebhookconfigurations": {"stencil-validate", "stencil-policies"},
	}
	sources, err := charts.Files.ReadDir(charts.Policies)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		name := "stencil-" + strings.TrimSuffix(source.Name(), ".yaml")
		for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			registrations[resource] = append(registrations[resource], name)
		}
	}
	var restoring []string
	for resource, names := range registrations {
		for _, verb := range []string{"list", "watch"} {
			everywhere = append(everywhere, verb+" admissionregistration.k8s.io/"+resource+" *")
		}
		for _, name := range names {
			right := " admissionregistration.k8s.io/" + resource + " " + name
			everywhere = append(everywhere, "get"+right)
			for _, verb := range []string{"create", "update", "patch"} {
				switch {
				case strings.Contains(resource, "webhook"), verb != "update" && resource == "validatingadmissionpolicybindings" &&
					(name == "stencil-namespace-coverage" || name == "stencil-undecided-namespaces"):
					everywhere = append(everywhere, verb+right)
				default:
					restoring = append(restoring, verb+right)
				}
			}
		}
	}
	// The policies of the library, which it applies when the values switch them on.
	everywhere = append(everywhere, "get rbac.authorization.k8s.io/clusterroles stencil-policy-library")
	ready, err := charts.Files.ReadDir(charts.Library)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range ready {
		for _, verb := range []string{"create", "patch", "delete"} {
			everywhere = append(everywhere, verb+" stencil.kubevirt.io/virtualmachinepolicies "+strings.TrimSuffix(each.Name(), ".yaml"))
		}
	}
	// With an authority of its own, its watches of these two select them by name.
	itsWebhooks := rightsTo(map[string]string{
		"admissionregistration.k8s.io/mutatingwebhookconfigurations a-stencil-render":   "list watch",
		"admissionregistration.k8s.io/validatingwebhookconfigurations stencil-policies": "list watch",
		"admissionregistration.k8s.io/validatingwebhookconfigurations stencil-validate": "list watch",
	})
	electing := rightsTo(map[string]string{
		"configmaps":                                 "list watch",
		"configmaps stencil-approval-index":          "create get list watch patch",
		"configmaps stencil-policy-library":          "get list watch",
		"configmaps stencil-protected-objects":       "get list watch",
		"coordination.k8s.io/leases":                 "create",
		"coordination.k8s.io/leases stencil-manager": "get update",
		"secrets":                         "create",
		"secrets stencil-object-keys":     "get list watch update",
		"serviceaccounts stencil-disks":   "impersonate",
		"serviceaccounts stencil-images":  "impersonate",
		"serviceaccounts stencil-objects": "impersonate",
	})
	itsAuthority := rightsTo(map[string]string{
		"secrets stencil-webhook-ca": "get list watch update",
	})
	defaulting := rightsTo(map[string]string{
		"kubevirt.io/kubevirts": "watch",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations zz-stencil-defaults": "create get list watch update patch",
	})
	cases := map[string]struct {
		values            map[string]any
		wantOwn, wantElse []string
	}{
		"with an authority of its own": {
			wantOwn:  slices.Concat(everywhere, itsWebhooks, electing, itsAuthority),
			wantElse: slices.Concat(everywhere, itsWebhooks),
		},
		"with a certificate that exists": {
			values: map[string]any{"certificates": map[string]any{
				"provider": "secret", "secret": map[string]any{"name": "stencil-tls", "caBundle": authority},
			}},
			wantOwn:  slices.Concat(everywhere, electing),
			wantElse: everywhere,
		},
		"restoring policies": {
			values:   map[string]any{"selfProtection": map[string]any{"policies": "Restore"}},
			wantOwn:  slices.Concat(everywhere, restoring, itsWebhooks, electing, itsAuthority),
			wantElse: slices.Concat(everywhere, restoring, itsWebhooks),
		},
		"with defaulting": {
			values:   map[string]any{"defaulting": map[string]any{"enabled": true}},
			wantOwn:  slices.Concat(everywhere, itsWebhooks, defaulting, electing, itsAuthority),
			wantElse: slices.Concat(everywhere, itsWebhooks, defaulting),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := install.Options{Values: tc.values}
			plane := installed(t, options)
			manager, err := options.ManagerUser(plane)
			if err != nil {
				t.Fatal(err)
			}
			// Another service account of the namespace has the permissions of all users and of all service accounts.
			withoutRole := harness.User(t, plane, "system:serviceaccount:"+install.Namespace+":nobody", gen.Group(manager.Groups...))
			for namespace, want := range map[string][]string{install.Namespace: tc.wantOwn, "default": tc.wantElse} {
				slices.Sort(want)
				// The API server's authorizer observes roles and bindings a little after they are stored.
				eventually(t, "the manager has the rights that are listed", func() string {
					common := rightsOf(t, withoutRole, namespace)
					got := slices.DeleteFunc(rightsOf(t, manager, namespace), func(right string) bool { return slices.Contains(common, right) })
					if !slices.Equal(got, want) {
						return "in namespace " + namespace + " the manager may\n" + strings.Join(got, "\n") + "\nwant\n" + strings.Join(want, "\n")
					}
					return ""
				})
			}
		})
	}
}

// The effect of the rules on single requests, checked with the API server's authorizer.
func TestTheManagerMayNot(t *testing.T) {
	options := install.Options{}
	plane := installed(t, options)
	manager, err := options.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		verb, group, resource, namespace, name string
		want                                   bool
	}{
		"read its authority":                          {"get", "", "secrets", install.Namespace, "stencil-webhook-ca", true},
		"read another Secret beside it":               {"get", "", "secrets", install.Namespace, "other", false},
		"list all Secrets beside it":                  {"list", "", "secrets", install.Namespace, "", false},
		"read a Secret of that name elsewhere":        {"get", "", "secrets", "default", "stencil-webhook-ca", false},
		"create a Secret elsewhere":                   {"create", "", "secrets", "default", "", false},
		"read the keys that encrypt objects":          {"get", "", "secrets", install.Namespace, "stencil-object-keys", true},
		"delete these keys":                           {"delete", "", "secrets", install.Namespace, "stencil-object-keys", false},
		"read keys of that name elsewhere":            {"get", "", "secrets", "default", "stencil-object-keys", false},
		"act as the account of objects":               {"impersonate", "", "serviceaccounts", install.Namespace, "stencil-objects", true},
		"act as an account of that name elsewhere":    {"impersonate", "", "serviceaccounts", "default", "stencil-objects", false},
		"delete its authority":                        {"delete", "", "secrets", install.Namespace, "stencil-webhook-ca", false},
		"patch its webhooks":                          {"patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "a-stencil-render", true},
		"patch somebody else's webhooks":              {"patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "virt-api-mutator", false},
		"restore its webhooks by name":                {"create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "a-stencil-render", true},
		"create webhooks of any name":                 {"create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "", false},
		"delete its webhooks":                         {"delete", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "a-stencil-render", false},
		"change its policies":                         {"patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "stencil-governed-machines", false},
		"change its bindings":                         {"patch", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "stencil-governed-machines", false},
		"change somebody else's policies":             {"patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "other", false},
		"delete its bindings":                         {"delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "stencil-governed-machines", false},
		"change the webhooks of the policies":         {"patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "stencil-policies", true},
		"change policies":                             {"update", "stencil.kubevirt.io", "virtualmachinepolicies", "", "a", false},
		"grant exceptions from policies":              {"create", "stencil.kubevirt.io", "policyexceptions", "", "a", false},
		"prolong them":                                {"patch", "stencil.kubevirt.io", "policyexceptions", "", "a", false},
		"except policies":                             {"except", "stencil.kubevirt.io", "virtualmachinepolicies", "", "a", false},
		"tell the state of exceptions":                {"patch", "stencil.kubevirt.io", "policyexceptions/status", "", "a", true},
		"name sources of policies":                    {"create", "stencil.kubevirt.io", "virtualmachinepolicysources", "", "a", false},
		"change sources of policies":                  {"patch", "stencil.kubevirt.io", "virtualmachinepolicysources", "", "a", false},
		"apply policies of sources by default":        {"impersonate", "", "serviceaccounts", install.Namespace, "stencil-policy-sources", false},
		"tell the state of policies":                  {"patch", "stencil.kubevirt.io", "virtualmachinepolicies/status", "", "a", true},
		"write the index of approvals":                {"patch", "", "configmaps", install.Namespace, "stencil-approval-index", true},
		"create it by name":                           {"create", "", "configmaps", install.Namespace, "stencil-approval-index", true},
		"create any ConfigMap":                        {"create", "", "configmaps", install.Namespace, "", false},
		"read the ConfigMaps of its namespace":        {"list", "", "configmaps", install.Namespace, "", true},
		"read those of another namespace":             {"list", "", "configmaps", "default", "", false},
		"delete the index of approvals":               {"delete", "", "configmaps", install.Namespace, "stencil-approval-index", false},
		"write a ConfigMap of that name elsewhere":    {"patch", "", "configmaps", "default", "stencil-approval-index", false},
		"bind the policies that read it":              {"create", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "stencil-undecided-namespaces", true},
		"change approvals":                            {"update", "stencil.kubevirt.io", "templateapprovals", "", "a", false},
		"tell the state of approvals":                 {"update", "stencil.kubevirt.io", "templateapprovals/status", "", "a", true},
		"exempt controllers":                          {"patch", "rbac.authorization.k8s.io", "clusterrolebindings", "", "stencil-exempt-users", true},
		"bind another role":                           {"bind", "rbac.authorization.k8s.io", "clusterroles", "", "cluster-admin", false},
		"change another binding":                      {"patch", "rbac.authorization.k8s.io", "clusterrolebindings", "", "cluster-admin", false},
		"make bindings":                               {"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", false},
		"read any service account":                    {"get", "", "serviceaccounts", "default", "default", false},
		"bypass approvals itself":                     {"bypass", "stencil.kubevirt.io", "templateapprovals", "", "", false},
		"label namespaces":                            {"patch", "", "namespaces", "", "default", true},
		"delete namespaces":                           {"delete", "", "namespaces", "", "default", false},
		"read templates":                              {"list", "template.kubevirt.io", "virtualmachinetemplates", "", "", true},
		"replace templates":                           {"update", "template.kubevirt.io", "virtualmachinetemplates", "default", "a", false},
		"make templates":                              {"create", "template.kubevirt.io", "virtualmachinetemplates", "default", "", true},
		"ask for templates":                           {"create", "template.kubevirt.io", "virtualmachinetemplaterequests", "default", "", false},
		"restore snapshots":                           {"create", "snapshot.kubevirt.io", "virtualmachinerestores", "default", "", false},
		"use templates":                               {"use", "template.kubevirt.io", "virtualmachinetemplates", "default", "a", false},
		"create VirtualMachines":                      {"create", "kubevirt.io", "virtualmachines", "default", "", false},
		"read VirtualMachines":                        {"list", "kubevirt.io", "virtualmachines", "default", "", true},
		"see VirtualMachines change":                  {"watch", "kubevirt.io", "virtualmachines", "", "", true},
		"see pods change":                             {"watch", "", "pods", "default", "", true},
		"change pods":                                 {"patch", "", "pods", "default", "a", false},
		"read ResourceQuotas":                         {"list", "", "resourcequotas", "default", "", true},
		"change ResourceQuotas":                       {"patch", "", "resourcequotas", "default", "a", false},
		"change VirtualMachines":                      {"patch", "kubevirt.io", "virtualmachines", "default", "a", false},
		"take another's lease":                        {"update", "coordination.k8s.io", "leases", install.Namespace, "other", false},
		"take the controller manager's lease":         {"update", "coordination.k8s.io", "leases", "kube-system", "kube-controller-manager", false},
		"ask on behalf of itself like everybody does": {"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			eventually(t, "the answer is as wanted", func() string {
				if got := may(t.Context(), t, plane, manager, tc.verb, tc.group, tc.resource, tc.namespace, tc.name); got != tc.want {
					return "answered otherwise"
				}
				return ""
			})
		})
	}
}

// may returns the authorizer's decision.
func may(ctx context.Context, t *testing.T, plane *controlplane.Plane, user *controlplane.User, verb, group, resource, namespace, name string) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Name, Groups: append([]string{"system:authenticated"}, user.Groups...),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name,
		},
	}}
	answer, err := clientFor(t, plane.AdminConfig()).AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}
