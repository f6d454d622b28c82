// Package exemptions caches which service accounts are exempt from TemplateApprovals, from the ClusterRoleBinding that
// reconcilers/exemptions writes. Webhooks ask it about each request; admission policies ask the API server's authorizer, which reads the
// same binding.
package exemptions
