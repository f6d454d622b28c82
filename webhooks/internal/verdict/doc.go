// Package verdict turns what the approvals and the policies say into an admission
// response. The render webhook and the validating webhook judge the same VM at
// different moments, and a person must read the same sentence from both; and what
// approvals and policies have against one VM comes back in one answer.
package verdict
