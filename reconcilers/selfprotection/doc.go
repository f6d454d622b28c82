// Package selfprotection protects Stencil's own admission registrations: the webhook configurations, the ValidatingAdmissionPolicies and
// their bindings. If one of them is changed or deleted, it is restored, with an event and a metric.
//
// The objects are defined in a ConfigMap of the release: each value is the manifest of one object, its key KIND.NAME.yaml. The chart
// renders it from the same templates as the objects. Without the ConfigMap, or while it is being deleted, nothing is protected. KubeVirt's
// virt-operator installs no ConfigMaps: then an annotation of a ClusterRole holds the manifests that virt-operator does not install, and the reconciler
// creates these objects with the caBundle of a configuration that virt-operator writes.
//
// Gather: the ConfigMap and each object, directly from the API server. Decide ([decide], pure): which objects are missing or differ. Apply:
// create or replace them. It runs on the leader when a watch of the ConfigMap or of the objects reports a change, and at an interval.
//
// # What is not restored
//
// The ConfigMap may list kinds that the manager has no right to write: policies and bindings, unless the chart is configured otherwise. The
// API server evaluates no policy for these, so the right to restore them would be the right to weaken the limits of the manager. A change
// or deletion of such an object is reported once, by an event, a metric and the log. Bindings that require a ConfigMap are not part of a
// release, and the manager always creates them.
//
// # What counts as a difference
//
// The API server sets defaults for fields that a manifest leaves out, and newer versions add more. So a manifest is not compared with the
// stored object field by field. Instead, a dry run of the replacement returns the object that would be stored, and that is compared.
// Labels, annotations and caBundles that the manifest does not contain are not changed: a caBundle is written by package cabundle or by
// cert-manager. If the manifest of a configuration contains no webhooks, these are not changed either: package policywebhook writes them.
//
// # Upgrades
//
// An upgrade writes the ConfigMap first and the objects last. For some time after a change of the ConfigMap nothing is restored, so that
// the changes of an upgrade are not reverted.
//
// Helm, since version 4, applies server-side and does not change fields of other owners. Therefore restored fields are owned by the field
// manager that wrote the ConfigMap: a missing object is applied under its name, and the fields of a replaced object are transferred to it.
//
// # Uninstalling
//
// Helm deletes webhook configurations first, then the Deployment, the RBAC objects, the ConfigMap and at last the policies. A missing
// object is therefore restored only after it has been missing for some time, if the ConfigMap then still exists in the API server, not only
// in a cache. If the uninstallation is so slow that a webhook configuration is restored during it, that configuration must not remain: it
// would deny every VirtualMachine because its manager no longer runs. So created objects are owned by the ClusterRole that permits to
// create them, which the uninstallation deletes later, and Kubernetes' garbage collector deletes them with it. Once the ClusterRole is
// deleted the manager has no right to create anything. The ConfigMap names it in an annotation.
package selfprotection
