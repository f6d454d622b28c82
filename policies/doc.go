// Package policies holds the ValidatingAdmissionPolicies that Stencil installs: rules on VirtualMachines that the API
// server itself checks, in CEL, so that they hold while no Stencil process runs.
//
// One YAML file is one policy, and its metadata.name is the file's name. The files carry no binding and no labels:
// whoever installs a policy decides on its final name and where it is enforced. The Helm chart, which puts the release
// name in front and binds every policy to the whole cluster with action Deny, holds a generated copy of the files
// (hack/generate-policies.sh), because a chart cannot read files outside its own directory.
//
// A policy must hold without Stencil's webhooks, fail closed (failurePolicy Fail), keep objects that are none of its
// business out through matchConditions, and answer with messages that name keys and paths, never values. Only CEL that
// Kubernetes 1.30 knows may be used; that is the oldest API server the chart accepts.
package policies
