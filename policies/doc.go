// Package policies holds the ValidatingAdmissionPolicies that Stencil installs: rules that the API server itself checks, in
// CEL, so that they hold while no Stencil process runs.
//
//   - template-reference: what a VirtualMachine says about its template stays what it is.
//   - template-use: creating a VirtualMachine from a template takes verb use on it.
//   - delegated-machines: for whom a VirtualMachine was created is said by the API server of templates alone, which creates nothing else.
//   - governed-machines: where a TemplateApproval denies, VirtualMachines come from templates.
//   - approved-templates: there, from templates that an approval lists.
//   - doors, hotplug: there, other ways to a virtual machine and to its disks are closed.
//   - running-machines, migrations, launcher-pods: there, the running virtual machine and its pod stay what was approved.
//   - disk-provenance: there, which disk was created for which virtual machine is written by KubeVirt alone.
//   - undecided-namespaces: the same before Stencil has decided whether an approval selects a namespace.
//   - namespace-coverage, governed-label, approval-index: relabelling a namespace is no way out of an approval.
//   - manager-namespaces, manager-captures, manager-webhooks: what Stencil's manager writes, so that its token permits no more.
//   - approvals: an approval selects no namespaces by what follows from it.
//   - template-request: making a template of a VirtualMachine takes what copying it by hand would.
//
// One YAML file is one policy, and its metadata.name is the file's name. The files carry no binding and no labels:
// whoever installs a policy decides on its final name and where it is enforced. The Helm chart, which puts the release
// name in front and binds every policy to the whole cluster with action Deny, holds a generated copy of the files
// (hack/generate-policies.sh), because a chart cannot read files outside its own directory.
//
// No TemplateApproval is a parameter of a policy, and no other custom resource: an API server that has just started does not know them and
// would deny all that the policy matches, and a policy is evaluated once for each parameter. What the policies need stands on the
// namespace: label stencil.kubevirt.io/governed, by which they select, and annotation stencil.kubevirt.io/approvals. Two policies have one
// ConfigMap as parameter, stencil-approval-index in Stencil's namespace. Their bindings must not exist before the manager has labelled the
// namespaces that exist; without the ConfigMap undecided-namespaces denies, and namespace-coverage allows, because a Namespace must stay
// deletable.
//
// Variables with these names are settings. Their expressions stand for a default installation where nobody is exempt
// and nothing is open; whoever installs a policy replaces them, in every policy that has them, by literals of the same type:
//
//	stencilNamespace  string           the namespace of the release, which is never governed
//	managerUser       string           the name by which the API server knows the manager
//	exemptUsers       list of strings  users exempt from approvals: Kubernetes' own
//	exemptAccounts    list of strings  names of service accounts that are exempt if they also have verb bypass on templateapprovals
//	apiserverUser     string           the name by which the API server knows stencil-apiserver; empty when there is none
//	openDoors         list of strings  names of the chart's values below doors
//	ownWebhooks       map of lists     what is compared of the webhooks of the release, by CONFIGURATION/WEBHOOK: manager-webhooks has the form
//	ownPolicyWebhooks string           the webhook configuration that the manager fills for VirtualMachinePolicies
//	ownAddresses      list of strings  where webhooks in it are, in the form of manager-webhooks
//	writableKeys      list of strings  labels and annotations that users change on running virtual machines; a/ is all of a prefix
//
// Which accounts the controllers of KubeVirt and CDI have on a cluster is in no setting: reconcilers/exemptions finds them and binds a
// ClusterRole to them. The variable exemptController requires both, the name and the permission: administrators have every permission.
//
// A policy must hold without Stencil's webhooks, fail closed (failurePolicy Fail), keep objects that are none of its
// business out through matchConditions, and answer with messages that name keys and paths, never values. Only CEL that
// Kubernetes 1.30 knows may be used; that is the oldest API server the chart accepts.
package policies
