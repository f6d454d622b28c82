// Package oci has the commands of stencilctl that push and pull templates with their disks as OCI artifacts. They need no cluster.
package oci
