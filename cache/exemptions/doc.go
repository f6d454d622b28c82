// Package exemptions caches which service accounts are exempt from TemplateApprovals, from the ClusterRoleBinding that
// reconcilers/exemptions writes. Webhooks query it for each request. Admission policies query the API server's authorizer,
// which reads the same binding.
package exemptions
