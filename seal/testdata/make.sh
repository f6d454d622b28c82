#!/bin/sh
# Makes the file systems and disks of the tests, which need none of these programs: mke2fs and debugfs (e2fsprogs 1.47.0), mkfs.xfs
# (xfsprogs 6.1.0), sfdisk (util-linux 2.38.1), zstd and python3. Run it in this folder.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$PWD
superuser=root

# Names, of which /etc has so many that it needs a tree, and one is longer than the others.
unsealed() {
	mkdir -p "$1/etc/ssh" "$1/$superuser/.ssh" "$1/home/ann/.ssh" "$1/home/bob" "$1/boot"
	mkdir -p "$1/var/lib/cloud/instances/i-0123" "$1/var/lib/dhcp" "$1/var/lib/dhclient" "$1/var/lib/dbus" "$1/var/lib/NetworkManager" "$1/var/lib/systemd"
	echo 0123456789abcdef0123456789abcdef >"$1/etc/machine-id"
	ln -s /etc/machine-id "$1/var/lib/dbus/machine-id"
	for type in rsa ed25519; do
		echo secret >"$1/etc/ssh/ssh_host_${type}_key"
		echo public >"$1/etc/ssh/ssh_host_${type}_key.pub"
	done
	: >"$1/$superuser/.ssh/authorized_keys"
	echo key >"$1/home/ann/.ssh/authorized_keys"
	ln -s /var/lib/cloud/instances/i-0123 "$1/var/lib/cloud/instance"
	echo lease >"$1/var/lib/dhcp/dhclient.eth0.leases"
	echo lease >"$1/var/lib/NetworkManager/internal-0123-eth0.lease"
	echo seed >"$1/var/lib/systemd/random-seed"
	for i in $(seq "$2"); do echo x >"$1/etc/a-file-of-the-configuration-with-number-$i"; done
}

sealed() {
	mkdir -p "$1/etc/ssh" "$1/$superuser/.ssh" "$1/home/ann" "$1/var/lib/cloud/instances" "$1/var/lib/dbus"
	echo uninitialized >"$1/etc/machine-id"
	ln -s /etc/machine-id "$1/var/lib/dbus/machine-id"
	: >"$1/$superuser/.ssh/authorized_keys"
}

# The file that mkfs.xfs -p reads.
proto() {
	python3 - "$1" <<'P'
import os, sys
def walk(d):
    for name in sorted(os.listdir(d)):
        p = os.path.join(d, name)
        if os.path.islink(p): print(f"{name} l--777 0 0 {os.readlink(p)}")
        elif os.path.isdir(p): print(f"{name} d--755 0 0"); walk(p); print("$")
        else: print(f"{name} ---644 0 0 {p}")
print("/dev/null\n1 1\nd--755 0 0"); walk(sys.argv[1]); print("$")
P
}

ext() { # NAME SIZE TREE OPTIONS...
	name=$1 size=$2 tree=$3
	shift 3
	truncate -s "$size" "$work/$name"
	mke2fs -q -U 00000000-0000-0000-0000-000000000001 -d "$work/$tree" "$@" "$work/$name"
}

xfs() { # NAME SIZE TREE OPTIONS...
	name=$1 size=$2
	proto "$work/$3" >"$work/proto"
	shift 3
	truncate -s "$size" "$work/$name"
	# The variables permit less than 300 MiB.
	TEST_DIR=x TEST_DEV=x QA_CHECK_FS=x mkfs.xfs -q -m uuid=00000000-0000-0000-0000-000000000001 "$@" -p "$work/proto" "$work/$name"
}

store() {
	for name; do zstd -q -19 -f "$work/$name" -o "$here/$name.zst"; done
}

unsealed "$work/unsealed" 3
unsealed "$work/large" 2500
sealed "$work/sealed"
mkdir -p "$work/var" "$work/homes"
cp -a "$work/unsealed/var/." "$work/var/"
mkdir "$work/var/cache"
cp -a "$work/unsealed/home/." "$work/homes/"
mkdir -p "$work/links/etc" "$work/links/mnt/ssh" "$work/ostree/ostree/deploy"
ln -s ../mnt/ssh "$work/links/etc/ssh"

ext ext4 16M unsealed -t ext4
ext ext4-sealed 8M sealed -t ext4
ext ext4-tree 32M large -t ext4 -b 1024
ext ext4-inline 8M unsealed -t ext4 -O inline_data -I 256
ext ext4-metabg 64M unsealed -t ext4 -b 1024 -g 1024 -O meta_bg,^resize_inode
ext ext4-64bit-none 16M unsealed -t ext4 -O ^64bit,^metadata_csum
ext ext3 16M unsealed -t ext3
ext ext2-tree 32M large -t ext2 -b 1024
ext ext4-links 8M links -t ext4
ext ext4-ostree 8M ostree -t ext4
ext ext4-var 8M var -t ext4
ext ext4-dirty 8M sealed -t ext4
debugfs -w -R 'feature needs_recovery' "$work/ext4-dirty" >"$work/log" 2>&1

# mke2fs writes lists of names; e2fsck makes hash trees of them.
for name in ext4-tree ext2-tree; do e2fsck -fyD "$work/$name" >"$work/log" 2>&1 || test $? -eq 1; done

xfs xfs 32M unsealed -i nrext64=1
xfs xfs-sealed 32M sealed
xfs xfs-homes 32M homes
# So many blocks of a directory with files in between that its extents are in a tree.
xfs xfs-tree 32M large -b size=1024 -i nrext64=1
xfs xfs-tree-wide 48M large -n size=8192
xfs xfs-v4 32M unsealed -m crc=0,finobt=0,rmapbt=0,reflink=0,inobtcount=0,bigtime=0

# A disk with a GPT as in images of clouds, with /home in an XFS.
truncate -s 96M "$work/gpt"
sfdisk -q "$work/gpt" <<'P'
label: gpt
1: start=4MiB, size=16MiB, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4
2: start=20MiB, size=32MiB, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4
14: start=1MiB, size=1MiB, type=21686148-6449-6E6F-744E-656564454649
15: start=52MiB, size=8MiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B
16: start=60MiB, size=8MiB, type=0657FD6D-A4AB-43C4-84E5-0933C84B4F4F
P
dd status=none conv=notrunc bs=1M seek=4 if="$work/ext4" of="$work/gpt"
dd status=none conv=notrunc bs=1M seek=20 if="$work/xfs-homes" of="$work/gpt"

# A disk with an MBR and a logical partition, one of btrfs, and one that is empty.
truncate -s 64M "$work/mbr"
sfdisk -q "$work/mbr" <<'P'
label: dos
1: start=1MiB, size=16MiB, type=83
2: start=20MiB, size=40MiB, type=5
5: start=21MiB, size=16MiB, type=83
6: start=40MiB, size=4MiB, type=83
7: start=46MiB, size=4MiB, type=83
P
dd status=none conv=notrunc bs=1M seek=1 if="$work/ext4-sealed" of="$work/mbr"
dd status=none conv=notrunc bs=1M seek=21 if="$work/ext3" of="$work/mbr"
printf _BHRfS_M | dd status=none conv=notrunc bs=1 seek=$((40 * 1048576 + 65600)) of="$work/mbr"

store ext4 ext4-sealed ext4-tree ext4-inline ext4-metabg ext4-64bit-none ext3 ext2-tree ext4-links ext4-ostree ext4-var ext4-dirty \
	xfs xfs-sealed xfs-homes xfs-tree xfs-tree-wide xfs-v4 gpt mbr
