// Package exemption defines which users are exempt from TemplateApprovals: the controllers of Kubernetes, KubeVirt and CDI.
//
// The names in the chart value exemptUsers are of two kinds. Users of Kubernetes itself, and service accounts in kube-system and in
// Stencil's own namespace, are exempt by their name: these namespaces always exist. Other service accounts are exempt only if the
// installed KubeVirt or CDI runs as them. Namespaces and service accounts of a name are easily created, also by users who are to be
// restricted, so a name proves nothing.
//
// Which accounts these are is found by reconcilers/exemptions, which binds a ClusterRole with one permission to them. Admission
// policies and match conditions of webhooks check the name and the permission, inside the API server; cache/exemptions reads the binding.
package exemption
