package policies_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const objectUser = "system:serviceaccount:stencil-system:stencil-objects"

// matched is a policy with its match conditions.
type matched struct {
	policy, conditions evaluated
}

func evaluateMatched(t *testing.T, name string, settings map[string]string) matched {
	t.Helper()
	var expressions []string
	for _, condition := range all(t)[name].Spec.MatchConditions {
		expressions = append(expressions, "("+condition.Expression+")")
	}
	return matched{evaluate(t, name, settings), evaluate(t, name, settings, strings.Join(expressions, " && "))}
}

// run checks what the policy denies, and whether its conditions match.
func (m matched) run(t *testing.T, w written, of *kindOf, wantMatched bool) {
	t.Helper()
	r := w.request(t, of, of.resource)
	if got := m.conditions.holds(t, r); got != wantMatched {
		t.Errorf("its conditions match: %v", got)
	}
	if wantMatched {
		w.run(t, m.policy, of, of.resource)
	} else if w.want != "" {
		t.Errorf("a request that is not matched is not denied: %s", w.want)
	}
}

// kindVM returns VirtualMachines in a version of their API.
func kindVM(version string) *kindOf {
	return &kindOf{schema.GroupVersionKind{Group: "kubevirt.io", Version: version, Kind: "VirtualMachine"}, "virtualmachines"}
}

func TestAVirtualMachineThatIsHeldBackDoesNotStart(t *testing.T) {
	const denied = "the VirtualMachine does not start before the objects of its template exist; its events say which of them cannot be created"
	policy := evaluateMatched(t, "held-instances", nil)
	for _, tc := range []struct {
		written
		ignored bool
	}{
		{written: written{name: "an instance that is held back", after: "metadata: {name: web, namespace: team-a, annotations: {objects.template.kubevirt.io/hold: objects}}", want: denied}},
		{written: written{name: "whatever the value", after: `metadata: {name: web, namespace: team-a, annotations: {objects.template.kubevirt.io/hold: ""}}`, want: denied}},
		{written: written{name: "by the account of objects", as: objectUser, after: "metadata: {name: web, namespace: team-a, annotations: {objects.template.kubevirt.io/hold: objects}}", want: denied}},
		{written: written{name: "an instance of a VM without objects", after: "metadata: {name: web, namespace: team-a, annotations: {a: b}}"}, ignored: true},
		{written: written{name: "an instance without annotations", after: "metadata: {name: web, namespace: team-a}"}, ignored: true},
	} {
		if tc.as == "" {
			tc.as = "system:serviceaccount:kubevirt:kubevirt-controller"
		}
		for _, version := range []string{"v1", "v1alpha3"} {
			instances := &kindOf{schema.GroupVersionKind{Group: "kubevirt.io", Version: version, Kind: "VirtualMachineInstance"}, "virtualmachineinstances"}
			t.Run(tc.name+" "+version, func(t *testing.T) { policy.run(t, tc.written, instances, !tc.ignored) })
		}
	}
}

func TestPendingObjects(t *testing.T) {
	const (
		both    = "metadata: {name: web, namespace: team-a, annotations: {objects.template.kubevirt.io/pending: key:text:ada, template.kubevirt.io/template-ref: golden/box, a: b}}\nspec: {runStrategy: Always, template: {metadata: {annotations: {objects.template.kubevirt.io/hold: objects, c: d}}, spec: {}}}"
		neither = "metadata: {name: web, namespace: team-a, annotations: {a: b}}\nspec: {runStrategy: Always, template: {metadata: {annotations: {c: d}}, spec: {}}}"
		kept    = "annotation objects.template.kubevirt.io/pending holds the objects of the VirtualMachine that do not exist yet, and Stencil removes it when they do: leave it as it is stored"
		pair    = "annotation objects.template.kubevirt.io/hold of spec.template holds a VirtualMachine back for as long as it has annotation objects.template.kubevirt.io/pending, and Stencil removes both: leave both out of a new VirtualMachine, and as they are in a stored one"
	)
	const foreign = "annotation objects.template.kubevirt.io/pending of a new VirtualMachine is written by Stencil, for its template and its user: leave it out, and annotation objects.template.kubevirt.io/hold of spec.template, too"
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(both) }
	var (
		pendingOnly = change("objects.template.kubevirt.io/hold: objects, ", "")
		holdOnly    = change("objects.template.kubevirt.io/pending: key:text:ada, ", "")
	)
	policy, none := evaluateMatched(t, "pending-objects", nil), evaluateMatched(t, "pending-objects", map[string]string{"objectUser": "''"})
	for _, tc := range []struct {
		written
		ignored bool
		// none is the denial where no objects are created, if it is another one.
		none string
	}{
		{written: written{name: "a new VM with both, as the webhook makes it", after: both}},
		{written: written{name: "a new VM without a reference, with both of another request", after: change("template.kubevirt.io/template-ref: golden/box, ", ""), want: foreign}},
		{written: written{name: "a new VM with both of another user", after: change("key:text:ada", "key:text:bob"), want: foreign}},
		{written: written{name: "a new VM with both of a user whose name ends alike", after: change("key:text:ada", "key:text:x:ada"), want: foreign}},
		{written: written{name: "a new VM with both of a dry run", after: change("key:text:ada", "'key:text::ada'"), want: foreign}},
		{written: written{name: "a dry run with both of a dry run", dryRun: true, after: change("key:text:ada", "'key:text::ada'")}},
		{written: written{name: "a dry run with both of another request", dryRun: true, after: both, want: foreign}},
		{written: written{name: "a new VM with both of no user", after: change("key:text:ada", "key:text"), want: foreign}},
		{written: written{name: "a new VM with both of a user with colons", as: "system:serviceaccount:a:b", after: change("key:text:ada", "key:text:system:serviceaccount:a:b")}},
		{written: written{name: "a new VM that is held back only", after: holdOnly, want: pair}},
		{written: written{name: "a new VM that is not held back", after: pendingOnly, want: pair}},
		{written: written{name: "a new VM with an empty annotation that is not held back", after: strings.Replace(pendingOnly, "pending: key:text:ada", `pending: ""`, 1)}},
		{written: written{name: "a new VM with an empty annotation that is held back", after: change("pending: key:text:ada", `pending: ""`), want: pair}},
		{written: written{name: "a new VM of the account that is held back only", as: objectUser, after: holdOnly, want: pair}},
		{written: written{name: "a new VM without objects", after: neither}, ignored: true},
		{written: written{name: "a new VM without annotations", after: "metadata: {name: web, namespace: team-a}\nspec: {template: {spec: {}}}"}, ignored: true},
		{written: written{name: "a new VM without a spec", after: "metadata: {name: web, namespace: team-a}"}, ignored: true},

		{written: written{name: "another field changes", before: both, after: change("Always", "Halted")}},
		{written: written{name: "another annotation changes", before: both, after: change("a: b", "a: c")}},
		{written: written{name: "the value of the hold changes", before: both, after: change("hold: objects", "hold: other")}},
		{written: written{name: "a user changes the objects", before: both, after: change("pending: key:text:ada", "pending: other"), want: kept}},
		{written: written{name: "a user empties them", before: both, after: change("pending: key:text:ada", `pending: ""`), want: kept}},
		{written: written{name: "a user removes them", before: both, after: holdOnly, want: kept}},
		{written: written{name: "a user removes both", before: both, after: neither, want: kept}},
		{written: written{name: "a user starts the VM", before: both, after: pendingOnly, want: pair}},
		{written: written{name: "a user removes everything", before: both, after: "metadata: {name: web, namespace: team-a}", want: kept}},
		{written: written{name: "a user adds objects", before: neither, after: both, want: kept}},
		{written: written{name: "a user adds them without holding the VM back", before: neither, after: pendingOnly, want: kept}},
		{written: written{name: "a user holds the VM back", before: neither, after: holdOnly, want: pair}},
		{written: written{name: "a VM without objects changes", before: neither, after: strings.Replace(neither, "a: b", "a: c", 1)}, ignored: true},
		{written: written{name: "a VM loses what held it back without objects", before: holdOnly, after: neither}, ignored: true},

		{written: written{name: "the account removes both", as: objectUser, before: both, after: neither}, none: kept},
		{written: written{name: "the account removes all annotations of the template", as: objectUser, before: both, after: change("objects.template.kubevirt.io/pending: key:text:ada, ", "", "annotations: {objects.template.kubevirt.io/hold: objects, c: d}", "")}, none: kept},
		{written: written{name: "the account stores which are left", as: objectUser, before: both, after: change("pending: key:text:ada", "pending: other")}, none: kept},
		{written: written{name: "the account removes the objects only", as: objectUser, before: both, after: holdOnly, want: pair}, none: kept},
		{written: written{name: "the account removes the hold only", as: objectUser, before: both, after: pendingOnly, want: pair}},
		{written: written{name: "the account stores an empty annotation", as: objectUser, before: both, after: change("pending: key:text:ada", `pending: ""`), want: pair}, none: kept},
		{written: written{name: "the account adds objects", as: objectUser, before: neither, after: both, want: kept}},
		{written: written{name: "an account of the same name elsewhere removes both", as: "system:serviceaccount:team-a:stencil-objects", before: both, after: neither, want: kept}},
		{written: written{name: "the manager itself removes both", as: managerName, before: both, after: neither, want: kept}},
	} {
		if tc.as == "" {
			tc.as = "ada"
		}
		for _, version := range []string{"v1", "v1alpha3"} {
			t.Run(tc.name+" "+version, func(t *testing.T) { policy.run(t, tc.written, kindVM(version), !tc.ignored) })
		}
		if tc.none != "" {
			tc.want = tc.none
		}
		t.Run(tc.name+", where no objects are created", func(t *testing.T) { none.run(t, tc.written, kindVM("v1"), !tc.ignored) })
	}
}

// TestObjectsThatTheManagerCreates checks each field that the account of objects must not choose.
func TestObjectsThatTheManagerCreates(t *testing.T) {
	const (
		good = `metadata: {name: web, namespace: team-a, labels: {objects.template.kubevirt.io/owner: u, app: web}, annotations: {a: b},
			ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true, blockOwnerDeletion: false}]}`
		owner = "Stencil's manager creates objects for one VirtualMachine only, which controls them and whose UID is in label objects.template.kubevirt.io/owner: create it as another user"
		none  = "Stencil's manager creates the objects of VirtualMachines, and changes and deletes none: do that as another user"
	)
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }
	kinds := map[string]*kindOf{
		"a Secret":        {schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets"},
		"a NetworkPolicy": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, "networkpolicies"},
	}
	policy := evaluateMatched(t, "manager-objects", nil)
	for _, tc := range []struct {
		written
		ignored bool
	}{
		{written: written{name: "an object of a VM", after: good}},
		{written: written{name: "of a VM in another version", after: change("kubevirt.io/v1", "kubevirt.io/v1alpha3")}},
		{written: written{name: "without an owner", after: "metadata: {name: web, namespace: team-a, labels: {objects.template.kubevirt.io/owner: u}}", want: owner}},
		{written: written{name: "without owners", after: "metadata: {name: web, namespace: team-a, labels: {objects.template.kubevirt.io/owner: u}, ownerReferences: []}", want: owner}},
		{written: written{name: "an owner of another kind", after: change("kind: VirtualMachine,", "kind: VirtualMachineInstance,"), want: owner}},
		{written: written{name: "an owner of another group", after: change("kubevirt.io/v1,", "example.com/v1,"), want: owner}},
		{written: written{name: "an owner of a group that ends alike", after: change("kubevirt.io/v1,", "not.kubevirt.io/v1,"), want: owner}},
		{written: written{name: "an owner that does not control it", after: change("controller: true", "controller: false"), want: owner}},
		{written: written{name: "an owner that is said to do nothing", after: change(", controller: true", ""), want: owner}},
		{written: written{name: "two owners", after: change("ownerReferences: [", "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}, "), want: owner}},
		{written: written{name: "the label of another VM", after: change("owner: u", "owner: v"), want: owner}},
		{written: written{name: "without the label", after: change("objects.template.kubevirt.io/owner: u, ", ""), want: owner}},
		{written: written{name: "without labels", after: change("labels: {objects.template.kubevirt.io/owner: u, app: web}, ", ""), want: owner}},
		{written: written{name: "a dry run without an owner, before there is a VM", dryRun: true, after: "metadata: {name: web, namespace: team-a}"}},
		{written: written{name: "a change", before: good, after: change("a: b", "a: c"), want: none}},
		{written: written{name: "a change in a dry run", dryRun: true, before: good, after: change("a: b", "a: c"), want: none}},
		{written: written{name: "a deletion", before: good, want: none}},
		{written: written{name: "a deletion in a dry run", dryRun: true, before: good, want: none}},
		{written: written{name: "another service account creates anything", as: "system:serviceaccount:team-a:default", after: "metadata: {name: web, namespace: team-a}"}, ignored: true},
		{written: written{name: "another user changes it", as: "ada", before: good, after: change("a: b", "a: c")}, ignored: true},
		{written: written{name: "a user whose name ends alike", as: "ada-objects", before: good}, ignored: true},
		{written: written{name: "an account of the same name elsewhere creates anything", as: "system:serviceaccount:team-a:stencil-objects", after: "metadata: {name: web, namespace: team-a}"}},
		{written: written{name: "an account of the same name elsewhere deletes anything", as: "system:serviceaccount:team-a:stencil-objects", before: good}},
		{written: written{name: "the garbage collector deletes it", as: "system:serviceaccount:kube-system:generic-garbage-collector", before: good}, ignored: true},
	} {
		if tc.as == "" {
			tc.as = objectUser
		}
		for kind, of := range kinds {
			t.Run(kind+": "+tc.name, func(t *testing.T) { policy.run(t, tc.written, of, !tc.ignored) })
		}
	}
}

func TestWhatTheManagerChangesOfVirtualMachinesForTheirObjects(t *testing.T) {
	const (
		stored = `
metadata:
  name: web
  namespace: team-a
  labels: {app: web}
  finalizers: [kubevirt.io/x]
  annotations: {objects.template.kubevirt.io/pending: key:text:ada, a: b}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}]
spec:
  runStrategy: Always
  template:
    metadata: {labels: {l: m}, annotations: {objects.template.kubevirt.io/hold: objects, c: d}}
    spec: {hostname: web}
status: {ready: false}
`
		only = "Stencil's manager changes only the annotations objects.template.kubevirt.io/pending and, in spec.template, /hold of a VirtualMachine: change the rest as another user"
		none = "Stencil's manager creates the objects of VirtualMachines, and changes and deletes none: do that as another user"
	)
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(stored) }
	const pending, hold = "objects.template.kubevirt.io/pending: key:text:ada, ", "objects.template.kubevirt.io/hold: objects, "
	policy := evaluateMatched(t, "manager-objects", nil)
	for _, tc := range []struct {
		written
		ignored bool
	}{
		{written: written{name: "nothing", before: stored, after: stored}},
		{written: written{name: "both annotations go", before: stored, after: change(pending, "", hold, "")}},
		{written: written{name: "some objects are left", before: stored, after: change("pending: key:text:ada", "pending: other")}},
		{written: written{name: "the hold was the only annotation", before: change(", c: d", ""), after: change(pending, "", ", annotations: {"+hold+"c: d}", "")}},
		{written: written{name: "the metadata had nothing else", before: change("labels: {l: m}, ", "", ", c: d", ""), after: change(pending, "", "metadata: {labels: {l: m}, annotations: {"+hold+"c: d}}", "metadata: {}")}},
		{written: written{name: "no field but the metadata is left", before: change("labels: {l: m}, ", "", ", c: d", ""), after: change(pending, "", "    metadata: {labels: {l: m}, annotations: {"+hold+"c: d}}\n", "")}},
		{written: written{name: "the pending annotation was the only one", before: change(", a: b", ""), after: change("  annotations: {"+pending+"a: b}\n", "", hold, "")}},
		{written: written{name: "the value of the hold changes", before: stored, after: change("hold: objects", "hold: other"), want: only}},
		{written: written{name: "a hold is added", before: change(hold, ""), after: stored, want: only}},
		{written: written{name: "another annotation changes", before: stored, after: change("a: b", "a: c"), want: only}},
		{written: written{name: "another annotation is added", before: stored, after: change("a: b", "a: b, e: f"), want: only}},
		{written: written{name: "another annotation goes", before: stored, after: change(", a: b", ""), want: only}},
		{written: written{name: "a label changes", before: stored, after: change("app: web", "app: db"), want: only}},
		{written: written{name: "the labels go", before: stored, after: change("  labels: {app: web}\n", ""), want: only}},
		{written: written{name: "the finalizers go", before: stored, after: change("  finalizers: [kubevirt.io/x]\n", ""), want: only}},
		{written: written{name: "the owners change", before: stored, after: change("uid: c", "uid: d"), want: only}},
		{written: written{name: "a field of the spec changes", before: stored, after: change("Always", "Halted"), want: only}},
		{written: written{name: "a field of the spec is added", before: stored, after: change("runStrategy", "instancetype: {name: a}\n  runStrategy"), want: only}},
		{written: written{name: "a field of the spec goes", before: stored, after: change("  runStrategy: Always\n", ""), want: only}},
		{written: written{name: "a field of the instance changes", before: stored, after: change("hostname: web", "hostname: db"), want: only}},
		{written: written{name: "the spec of the instance goes", before: stored, after: change("    spec: {hostname: web}\n", ""), want: only}},
		{written: written{name: "a label of the instance changes", before: stored, after: change("l: m", "l: n"), want: only}},
		{written: written{name: "a label of the instance is added", before: change("labels: {l: m}, ", ""), after: stored, want: only}},
		{written: written{name: "the labels of the instance go", before: stored, after: change("labels: {l: m}, ", ""), want: only}},
		{written: written{name: "another annotation of the instance changes", before: stored, after: change("c: d", "c: e"), want: only}},
		{written: written{name: "another annotation of the instance is added", before: stored, after: change("c: d", "c: d, e: f"), want: only}},
		{written: written{name: "another annotation of the instance goes", before: stored, after: change(", c: d", ""), want: only}},
		{written: written{name: "all annotations of the instance go", before: stored, after: change(", annotations: {"+hold+"c: d}", ""), want: only}},
		{written: written{name: "the template goes", before: "metadata: {name: web, namespace: team-a}\nspec: {template: {}}", after: "metadata: {name: web, namespace: team-a}\nspec: {}", want: only}},
		{written: written{name: "the spec goes", before: stored, after: "metadata: {name: web, namespace: team-a, labels: {app: web}, finalizers: [kubevirt.io/x], annotations: {a: b}, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}", want: only}},
		{written: written{name: "a new VM", after: stored, want: none}},
		{written: written{name: "a new VM in a dry run", dryRun: true, after: stored, want: none}},
		{written: written{name: "a change of another field in a dry run", dryRun: true, before: stored, after: change("Always", "Halted"), want: only}},
		{written: written{name: "a new VM that looks like an object of a VM", want: none, after: `metadata: {name: web, namespace: team-a, labels: {objects.template.kubevirt.io/owner: u},
			ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]}`}},
		{written: written{name: "a deletion", before: stored, want: none}},
		{written: written{name: "another user", as: "ada", before: stored, after: change("Always", "Halted")}, ignored: true},
		{written: written{name: "an account of the same name elsewhere", as: "system:serviceaccount:team-a:stencil-objects", before: stored, after: change("Always", "Halted")}},
	} {
		if tc.as == "" {
			tc.as = objectUser
		}
		for _, version := range []string{"v1", "v1alpha3"} {
			t.Run(tc.name+" "+version, func(t *testing.T) { policy.run(t, tc.written, kindVM(version), !tc.ignored) })
		}
	}

	unused := evaluateMatched(t, "manager-objects", map[string]string{"objectUser": "''"})
	t.Run("where no objects are created", func(t *testing.T) {
		unused.run(t, written{as: objectUser, before: stored}, kindVM("v1"), true)
	})
}
