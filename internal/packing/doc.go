// Package packing makes packages of templates and raw disks, OVAs and OCI artifacts, and finds the formats of disks in packages. stencilctl and stencil-mover
// share it.
package packing
