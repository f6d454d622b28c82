#!/usr/bin/env bash
# build.sh OUTPUT makes the disk of a guest, in raw format: Debian's cloud kernel and static busybox, and the scripts of this folder. It boots by BIOS.
# It needs apt-get, which downloads packages and installs none.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
output=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 .
find_kernel() { apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}'; }
kernel=$(find_kernel)
[[ -n $kernel ]] || { apt-get update -qq >/dev/null && kernel=$(find_kernel); }
apt-get download -qq "$kernel" busybox-static syslinux syslinux-common mtools dosfstools 2>/dev/null
for each in *.deb; do dpkg-deb --extract "$each" files; done
version=$(ls files/lib/modules)
busybox=files/bin/busybox

# The first file system: busybox, the modules that the guest loads, and the scripts.
mkdir -p first/bin first/etc/acpi/PWRF first/proc first/sys first/dev first/tmp "first/lib/modules/$version"
cp $busybox first/bin/busybox
cp "$here/init" first/init
cp "$here/udhcpc" first/etc/udhcpc
printf '#!/bin/sh\npoweroff -f\n' >first/etc/acpi/PWRF/00000080
chmod 755 first/init first/etc/udhcpc first/etc/acpi/PWRF/00000080
cp "files/lib/modules/$version/modules.builtin" "files/lib/modules/$version/modules.order" "first/lib/modules/$version/"
for each in drivers/virtio drivers/block/virtio_blk.ko drivers/net/virtio_net.ko drivers/net/net_failover.ko net/core/failover.ko drivers/scsi/virtio_scsi.ko \
	drivers/scsi/sd_mod.ko drivers/scsi/scsi_mod.ko drivers/scsi/scsi_common.ko drivers/char/hw_random drivers/input/evdev.ko drivers/acpi/button.ko \
	fs/isofs drivers/cdrom fs/fat fs/nls/nls_cp437.ko fs/nls/nls_ascii.ko lib/crc-t10dif.ko crypto/crct10dif_common.ko crypto/crct10dif_generic.ko block/t10-pi.ko; do
	[[ ! -e files/lib/modules/$version/kernel/$each ]] || (cd files && cp --parents -r "lib/modules/$version/kernel/$each" ../first/)
done
$busybox depmod -b first "$version"
(cd first && find . | LC_ALL=C sort | "../$busybox" cpio -o -H newc 2>/dev/null | gzip -9n) >initrd

# A FAT file system without partitions, from which SYSLINUX boots.
truncate -s 32M disk
printf 'DEFAULT linux\nLABEL linux\nKERNEL vmlinuz\nINITRD initrd\nAPPEND console=ttyS0 quiet panic=1\n' >syslinux.cfg
export PATH=$folder/files/usr/bin:$folder/files/sbin:$folder/files/usr/sbin:$PATH MTOOLS_SKIP_CHECK=1
mkfs.fat -F 16 -n GUEST disk >/dev/null
mcopy -i disk files/boot/vmlinuz-* ::vmlinuz
mcopy -i disk initrd syslinux.cfg ::
syslinux --install disk
mv disk "$output"
