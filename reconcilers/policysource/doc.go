// Package policysource applies the policies of OCI artifacts that VirtualMachinePolicySources name.
//
// It runs on the leader: for a source when its spec or its annotation for a refresh changes, when one of its policies changes, and at the interval of the
// source. A check finds the manifest, verifies its signature, and reads its policies (package artifact). Then all policies are tried in dry runs, and only
// if the API server and the webhook accept all of them, all are applied (package policyapply, which the policy library uses too).
//
// What was applied last remains if a check or a dry run fails, and is restored when a user changes it. After a restart it is read again by its digest, and
// its signature is verified again. Deleting or suspending a source changes no policy: no policy is owned by a source.
//
// A policy of the same name without the label of the source belongs to another owner: nothing of the artifact is applied until that is resolved.
package policysource
