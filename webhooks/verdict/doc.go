// Package verdict turns what the approvals say into an admission response. The
// render webhook and the validating webhook judge the same VM at different
// moments, and a person must read the same sentence from both.
package verdict
