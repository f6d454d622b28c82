// Package vmdk reads VMDK images in one file, streamOptimized and monolithicSparse, and writes streamOptimized ones.
//
// The format is that of VMware's "Virtual Disk Format 5.0" (2011): a header, a descriptor, grains of 64 KiB, tables of 512 grains, and a
// directory of the tables. Disks of several files are rejected: no name in a descriptor is ever opened.
//
// What is written depends on the content of the disk and on the options only, not on the number of workers. Grains of zeros are left out.
// Memory is a few MiB for each worker and 8 bytes for each 32 MiB of the virtual disk.
package vmdk
