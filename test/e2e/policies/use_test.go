package policies_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	malformed = denial{"template-use", "annotation template.kubevirt.io/template-ref must be NAME or NAMESPACE/NAME of a VirtualMachineTemplate, " +
		"with no space, capital letter or other character before, in or after them"}
	unusable = denial{"template-use", "no permission to use the VirtualMachineTemplate that annotation template.kubevirt.io/template-ref names: " +
		"ask an administrator of its namespace for verb use on virtualmachinetemplates.template.kubevirt.io"}
)

// Neither requires an approval nor depends on one.
func TestUsingATemplateTakesPermission(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	person := func(name string, namespaces map[string][]string) *controlplane.User {
		user := harness.User(t, shared.Plane(t), name)
		harness.Grant(t, shared.Plane(t), user, "", ownership...)
		for namespace, names := range namespaces {
			rule := rbacv1.PolicyRule{
				APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplates"}, Verbs: []string{"use"}, ResourceNames: names,
			}
			harness.Grant(t, shared.Plane(t), user, namespace, rule)
		}
		return user
	}
	one := person("uses-one", map[string][]string{"golden": {"fedora"}})
	own := person("uses-own", map[string][]string{space: nil})
	reader := harness.User(t, shared.Plane(t), "reads-all")
	harness.Grant(t, shared.Plane(t), reader, "", append(ownership, rbacv1.PolicyRule{
		APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplates"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	})...)

	cases := map[string]struct {
		as        *controlplane.User
		reference string
		want      denial
	}{
		"all templates of a namespace, and one of them":       {as: owner, reference: "golden/fedora"},
		"all templates of a namespace, and one that is not":   {as: owner, reference: "golden/missing"},
		"all templates of a namespace, and one of another":    {as: owner, reference: "silver/fedora", want: unusable},
		"all templates of a namespace, and one of one's own":  {as: owner, reference: "fedora", want: unusable},
		"one template, and it is this one":                    {as: one, reference: "golden/fedora"},
		"one template, and it is another":                     {as: one, reference: "golden/fedora-41", want: unusable},
		"one template, and it has this name elsewhere":        {as: one, reference: "fedora", want: unusable},
		"the templates of one's own namespace, by name alone": {as: own, reference: "fedora"},
		"the templates of one's own namespace, by both names": {as: own, reference: space + "/fedora"},
		"the templates of one's own namespace, and another":   {as: own, reference: "golden/fedora", want: unusable},
		"reading and writing templates is not using them":     {as: reader, reference: "golden/fedora", want: unusable},
		"a controller needs the permission like everybody":    {as: controller, reference: "golden/fedora", want: unusable},
		"a name with dots":  {as: owner, reference: "golden/fedora.41-x86"},
		"the administrator": {as: shared.Plane(t).Admin(), reference: "silver/fedora"},
		"the administrator, and a namespace that is not there": {as: shared.Plane(t).Admin(), reference: "nowhere/fedora"},
		"the longest names there are": {
			as: shared.Plane(t).Admin(), reference: strings.Repeat("n", 63) + "/" + strings.Repeat("t", 253),
		},
		"a namespace that is too long": {as: owner, reference: strings.Repeat("n", 64) + "/fedora", want: malformed},
		"a name that is too long":      {as: owner, reference: "golden/" + strings.Repeat("t", 254), want: malformed},
		"a name alone that is too long": {
			as: owner, reference: strings.Repeat("t", 254), want: malformed,
		},
		"a very long reference":     {as: owner, reference: strings.Repeat("a/", 100_000), want: malformed},
		"nothing":                   {as: owner, reference: "", want: malformed},
		"a slash":                   {as: owner, reference: "/", want: malformed},
		"no name":                   {as: owner, reference: "golden/", want: malformed},
		"no namespace":              {as: owner, reference: "/fedora", want: malformed},
		"a third part":              {as: owner, reference: "golden/fedora/x", want: malformed},
		"two slashes":               {as: owner, reference: "golden//fedora", want: malformed},
		"a space before":            {as: owner, reference: " golden/fedora", want: malformed},
		"a space after":             {as: owner, reference: "golden/fedora ", want: malformed},
		"a space between":           {as: owner, reference: "golden/ fedora", want: malformed},
		"a line end":                {as: owner, reference: "golden/fedora\n", want: malformed},
		"a second line":             {as: owner, reference: "golden/fedora\nsilver/fedora", want: malformed},
		"a tabulator":               {as: owner, reference: "golden/fedora\t", want: malformed},
		"a capital letter":          {as: owner, reference: "golden/Fedora", want: malformed},
		"another case":              {as: owner, reference: "GOLDEN/FEDORA", want: malformed},
		"the folder above":          {as: owner, reference: "silver/../golden/fedora", want: malformed},
		"the folder above, alone":   {as: owner, reference: "..", want: malformed},
		"a dot":                     {as: owner, reference: "golden/.", want: malformed},
		"a dot at the end":          {as: owner, reference: "golden/fedora.", want: malformed},
		"two dots between":          {as: owner, reference: "golden/fe..dora", want: malformed},
		"a dot in the namespace":    {as: owner, reference: "gol.den/fedora", want: malformed},
		"a hyphen at the start":     {as: owner, reference: "golden/-fedora", want: malformed},
		"an underscore":             {as: owner, reference: "golden/fedora_41", want: malformed},
		"a percent escape":          {as: owner, reference: "golden%2Ffedora", want: malformed},
		"a backslash":               {as: owner, reference: `golden\fedora`, want: malformed},
		"a wildcard":                {as: owner, reference: "golden/*", want: malformed},
		"a letter that looks alike": {as: owner, reference: "golden/fed\u043era", want: malformed},
		"a character of no width":   {as: owner, reference: "golden/fedora\u200b", want: malformed},
		"a quote":                   {as: owner, reference: "golden/fedora'", want: malformed},
		"a placeholder":             {as: owner, reference: "golden/${NAME}", want: malformed},
		"a zero byte":               {as: owner, reference: "golden/fedora\x00", want: malformed},
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tc.want.check(t, dry(t, tc.as, space).create(templated("a", tc.reference)))
			})
		}
	})
	for name, manifest := range map[string]string{
		"in the old version of the API":          vm("v1alpha3", object{"name": "a"}, "golden/windows"),
		"with a name that is yet to be made":     vm("v1", object{"generateName": "a-"}, "golden/windows"),
		"with forged marks of having been there": vm("v1", object{"name": "a", "labels": object{"vm.kubevirt.io/template": "fedora"}}, "golden/windows"),
	} {
		t.Run("a template of others "+name, func(t *testing.T) {
			unusable.check(t, dry(t, one, space).create(manifest))
		})
	}
	t.Run("a template of others, by server-side apply", func(t *testing.T) {
		unusable.check(t, dry(t, one, space).apply(templated("a", "golden/windows")))
	})
	t.Run("a template of others, with no dry run", func(t *testing.T) {
		unusable.check(t, acting(t, one, space).create(templated("a", "golden/windows")))
	})
	t.Run("a copy that KubeVirt's controller makes", func(t *testing.T) {
		copied := func(more object) string {
			metadata := object{"name": "a", "annotations": object{templateRef: "golden/fedora", "template.kubevirt.io/rendered": `{"namespace": "golden", "name": "fedora"}`}}
			for key, value := range more {
				metadata[key] = value
			}
			return vm("v1", metadata, nil)
		}
		create := func(as *controlplane.User, manifest string) controlplane.Result {
			return dry(t, as, space).create(manifest)
		}
		denial{}.check(t, create(controller, copied(nil)))
		unusable.check(t, create(stranger, copied(nil)))
		owner := object{"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "name": "a", "uid": "a"}
		unusable.check(t, create(controller, copied(object{"ownerReferences": []any{owner}})))
	})
	t.Run("in the name of somebody else", func(t *testing.T) {
		unusable.check(t, impersonating(t, space, "uses-one").create(templated("a", "golden/windows")))
		denial{}.check(t, impersonating(t, space, "uses-one").create(templated("a", "golden/fedora")))
	})
}
