// Command operatorbundle writes the manifest that KubeVirt's virt-operator can embed in place of its own template component
// (data/virt-template/install-virt-operator.yaml), and the permissions that virt-operator needs to install it.
//
// Both come from the chart, rendered by helm with values.yaml of this folder. The manifest has only the kinds that virt-operator reads, so
// [bundle] leaves out the other objects of the chart, and those that both virt-operator and stencil-manager would write. The webhook
// configurations among them are in an annotation of a ClusterRole, from which stencil-manager creates them.
package main
