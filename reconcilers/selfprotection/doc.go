// Package selfprotection keeps Stencil's own admission registrations as they were installed: the webhook configurations,
// the ValidatingAdmissionPolicies and their bindings. Whoever changes or deletes one of them finds it restored, with an
// event and a metric.
//
// What is to be restored stands in a ConfigMap of the release: each value is the manifest of one object, its key
// KIND.NAME.yaml. The chart renders it from the same templates as the objects. Without the ConfigMap, or while it is
// being deleted, nothing is protected.
//
// Gather: the ConfigMap and each object, straight from the API server. Decide ([decide], pure): which objects are missing
// or differ. Apply: create or replace them. It runs on the leader; watches of the ConfigMap and of the objects wake it, and
// a slow tick.
//
// # What is not restored
//
// The ConfigMap may list kinds that the manager has no right to write: policies and bindings, unless the chart says otherwise. The API server
// evaluates no policy for these, so the right to restore them would be the right to weaken what limits the manager. An object of such a
// kind that was changed or deleted is reported once, by an event, a metric and the log. Bindings that no release has because they
// require a ConfigMap are created all the same.
//
// # What counts as a difference
//
// The API server fills fields that a manifest leaves out, and newer versions of it fill more. So a manifest is not
// compared field by field with what is stored. A dry run of the replacement tells once what would be stored, and that is
// compared. Labels and annotations that the manifest does not mention are left alone, and so is a caBundle that it does not
// mention: that one belongs to the package cabundle or to cert-manager. Of a configuration whose manifest mentions no webhooks at
// all, these are left alone too: package policywebhook keeps them.
//
// # Upgrades
//
// The ConfigMap is the first part of an upgrade that reaches the cluster and the objects are the last. For a while
// after the ConfigMap has changed nothing is restored, so that an upgrade is not mistaken for an attack on itself.
//
// Helm, since version 4, applies server-side and refuses to change fields that somebody else owns. Therefore
// what is restored goes back into the hands of the field manager that wrote the ConfigMap: a missing
// object is applied under its name, and the fields of a replaced one are handed over to it.
//
// # Uninstalling
//
// Helm deletes webhook configurations first, then the Deployment, the RBAC objects, the ConfigMap and at last the
// policies. A missing object is therefore restored only when it has been missing for a moment and the ConfigMap
// is still there, read from the API server then, not from a cache. Should the uninstallation be so slow that a
// webhook configuration is restored in its middle, it must not stay behind: it would refuse every VirtualMachine on
// behalf of a manager that is gone. So what is created here is owned by the ClusterRole that allows to create it, which the
// uninstallation deletes later, and Kubernetes' garbage collector takes it away with that. Once the ClusterRole is gone the
// manager has no right to create anything. The ConfigMap names it in an annotation.
package selfprotection
