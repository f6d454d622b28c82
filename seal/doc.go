// Package seal reports what identifies one VM on the disk of a template: machine ID, SSH host keys, authorized keys, state of
// cloud-init, DHCP leases and seeds.
//
// It reads partition tables, directories and inodes, read-only and without the guest. It reads no data of files, so a report can
// contain paths and nothing else of the disk. Disks are untrusted: what is read is bounded, and whatever cannot be read is Unknown.
package seal
