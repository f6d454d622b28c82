// Package disks caches which DataVolumes and PersistentVolumeClaims exist, by their names alone.
//
// Almost no VirtualMachine that is created has a disk already. So the webhook that denies one whose disk exists reads the API server only
// for a name that is in the cache, where it finds labels and whether the disk is being deleted. A disk that was created a moment before
// the VirtualMachine may be missing in the cache; the webhook of instances, which reads the API server itself, then denies the start.
//
// Every replica has a cache of its own. Of each object it stores the name: 20 000 disks take a few MiB.
package disks
