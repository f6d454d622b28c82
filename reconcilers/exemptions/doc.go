// Package exemptions finds the service accounts of the installed KubeVirt and CDI, and exempts them from TemplateApprovals: it writes them
// to a ClusterRoleBinding of the release. Its ClusterRole permits verb bypass on TemplateApprovals. Admission policies and webhooks check
// this permission in addition to the name of an account, so the exemption is enforced while no manager runs.
//
// KubeVirt is installed in a namespace that has a KubeVirt object and an account kubevirt-controller that is bound by the
// ClusterRoleBinding of that name. One of the two alone is not enough: the role admin permits to create KubeVirt objects in a user's own
// namespace, and a binding can outlive the namespace of its account. CDI has a cluster-scoped object, which owns the ClusterRoleBinding
// cdi-sa; it is installed in the namespace of the account in this binding. A user who may write ClusterRoleBindings can do anything.
//
// It runs on the leader. Gather: the KubeVirt objects, the two bindings and the service accounts. Decide ([decide], pure): which accounts
// are exempt, and which configured names match no installed controller. Apply: the subjects of the binding, a condition of each
// TemplateApproval, metrics, and an event when something changes. It runs again after an interval, because the objects of KubeVirt and CDI
// are created and deleted with their definitions.
package exemptions
