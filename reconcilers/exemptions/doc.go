// Package exemptions finds the service accounts that the installed KubeVirt and CDI run as, and exempts them from TemplateApprovals: it
// writes them into a ClusterRoleBinding of the release, whose ClusterRole permits verb bypass on TemplateApprovals. Admission policies and
// webhooks check this permission beside the name of an account, so they follow while no manager runs.
//
// KubeVirt is installed in a namespace that has a KubeVirt object and whose account kubevirt-controller the ClusterRoleBinding of that name
// binds. Each of the two alone is not enough: the role admin permits to create KubeVirt objects in one's own namespace, and a binding can
// outlive the namespace of its account. CDI has a cluster-scoped object, which owns the ClusterRoleBinding cdi-sa; it is installed in the
// namespace of the account that this binds. Who may write ClusterRoleBindings can do anything.
//
// It runs on the leader. Gather: the KubeVirt objects, the two bindings and the service accounts. Decide ([decide], pure): which accounts
// are exempt, and which configured names are those of no installed controller. Apply: the subjects of the binding, a condition of each
// TemplateApproval, metrics, and an event when something changes. It looks again after an interval, because the objects of KubeVirt and
// CDI come and go with their definitions.
package exemptions
