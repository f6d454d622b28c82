#!/bin/sh
# The only program of the guests: it prints what they see, twice, the second time when a device was added.
/bin/busybox mkdir -p /proc /sys
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
PATH=/bin
/bin/busybox --install -s /bin
devices() {
	for device in /sys/bus/pci/devices/*; do
		echo "pci $(readlink -f "$device") $(cat "$device/vendor") $(cat "$device/device")"
	done
}
echo
echo "uuid $(cat /sys/class/dmi/id/product_uuid)"
echo "serial $(cat /sys/class/dmi/id/product_serial)"
for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
	echo "cpu $(cat "$cpu/topology/physical_package_id") $(cat "$cpu/topology/core_id")"
done
grep 'System RAM' /proc/iomem | while read -r range rest; do
	echo "memory $((0x${range#*-} - 0x${range%-*} + 1))"
done
devices
echo ready
before=$(ls /sys/bus/pci/devices)
for second in $(seq 120); do
	[ "$before" = "$(ls /sys/bus/pci/devices)" ] || break
	sleep 1
done
echo later
devices
echo done
poweroff -f
