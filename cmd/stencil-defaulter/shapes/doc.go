// Package shapes builds the VirtualMachines that tests lay out, by name and at random.
package shapes
