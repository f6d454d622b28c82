package policies_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// While no manager runs, the effect of approvals on a new namespace is not decided. Where an approval may select it, it is closed from its first
// VirtualMachine.
func TestANamespaceThatNobodyHasDecidedOn(t *testing.T) {
	const chosen = "policies-chosen"
	long := strings.Repeat(strings.Repeat("q", 49)+".", 5) + "com/" + strings.Repeat("k", 63)
	exempt := newOwner(t, "exempt-handyman")
	labeller, approver := newOwner(t, "labeller", labelling), newApprover(t)
	store(t, "by-name", object{"namespaces": []any{chosen}, "exemptSubjects": []any{object{"kind": "User", "name": exempt.Name}}})
	store(t, "by-label", object{"namespaceSelector": object{
		"matchLabels": object{"example.com/env": "prod"}, "matchExpressions": []any{object{"key": "legacy", "operator": "DoesNotExist"}},
	}})
	store(t, "by-key", object{"namespaceSelector": object{"matchExpressions": []any{object{"key": "critical", "operator": "Exists"}}}})
	store(t, "by-long-label", object{"namespaceSelector": object{"matchLabels": object{long: strings.Repeat("v", 63)}}})
	store(t, "warns", object{"enforcement": "Warn", "namespaceSelector": object{"matchLabels": object{"env": "test"}}})
	decided := namespace(t)
	withoutManager(t)

	create := func(as *controlplane.User, manifest, namespace string) controlplane.Result {
		return dry(t, as, namespace).create(manifest)
	}
	selected := map[string]string{
		"by its name":                     undecided(t, object{"name": chosen}),
		"by a label":                      undecided(t, object{"generateName": "policies-"}, "example.com/env=prod", "team=a"),
		"by a label that is there":        undecided(t, object{"generateName": "policies-"}, "critical="),
		"by a label of the longest kind":  undecided(t, object{"generateName": "policies-"}, long+"="+strings.Repeat("v", 63)),
		"by a part of what it asks for":   undecided(t, object{"generateName": "policies-"}, "example.com/env=prod", "legacy=true"),
		"by its name, where it is labels": undecided(t, object{"generateName": "policies-"}, "critical=no", "env=dev"),
	}
	// The API server observes the index a moment after the approvals are active.
	for _, space := range selected {
		eventually(t, "the API server has read the index", func() string { return notDecided.complaint(probe(t, space)) })
	}
	for how, space := range selected {
		t.Run("which an approval may select "+how, func(t *testing.T) {
			for _, manifest := range []string{plain("a"), templated("a", "golden/fedora"), vm("v1alpha3", object{"generateName": "a-"}, nil)} {
				notDecided.check(t, create(owner, manifest, space))
			}
			notDecided.check(t, create(nil, plain("a"), space))
			notDecided.check(t, create(exempt, plain("a"), space))
			notDecided.check(t, acting(t, owner, space).create(plain("a")))
			denial{}.check(t, create(controller, plain("a"), space))
		})
	}
	for how, labels := range map[string][]string{
		"by no label":            nil,
		"by another value":       {"example.com/env=dev"},
		"by another key":         {"env=prod"},
		"because it warns there": {"env=test"},
	} {
		t.Run("which no approval selects to deny, "+how, func(t *testing.T) {
			space := undecided(t, object{"generateName": "policies-"}, labels...)
			denial{}.check(t, create(owner, plain("a"), space))
			denial{}.check(t, create(owner, templated("a", "golden/fedora"), space))
			for _, d := range entryPoints() {
				denial{}.check(t, create(owner, d.manifest(d.versions[0], object{"name": "a"}), space))
			}
		})
	}
	space := undecided(t, object{"generateName": "policies-"}, "example.com/env=prod")
	patch := func(as *controlplane.User, resource schema.GroupVersionResource, change string, subresources ...string) controlplane.Result {
		return dry(t, as, space).patch(resource, "stored", change, subresources...)
	}
	t.Run("the entry points", func(t *testing.T) {
		for _, d := range entryPoints() {
			resource := d.in(d.versions[0])
			denial{}.check(t, acting(t, controller, space).create(d.manifest(d.versions[0], object{"name": "stored"})))
			for _, version := range d.versions {
				notDecided.check(t, create(owner, d.manifest(version, object{"name": "a"}), space))
			}
			denial{}.check(t, patch(owner, resource, `{"metadata": {"labels": {"a": "b"}}}`))
			if d.grows != nil {
				notDecided.check(t, patch(owner, resource, encode(object{"spec": d.grows})))
				denial{}.check(t, patch(controller, resource, encode(object{"spec": d.grows})))
			}
			if d.scales {
				notDecided.check(t, patch(owner, resource, `{"spec": {"replicas": 3}}`, "scale"))
				denial{}.check(t, patch(owner, resource, `{"spec": {"replicas": 1}}`, "scale"))
				denial{}.check(t, patch(controller, resource, `{"spec": {"replicas": 3}}`, "scale"))
			}
		}
	})
	t.Run("what is stored", func(t *testing.T) {
		const starts = `{"spec": {"runStrategy": "Always"}}`
		denial{}.check(t, acting(t, controller, space).create(plain("stored")))
		notDecided.check(t, patch(owner, vms, starts))
		notDecided.check(t, plug(t, space))
		notDecided.check(t, patch(virtAPI, vms, `{"spec": {"template": {"spec": {"volumes": [{"name": "a", "containerDisk": {"image": "a"}}]}}}}`))
		denial{}.check(t, patch(virtAPI, vms, starts))
		denial{}.check(t, patch(owner, vms, `{"metadata": {"labels": {"a": "b"}}}`))
		denial{}.check(t, patch(controller, vms, `{"status": {"created": true}}`, "status"))
		denial{}.check(t, dry(t, owner, space).delete(vms, "stored"))
	})
	label := func(as *controlplane.User, namespace string, changes ...string) controlplane.Result {
		return acting(t, as, "").label(namespaces, namespace, changes...)
	}
	t.Run("somebody who may update approvals frees it", func(t *testing.T) {
		space := undecided(t, object{"generateName": "policies-"}, "example.com/env=prod")
		notDecided.check(t, create(owner, plain("a"), space))
		protectedLabel.check(t, label(labeller, space, governedLabel+"=false"))
		notDecided.check(t, create(owner, plain("a"), space))
		denial{}.check(t, label(approver, space, governedLabel+"=maybe"))
		notDecided.check(t, create(owner, plain("a"), space))
		denial{}.check(t, label(approver, space, governedLabel+"=false"))
		eventually(t, "the namespace is free", func() string { return denial{}.complaint(create(owner, plain("a"), space)) })
		denial{}.check(t, acting(t, owner, space).create(plain("a")))
		denial{}.check(t, label(labeller, space, governedLabel+"-"))
		eventually(t, "the namespace is undecided", func() string { return notDecided.complaint(create(owner, plain("b"), space)) })
	})
	t.Run("the selected label takes away what was decided", func(t *testing.T) {
		outdated.check(t, label(approver, decided, "critical=yes"))
		relabelled.check(t, label(labeller, decided, "critical=yes", governedLabel+"-"))
		denial{}.check(t, label(approver, decided, "critical=yes", governedLabel+"-"))
		eventually(t, "the namespace is undecided", func() string { return notDecided.complaint(create(owner, plain("a"), decided)) })
	})
	t.Run("without the index it is closed, and what was decided remains", func(t *testing.T) {
		free := undecided(t, object{"generateName": "policies-"})
		freed := undecided(t, object{"generateName": "policies-"})
		denial{}.check(t, label(approver, freed, governedLabel+"=false"))
		denial{}.check(t, create(owner, plain("a"), free))
		mustPass(t, acting(t, nil, install.Namespace).delete(configMaps, "stencil-approval-index"))
		eventually(t, "the API server knows that the index is gone", func() string {
			result := create(owner, plain("a"), free)
			if !strings.Contains(result.Stderr, "no params found for policy binding with `Deny` parameterNotFoundAction") {
				return "answered " + result.Stderr
			}
			return ""
		})
		eventually(t, "the API server knows the label", func() string { return denial{}.complaint(create(owner, plain("a"), freed)) })
		denial{}.check(t, label(labeller, free, "team=b"))
	})
}

// An approval of every namespace, and one that selects by missing labels, leave no namespace free.
func TestANamespaceThatNobodyHasDecidedOnAndAnApprovalOfEverything(t *testing.T) {
	for name, selector := range map[string]object{
		"everything":        {},
		"what is not there": {"matchExpressions": []any{object{"key": "legacy", "operator": "DoesNotExist"}}},
	} {
		t.Run(name, func(t *testing.T) {
			store(t, "everything", object{"namespaceSelector": selector})
			withoutManager(t)
			space, labelled := undecided(t, object{"generateName": "policies-"}), undecided(t, object{"generateName": "policies-"}, "legacy=true")
			for _, one := range []string{space, labelled} {
				eventually(t, "the API server has read the index", func() string { return notDecided.complaint(probe(t, one)) })
			}
			for _, one := range []string{"kube-system", install.Namespace} {
				mustPass(t, acting(t, nil, "").label(namespaces, one, governedLabel+"-"))
				denial{}.check(t, probe(t, one))
			}
		})
	}
}

// The policies evaluate a governed namespace by its annotation alone. Without a readable one it is closed.
func TestTheAnnotationOfAGovernedNamespace(t *testing.T) {
	space := namespace(t)
	labeller, member := newOwner(t, "labeller", labelling), newOwner(t, "member")
	harness.Bind(t, shared.Plane(t), member, "golden", "stencil-template-user")
	mustPass(t, acting(t, nil, space).create(plain("stored")))
	approve(t, "annotates", object{"namespaces": []any{space}, "templates": []any{object{"namespace": "golden", "name": "fedora"}}})
	withoutManager(t)
	create := func(as *controlplane.User, manifest string) controlplane.Result {
		return dry(t, as, space).create(manifest)
	}
	annotate := func(as *controlplane.User, value any) controlplane.Result {
		return acting(t, as, "").patch(namespaces, space, encode(object{"metadata": object{"annotations": object{approvalsAnnotation: value}}}))
	}
	t.Run("it is enforced without a manager", func(t *testing.T) {
		needsTemplate("annotates").check(t, create(owner, plain("a")))
		denial{}.check(t, create(owner, templated("a", "golden/fedora")))
		notListed("annotates", "golden/windows").check(t, create(owner, templated("a", "golden/windows")))
	})
	t.Run("removing the label opens nothing", func(t *testing.T) {
		protectedLabel.check(t, acting(t, labeller, "").label(namespaces, space, governedLabel+"-"))
		mustPass(t, acting(t, nil, "").label(namespaces, space, governedLabel+"-"))
		eventually(t, "the namespace is undecided", func() string { return notDecided.complaint(create(owner, plain("a"))) })
		notDecided.check(t, create(owner, templated("a", "golden/fedora")))
		mustPass(t, acting(t, nil, "").label(namespaces, space, governedLabel+"=true"))
		eventually(t, "the namespace is governed again", func() string { return needsTemplate("annotates").complaint(create(owner, plain("a"))) })
	})
	t.Run("without it nothing is allowed", func(t *testing.T) {
		protectedAnnotation.check(t, annotate(labeller, nil))
		denial{}.check(t, annotate(nil, nil))
		eventually(t, "the API server knows that the annotation is gone", func() string { return unreadable("governed-machines").complaint(create(owner, plain("a"))) })
		unreadable("approved-templates").check(t, create(owner, templated("a", "golden/fedora")))
		unreadable("governed-machines").check(t, dry(t, owner, space).patch(vms, "stored", `{"spec": {"runStrategy": "Always"}}`))
		unreadable("hotplug").check(t, plug(t, space))
		for _, d := range entryPoints() {
			unreadable("entry-points").check(t, create(owner, d.manifest(d.versions[0], object{"name": "a"})))
			denial{}.check(t, create(controller, d.manifest(d.versions[0], object{"name": "a"})))
		}
		denial{}.check(t, create(controller, plain("a")))
	})
	for _, value := range []string{"", "1", "x", "1;a;", "1;a;;golden/*;", "2;a;;golden/*", " 1;a;;golden/*", "*"} {
		t.Run("it cannot be read: "+value, func(t *testing.T) {
			// A readable value comes between, so that the denial is caused by this one.
			denial{}.check(t, annotate(nil, "1;n;;golden/*"))
			eventually(t, "the API server has read it", func() string { return needsTemplate("n").complaint(create(owner, plain("a"))) })
			denial{}.check(t, annotate(nil, value))
			eventually(t, "the API server has read this value", func() string { return unreadable("governed-machines").complaint(create(owner, plain("a"))) })
			unreadable("approved-templates").check(t, create(owner, templated("a", "golden/fedora")))
		})
	}
	t.Run("what it says", func(t *testing.T) {
		for value, want := range map[string]struct{ plain, listed denial }{
			"1;a;;golden/fedora":                      {needsTemplate("a"), denial{}},
			"1;b;;golden/ubuntu,golden/fedora":        {needsTemplate("b"), denial{}},
			"1;c;;golden/*":                           {needsTemplate("c"), denial{}},
			"1;d;;golden/ubuntu|golden/fedora":        {needsTemplate("d"), denial{}},
			"1;e;;golden/fedora2,olden/fedora":        {needsTemplate("e"), notListed("e", "golden/fedora")},
			"1;f;;*":                                  {needsTemplate("f"), notListed("f", "golden/fedora")},
			"1;g;;":                                   {needsTemplate("g"), notListed("g", "golden/fedora")},
			"1;h;;golden/fedora>u:member":             {needsTemplate("h"), denial{}},
			"1;i;;golden/fedora>u:other,g:member":     {needsTemplate("i"), notListed("i", "golden/fedora")},
			"1;j;;golden/fedora>u:other|golden/*":     {needsTemplate("j"), denial{}},
			"1;k;;golden/ubuntu|golden/fedora>g:x":    {needsTemplate("k"), notListed("k", "golden/fedora")},
			"1;l;u:member;":                           {denial{}, denial{}},
			"1;m;u:other,u:member|u:member;":          {denial{}, denial{}},
			"1;n;u:member|u:other;golden/fedora":      {needsTemplate("n"), denial{}},
			"1;o;g:member,u:members;golden/fedora>u:": {needsTemplate("o"), notListed("o", "golden/fedora")},
			"1;p;g:system%3Aauthenticated;":           {needsTemplate("p"), notListed("p", "golden/fedora")},
			"1;q;g:system:authenticated;":             {denial{}, denial{}},
		} {
			denial{}.check(t, annotate(nil, value))
			// The name in the denial identifies the value.
			eventually(t, "the API server has read "+value, func() string {
				said := create(stranger, plain("a"))
				if strings.Contains(value, "system:authenticated") {
					return denial{}.complaint(said)
				}
				return needsTemplate(strings.Split(value, ";")[1]).complaint(said)
			})
			for manifest, want := range map[string]denial{plain("a"): want.plain, templated("a", "golden/fedora"): want.listed} {
				if complaint := want.complaint(create(member, manifest)); complaint != "" {
					t.Errorf("annotation %s: %s", value, complaint)
				}
			}
		}
	})
}
