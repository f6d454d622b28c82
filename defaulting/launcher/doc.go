// Package launcher reproduces the layout that virt-launcher produces.
//
// One define is not enough for that. virt-launcher first defines the domain with placeholder
// interfaces and reads libvirt's description back into its own types, which cannot hold the
// addresses of some devices. It then removes the placeholders and the addresses of interfaces,
// appends empty root ports for hotplugged devices, and defines again. Each step changes
// addresses. Layout repeats the steps of KubeVirt 1.8 and 1.9, which differ in what the shape contains.
package launcher
