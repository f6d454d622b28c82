// Package launcher arrives at the layout that virt-launcher would arrive at.
//
// One define is not enough for that. virt-launcher defines a machine with placeholder
// interfaces first, reads back what libvirt has made of it into types of its own,
// which cannot hold the addresses of some devices, takes the placeholders and the
// addresses of interfaces out, appends empty root ports for devices that are plugged
// in later, and defines again. Each step moves devices. Layout repeats the steps as
// KubeVirt 1.8 takes them.
package launcher
