package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// manyGroups is more than the groups that directories usually give a user.
const manyGroups = 1000

// times returns items.
func times(count int, item func(i int) any) []any {
	items := make([]any, count)
	for i := range items {
		items[i] = item(i)
	}
	return items
}

// groups are subjects with names of this length.
func groups(count, length int, prefix string) []any {
	return times(count, func(i int) any {
		return object{"kind": "Group", "name": fmt.Sprintf("%s-%0*d", prefix, length-len(prefix)-1, i)}
	})
}

// templates are entries of an approval with names of this length.
func templates(count, length int, prefix string) []any {
	return times(count, func(i int) any {
		return object{"namespace": "golden", "name": fmt.Sprintf("%s-%0*d", prefix, length-len(prefix)-1, i)}
	})
}

// expectTooLarge expects condition Active of an approval to report that the annotation of a namespace has no room for it.
func expectTooLarge(t *testing.T, approval, namespace string) {
	t.Helper()
	eventually(t, "namespace "+namespace+" has no room for approval "+approval, func() string {
		got := active(t, approval)
		if got.Status != "False" || got.Reason != "TooLarge" || !strings.HasPrefix(got.Message, "namespace "+namespace+" has no room for it beside the older approvals") {
			return fmt.Sprintf("condition Active of TemplateApproval %s is %+v", approval, got)
		}
		return ""
	})
}

// An approval that does not fit into the annotation of a namespace approves nothing and exempts no user there.
func TestAnApprovalThatIsTooLarge(t *testing.T) {
	t.Parallel()
	fedora := []any{object{"namespace": "golden", "name": "fedora"}}
	exempts := func(who *controlplane.User) []any { return []any{object{"kind": "User", "name": who.Name}} }
	admin := shared.Plane(t).Admin()
	for name, large := range map[string]object{
		"more than 64 KiB of subjects":        {"subjects": groups(128, 512, "s")},
		"more than 64 KiB of exempt subjects": {"exemptSubjects": append(groups(127, 512, "g"), exempts(owner)...), "subjects": groups(8, 512, "s")},
		"more than 64 KiB in all": {
			"templates": templates(64, 250, "t"), "subjects": groups(100, 300, "s"), "exemptSubjects": append(groups(100, 300, "g"), exempts(owner)...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			space := namespace(t)
			create := func(as *controlplane.User, manifest string) controlplane.Result {
				return dry(t, as, space).create(manifest)
			}
			if large["templates"] == nil {
				large["templates"] = templates(1, 20, "t")
			}
			large["namespaces"] = []any{space}
			mustPass(t, acting(t, nil, "").create(approval("large", large)))
			t.Cleanup(func() { discardApproval(t, "large") })
			expectTooLarge(t, "large", space)
			eventually(t, "the approval denies", func() string { return needsTemplate("large").complaint(create(stranger, plain("a"))) })
			needsTemplate("large").check(t, create(owner, plain("a")))
			reference := "golden/" + large["templates"].([]any)[0].(object)["name"].(string)
			notListed("large", reference).check(t, create(admin, templated("a", reference)))

			approve(t, "small", object{"namespaces": []any{space}, "templates": fedora, "exemptSubjects": exempts(owner)})
			denial{}.check(t, create(admin, templated("a", "golden/fedora")))
			needsTemplate("large, small").check(t, create(owner, plain("a")))
			mustPass(t, acting(t, nil, "").patch(allApprovals, "large",
				encode(object{"spec": object{"subjects": nil, "templates": templates(1, 20, "t"), "exemptSubjects": exempts(owner)}})))
			eventually(t, "the approval is active, and exempts the owner", func() string {
				if got := active(t, "large"); got.Status != "True" {
					return fmt.Sprintf("condition Active is %+v", got)
				}
				return denial{}.complaint(create(owner, plain("a")))
			})
			denial{}.check(t, create(admin, templated("a", "golden/t-000000000000000000")))
		})
	}
	for _, list := range []string{"subjects", "exemptSubjects"} {
		t.Run("more than 512 "+list, func(t *testing.T) {
			space := namespace(t)
			part := func(i, count int) (name string, spec object) {
				name = fmt.Sprintf("part-%d", i)
				return name, object{"namespaces": []any{space}, "templates": fedora, list: groups(count, 20, name)}
			}
			for i := range 4 {
				name, spec := part(i, 128)
				store(t, name, spec)
			}
			// Approvals of the same second are ordered by their names.
			name, spec := part(4, 1)
			mustPass(t, acting(t, nil, "").create(approval(name, spec)))
			t.Cleanup(func() { discardApproval(t, name) })
			expectTooLarge(t, name, space)
			for i := range 4 {
				older, _ := part(i, 0)
				if got := active(t, older); got.Status != "True" {
					t.Errorf("condition Active of TemplateApproval %s is %+v", older, got)
				}
			}
		})
	}
}

// An expression that costs too much denies the request regardless of its result, so Stencil limits what it writes to a namespace. With any content
// within the limits, a member of many groups gets the right decision.
//
//suite:full
func TestTheLargestAnnotationsStayWithinTheBudgets(t *testing.T) {
	const limit = 64 << 10
	space := namespace(t)
	mustPass(t, acting(t, nil, space).create(plain("stored")))
	harness.Bind(t, shared.Plane(t), &controlplane.User{Name: "member"}, "", "cluster-admin")
	withoutManager(t)

	names := func(count, length int, prefix string) []string {
		made := make([]string, count)
		for i := range made {
			made[i] = fmt.Sprintf("%s-%04d", strings.Repeat(prefix, length-5), i)
		}
		return made
	}
	subjects := func(names []string) []string {
		var encoded []string
		for _, name := range names {
			encoded = append(encoded, "g:"+name)
		}
		return encoded
	}
	crowd, shorter := names(manyGroups, 200, "m"), names(manyGroups, 115, "m")
	strangers, longStrangers := subjects(names(512, 115, "s")), subjects(names(300, 200, "s"))
	many := func(list []string) string { return strings.Join(list, ",") }
	// sections has one list for each subject, as if each were listed by a different approval.
	sections := func(before string, list []string) string { return before + strings.Join(list, "|"+before) }
	type answers struct{ vm, template denial }
	closed := answers{needsTemplate("n"), notListed("n", "golden/fedora")}
	listed, exempt := answers{needsTemplate("n"), denial{}}, answers{}

	cases := map[string]struct {
		state string
		crowd []string
		want  answers
	}{
		"subjects whom it serves, none of them":                {"1;n;;golden/fedora>" + many(strangers), crowd, closed},
		"subjects whom it serves, the last of them":            {"1;n;;golden/fedora>" + many(append(strangers[:511:511], "g:"+crowd[999])), crowd, listed},
		"longer subjects whom it serves, none of them":         {"1;n;;golden/fedora>" + many(longStrangers), crowd, closed},
		"lists of one subject each, none of them":              {"1;n;;" + sections("golden/fedora>", subjects(names(512, 100, "s"))), crowd, closed},
		"lists of one subject each, the last of them":          {"1;n;;" + sections("golden/fedora>", append(subjects(names(511, 100, "s")), "g:"+crowd[999])), crowd, listed},
		"exempt subjects, none of them":                        {"1;n;" + many(strangers) + ";", crowd, closed},
		"exempt subjects, the last of them":                    {"1;n;" + many(append(strangers[:511:511], "g:"+crowd[999])) + ";", crowd, exempt},
		"exempt subjects, all of them":                         {"1;n;" + many(subjects(shorter[488:])) + ";", shorter, exempt},
		"lists of one exempt subject each, none of them":       {"1;n;" + sections("", strangers) + ";", crowd, closed},
		"lists of one exempt subject each, all of them":        {"1;n;" + sections("", subjects(shorter[488:])) + ";", shorter, exempt},
		"lists of one exempt subject each, all but the last":   {"1;n;" + sections("", append(subjects(shorter[489:]), strangers[0])) + ";", shorter, closed},
		"two lists of exempt subjects, all but one of them":    {"1;n;" + many(subjects(shorter[489:])) + "|" + strangers[0] + ";", shorter, closed},
		"exempt and served subjects, the last of the latter":   {"1;n;" + many(subjects(names(512, 55, "s"))) + ";golden/fedora>" + many(append(subjects(names(511, 55, "s")), "g:"+crowd[999])), crowd, listed},
		"templates for everyone, and another":                  {"1;n;;golden/" + strings.Join(names(255, 245, "t"), ",golden/"), crowd, closed},
		"templates for everyone, the last of them":             {"1;n;;golden/" + strings.Join(names(255, 245, "t"), ",golden/") + ",golden/fedora", crowd, listed},
		"short templates for everyone, and another":            {"1;n;;" + "g/" + strings.Join(names(7000, 6, "t"), ",g/"), crowd, closed},
		"groups with names of reserved characters, not listed": {"1;n;" + many(strangers) + ";", names(manyGroups, 200, "%"), closed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if len(tc.state) > limit || len(tc.state) < limit*3/4 {
				t.Fatalf("the annotation has %d bytes", len(tc.state))
			}
			member := impersonating(t, space, "member", tc.crowd...).dry()
			change := encode(object{"metadata": object{"labels": object{governedLabel: "true"}, "annotations": object{approvalsAnnotation: tc.state}}})
			mustPass(t, acting(t, nil, "").patch(namespaces, space, change))
			eventually(t, "the API server has read the annotation", func() string { return tc.want.vm.complaint(member.create(plain("a"))) })
			eventually(t, "it judges templates by it", func() string { return tc.want.template.complaint(member.create(templated("a", "golden/fedora"))) })
			var entryPoint, plugged, written denial
			d := entryPoints()[1]
			if tc.want.vm != (denial{}) {
				entryPoint, plugged, written = d.closed("n"), unplugged("n"), statusClosed
			}
			entryPoint.check(t, member.create(d.manifest(d.versions[1], object{"name": "a"})))
			written.check(t, member.patch(vms, "stored", encode(object{"status": object{"ready": true}}), "status"))
			virtAPI := impersonating(t, space, virtAPI.Name, tc.crowd...).dry()
			plugged.check(t, virtAPI.patch(vms, "stored", encode(object{"status": object{"volumeRequests": []any{entry("data")}}}), "status"))
		})
	}
}

// The policies look up the index of approvals once for each label of a namespace.
//
//suite:full
func TestNamespacesOfManyLabelsStayWithinTheBudgets(t *testing.T) {
	const many = 200
	label := func(i int) string { return fmt.Sprintf("label-%03d.example.com/%s", i, strings.Repeat("k", 63)) }
	value := func(i int) string { return fmt.Sprintf("%s-%02d", strings.Repeat("v", 60), i) }
	wanted, labels := object{}, []string{}
	for i := range 16 {
		wanted[label(many-1-i)] = value(63)
	}
	for i := range many {
		labels = append(labels, label(i)+"="+value(63))
	}
	store(t, "many-labels", object{"namespaceSelector": object{"matchLabels": wanted, "matchExpressions": times(16, func(i int) any {
		return object{"key": label(many - 1 - i), "operator": "In", "values": times(64, func(i int) any { return value(i) })}
	})}})
	space := namespace(t, labels...)
	eventually(t, "the approval governs", func() string { return needsTemplate("many-labels").complaint(probe(t, space)) })
	labeller, removed := newOwner(t, "labeller", labelling), object{}
	for i := range many {
		removed[label(i)] = nil
	}
	change := encode(object{"metadata": object{"labels": removed}})
	eventually(t, "the API server has read the index", func() string { return relabelled.complaint(dry(t, labeller, "").patch(namespaces, space, change)) })
	withoutManager(t)
	mustPass(t, acting(t, nil, "").label(namespaces, space, governedLabel+"-"))
	eventually(t, "the namespace is undecided", func() string { return notDecided.complaint(probe(t, space)) })
}
