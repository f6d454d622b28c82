// Package uninstall prepares a cluster for the removal of Stencil: afterwards no object waits for a manager, so that all objects and namespaces can be
// deleted, and nothing is left behind that only a manager would have deleted.
//
// The hook of the chart runs it before an uninstallation, as stencil-manager --uninstall, and stencilctl install remove runs it for all other
// installers. It works while managers run, and when none runs any more. It can be interrupted and repeated.
//
//   - It takes the Lease of the leader. The manager that held it exits, and every manager continues to serve webhooks, but reconciles nothing. So
//     nothing new begins. The Lease is held for some time afterwards, in which the managers have to be deleted.
//   - It concludes the VirtualMachineTemplateRequests, unless their definition belongs to KubeVirt's own template component: see
//     [capture.Reconciler.Conclude].
//   - It removes the finalizer of the GoldenImages. Their DataSources and volumes stay as they are.
//   - It deletes the Reports of the audit.
//
// Other objects that a manager has created are owned by an object of the release, or by a VirtualMachine, and the garbage collector deletes them with
// it. VirtualMachines that wait for their objects are only reported.
package uninstall
