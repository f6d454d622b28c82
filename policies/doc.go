// Package policies describes and tests the ValidatingAdmissionPolicies that Stencil installs, in charts/stencil/files/policies: rules in CEL
// that the API server itself evaluates, so that they are enforced while no Stencil process runs.
//
//   - template-reference: the reference of a VirtualMachine to its template, and its record, do not change.
//   - template-use: creating a VirtualMachine from a template requires verb use on it.
//   - delegated-machines: only the API server of templates writes for which user a VirtualMachine was created, and it creates nothing
//     else.
//   - governed-machines: in namespaces in which a TemplateApproval denies, VirtualMachines come from templates.
//   - approved-templates: in these namespaces, they come from templates that an approval lists.
//   - entry-points, hotplug: in these namespaces, other ways to create a VM and to change its disks are closed.
//   - running-machines, migrations, launcher-pods: in these namespaces, running VMs and their pods do not differ from what was approved.
//   - disk-provenance: in these namespaces, only KubeVirt writes which disk was created for which VM.
//   - stored-instancetypes: in these namespaces, only KubeVirt and Stencil write the copies of instance types that determine the size of VMs.
//   - undecided-namespaces: the same rules before Stencil has decided whether an approval selects a namespace.
//   - namespace-coverage, governed-label, approval-index: relabelling a namespace does not evade an approval.
//   - rendered-for: the annotation by whose permission a template lends disks names the user of the request.
//   - disk-lending: only users who may copy the disks of a namespace lend them by a template.
//   - manager-namespaces, manager-captures, manager-disks, manager-images, manager-revisions, manager-transfers, manager-webhooks: the writes that are permitted to Stencil's
//     manager and its token.
//   - approvals: an approval does not select namespaces by the label that Stencil derives from approvals.
//   - policy-exception: granting an exception requires verb except on each VirtualMachinePolicy that it names, and it ends within 366 days.
//   - definitions: the definitions of templates are not deleted by mistake.
//   - template-import: importing a template requires the permissions to create it and its disks, and to read the credentials of the source.
//   - template-export: exporting a template requires verb export on it, and the permission to copy its disks.
//   - template-request: creating a template from a VirtualMachine requires the permissions for a manual copy.
//
// One YAML file is one policy, and its metadata.name is the file's name. The files contain no binding and no labels:
// the installer of a policy decides on its final name and where it is enforced. The Helm chart adds the release name
// as a prefix and binds every policy to the whole cluster with action Deny.
//
// No policy has a TemplateApproval or another custom resource as parameter: an API server that has just started does not serve custom
// resources yet and would deny all requests that the policy matches, and a policy is evaluated once for each parameter. The policies read
// the data that they need from the namespace: label stencil.kubevirt.io/governed, by which they select, and annotation
// stencil.kubevirt.io/approvals. Two policies have one ConfigMap as parameter, stencil-approval-index in Stencil's namespace. Their
// bindings must not exist before the manager has labelled the existing namespaces; without the ConfigMap undecided-namespaces denies, and
// namespace-coverage allows, because a Namespace must remain deletable.
//
// Variables with these names are settings. Their expressions are the values of a default installation without exempt users and open
// entry points. The installer of a policy replaces them, in every policy that has them, by literals of the same type:
//
//	stencilNamespace  string           the namespace of the release, which is never governed
//	managerUser       string           the username of the manager
//	uninstallUser     string           the username of the hook that ends captures before an uninstallation
//	diskUser          string           the username under which the manager creates disks that templates lend; empty if it creates none
//	imageUser         string           the username under which the manager keeps golden images fresh
//	revisionUser      string           the username under which the manager replaces stored instance types; empty if it replaces none
//	transferUser      string           the username under which the manager imports and exports templates; empty if it does neither
//	transferDomain    string           the domain below which movers are reached from outside of the cluster; empty if they are not
//	moverImage        string           the image of stencil-mover
//	objectUser        string           the username under which the manager creates the objects of templates; empty if it creates none
//	exemptUsers       list of strings  users exempt from approvals: Kubernetes' own
//	exemptAccounts    list of strings  names of service accounts that are exempt if they also have verb bypass on templateapprovals
//	apiserverUser     string           the username of stencil-apiserver; empty if it is not installed
//	openEntryPoints   list of strings  names of the chart's values below entryPoints
//	ownWebhooks       map of lists     the compared fields of the webhooks of the release, by CONFIGURATION/WEBHOOK, in the form of manager-webhooks
//	ownPolicyWebhooks string           the webhook configuration that the manager fills for VirtualMachinePolicies
//	ownAddresses      list of strings  addresses of the webhooks in it, in the form of manager-webhooks
//	writableKeys      list of strings  labels and annotations that users change on running VMs; a/ stands for all keys with that prefix
//
// The accounts of the controllers of KubeVirt and CDI on a cluster are not a setting: reconcilers/exemptions finds them and binds a
// ClusterRole to them. The variable exemptController requires both the name and the permission, because administrators have every
// permission.
//
// A policy must be effective without Stencil's webhooks, fail closed (failurePolicy Fail), exclude unrelated objects
// by matchConditions, and return messages that name keys and paths, never values. Only CEL that Kubernetes 1.30
// supports may be used; that is the oldest API server that the chart accepts.
package policies
