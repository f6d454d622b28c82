package rego_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// about limits a policy to VirtualMachines with a label.
const about = "match: {operations: [CREATE, UPDATE], objectSelector: {matchLabels: {test: %s}}}"

func TestEverythingThatIsWrongComesBackAtOnce(t *testing.T) {
	needGolden(t)
	discard(t, "at-once")
	labelled := func(name string, modifiers ...gen.Modifier) string {
		return templated(name, append(modifiers, gen.Parameter("INSTANCETYPE", "u1.small"), gen.Label("test", "at-once"))...)
	}
	must(t, instancetype("VirtualMachineClusterInstancetype", "u1.small", "", 1), "apply", "-f", "-")
	must(t, preference("fedora"), "apply", "-f", "-")
	must(t, labelled("at-once"), "create", "-f", "-")
	approval := gen.Manifest(gen.Approval("at-once", gen.Governs("team-a"), gen.Approves("golden/fedora"), gen.AnyValue("INSTANCETYPE"), gen.Overrides(`metadata.labels["test"]`)))
	t.Cleanup(func() { must(t, "", "delete", "templateapproval", "at-once", "--ignore-not-found") })
	must(t, approval, "apply", "-f", "-")
	applied(t, "at-once-owner", strings.Replace(about, "%s", "at-once", 1), `package x
deny contains {"msg": "nobody owns it", "field": "metadata.labels.owner", "fix": "add the label owner"} if not input.object.metadata.labels.owner`)
	applied(t, "at-once-running", strings.Replace(about, "%s", "at-once", 1), `# METADATA
# scope: package
# custom: {severity: critical}
package x
deny contains sprintf("%s of template %s may not run; its size is %s and its password %s", [input.object.metadata.name, input.template.name, input.parameters.INSTANCETYPE, input.parameters.CLOUD_USER_PASSWORD]) if input.object.spec.runStrategy == "Always"`)
	active(t, "at-once-owner")
	active(t, "at-once-running")

	said := awaitAnswer(t, nil, "", false, []string{
		`virtualmachines.kubevirt.io "at-once" is forbidden:`,
		`- it is not approved in namespace "team-a": spec.runStrategy: may not be written or changed beside the template; these may: metadata.labels.test (approval "at-once")`,
		"- policy at-once-owner (medium): nobody owns it at metadata.labels.owner; fix: add the label owner",
		"- policy at-once-running (critical): at-once of template fedora may not run; its size is u1.small and its password ***",
	}, "patch", "vm", "at-once", "--namespace=team-a", "--type=merge", `-p={"spec":{"runStrategy":"Always"}}`)
	if !strings.Contains(said, "Forbidden") {
		t.Errorf("said: %s", said)
	}
	// The same words on creation, in a dry run and for real.
	must(t, "", "delete", "templateapproval", "at-once")
	for _, arguments := range [][]string{{"create", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}} {
		awaitAnswer(t, nil, labelled("at-once-2"), false, []string{`virtualmachines.kubevirt.io "at-once-2" is forbidden: policy at-once-owner (medium): nobody owns it`}, arguments...)
	}
	// A VirtualMachine with an owner passes.
	discard(t, "at-once-3")
	awaitAnswer(t, nil, labelled("at-once-3", gen.Label("owner", "ada")), true, nil, "create", "--dry-run=server", "-f", "-")
}

func TestTemplatedMachinesAreWarnedAboutAndRecorded(t *testing.T) {
	needGolden(t)
	must(t, instancetype("VirtualMachineClusterInstancetype", "u1.medium", "", 1), "apply", "-f", "-")
	must(t, preference("fedora"), "apply", "-f", "-")
	const module = `package x
deny contains "it comes from a golden template" if input.template.namespace == "golden"
warn contains "take care"`
	applied(t, "golden-warn", "enforcement: Warn\nmatch: {templates: [{namespace: golden}]}", module)
	applied(t, "golden-audit", "enforcement: Audit\nmatch: {templates: [{namespace: golden}]}", strings.Replace(module, "golden template", "golden template, psst", 1))
	active(t, "golden-warn")
	active(t, "golden-audit")
	said := awaitAnswer(t, nil, templated("warned"), true, []string{
		"Warning: policy golden-warn: it comes from a golden template", "Warning: policy golden-warn: take care",
	}, "create", "--dry-run=server", "-f", "-")
	if strings.Contains(said, "golden-audit") || strings.Contains(said, "psst") {
		t.Errorf("said: %s", said)
	}
	// The policy does not apply to a VirtualMachine without a template.
	if out := kubectl(t, vmManifest("free", "other"), "create", "--dry-run=server", "-f", "-"); out.Code != 0 || out.Stderr != "" {
		t.Errorf("exit code %d: %s", out.Code, out.Stderr)
	}
}

func TestSubjectsAndNamespaces(t *testing.T) {
	needGolden(t)
	ada := harness.User(t, stencil.Plane, "ada", gen.Group("team-a"))
	t.Cleanup(func() { must(t, "", "label", "namespace", "team-a", "env-") })
	must(t, "", "label", "namespace", "team-a", "env=prod", "--overwrite")
	applied(t, "subjects", "match: {namespaceSelector: {matchLabels: {env: prod}}, subjects: {include: [{kind: Group, name: team-a}]}}", `package x
deny contains sprintf("%s may not, in %s", [input.request.userInfo.username, input.namespace.labels.env])`)
	active(t, "subjects")
	vm := vmManifest("subject", "x", gen.InNamespace("team-a"))
	awaitAnswer(t, ada, vm, false, []string{"policy subjects (medium): ada may not, in prod"}, "create", "--dry-run=server", "-f", "-")
	// The policy does not apply to a user that it does not include, or in another namespace.
	awaitAnswer(t, nil, vm, true, nil, "create", "--dry-run=server", "-f", "-")
	must(t, "", "label", "namespace", "team-a", "env=test", "--overwrite")
	awaitAnswer(t, ada, vm, true, nil, "create", "--dry-run=server", "-f", "-")
	must(t, "", "label", "namespace", "team-a", "env=prod", "--overwrite")
	// It does not apply to a user that it excludes, either.
	applied(t, "subjects", "match: {namespaceSelector: {matchLabels: {env: prod}}, subjects: {exclude: [{kind: User, name: ada}]}}", `package x
deny contains "nobody may"`)
	awaitAnswer(t, nil, vm, false, []string{"nobody may"}, "create", "--dry-run=server", "-f", "-")
	awaitAnswer(t, ada, vm, true, nil, "create", "--dry-run=server", "-f", "-")
}

func TestFailureModes(t *testing.T) {
	const module = `package x
deny contains "never" if to_number(input.object.metadata.labels.test) > 1`
	for mode, check := range map[string]func(t *testing.T){
		"Deny":  func(t *testing.T) { awaitDenial(t, "fails-deny", "policy fails-deny could not be evaluated: ") },
		"Allow": func(t *testing.T) { passes(t, "fails-allow", "") },
	} {
		t.Run(mode, func(t *testing.T) {
			name := "fails-" + strings.ToLower(mode)
			applied(t, name, "failureMode: "+mode+"\nmatch: {objectSelector: {matchLabels: {test: "+name+"}}}", module)
			active(t, name)
			check(t)
		})
	}
}

func TestTemplatesAndRequests(t *testing.T) {
	needGolden(t)
	applied(t, "captures", "match: {kinds: [VirtualMachineTemplateRequest], operations: [CREATE]}", `package x
deny contains {"msg": sprintf("%s may not capture what is in %s", [input.request.userInfo.username, ns]), "field": "spec.virtualMachineRef.namespace"} if {
  ns := input.object.spec.virtualMachineRef.namespace
  ns != input.request.namespace
}`)
	applied(t, "catalogue", "match: {kinds: [VirtualMachineTemplate], operations: [CREATE, UPDATE, DELETE]}", `package x
deny contains "a template needs an owner" if {
  input.request.operation != "DELETE"
  not input.object.metadata.labels.owner
}
deny contains "a template in use stays" if input.oldObject.metadata.labels.stays == "true"`)
	active(t, "captures")
	active(t, "catalogue")
	// A request for a VirtualMachine that does not exist is rejected before the policies run.
	for _, namespace := range []string{"golden", "team-a"} {
		must(t, vmManifest("db", "x", gen.InNamespace(namespace)), "create", "-f", "-")
		t.Cleanup(func() { must(t, "", "delete", "vm", "db", "--namespace", namespace, "--ignore-not-found") })
	}
	capture := func(from string) string {
		return "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplateRequest\nmetadata: {name: capture, namespace: team-a}\nspec: {virtualMachineRef: {namespace: " + from + ", name: db}}\n"
	}
	awaitAnswer(t, nil, capture("golden"), false, []string{`virtualmachinetemplaterequests.template.kubevirt.io "capture" is forbidden: policy captures (medium): stencil-admin may not capture what is in golden at spec.virtualMachineRef.namespace`}, "create", "--dry-run=server", "-f", "-")
	awaitAnswer(t, nil, capture("team-a"), true, nil, "create", "--dry-run=server", "-f", "-")
	template := func(labels ...gen.Modifier) string {
		common := []gen.Modifier{gen.APIVersion("template.kubevirt.io/v1alpha1"), gen.InNamespace("team-a"), gen.Renders("", gen.LeastSpec())}
		return gen.Manifest(gen.Template("owned", append(common, labels...)...))
	}
	awaitAnswer(t, nil, template(), false, []string{"policy catalogue (medium): a template needs an owner"}, "create", "-f", "-")
	must(t, template(gen.Label("owner", "ada"), gen.Label("stays", "true")), "create", "-f", "-")
	t.Cleanup(func() {
		must(t, "", "delete", "vmpol", "catalogue", "--ignore-not-found")
		must(t, "", "delete", "virtualmachinetemplate", "owned", "--namespace=team-a", "--ignore-not-found")
	})
	awaitAnswer(t, nil, "", false, []string{"a template needs an owner"}, "label", "--dry-run=server", "virtualmachinetemplate", "owned", "owner-", "--namespace=team-a")
	awaitAnswer(t, nil, "", false, []string{"a template in use stays"}, "delete", "--dry-run=server", "virtualmachinetemplate", "owned", "--namespace=team-a")
}

func TestDeletionOfATemplatedMachine(t *testing.T) {
	needGolden(t)
	discard(t, "precious")
	must(t, instancetype("VirtualMachineClusterInstancetype", "u1.medium", "", 1), "apply", "-f", "-")
	must(t, preference("fedora"), "apply", "-f", "-")
	must(t, templated("precious"), "create", "-f", "-")
	applied(t, "deletions", "match: {operations: [DELETE], templates: [{namespace: golden, name: fedora}]}", `package x
deny contains sprintf("%s of %s stays, with %v CPUs", [input.oldObject.metadata.name, input.template.name, input.instancetype.spec.cpu.guest]) if is_null(input.object)`)
	active(t, "deletions")
	awaitAnswer(t, nil, "", false, []string{"policy deletions (medium): precious of fedora stays, with 1 CPUs"}, "delete", "--dry-run=server", "vm", "precious", "--namespace=team-a")
}
