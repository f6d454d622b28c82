// Package disks measures how fast disks are written and read, beside qemu-img. Rounds of both alternate, so that a host that gets slower gets slower for both.
package disks
