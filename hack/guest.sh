#!/usr/bin/env bash
# hack/guest.sh COMMAND... runs a command with STENCIL_GUEST_KERNEL and STENCIL_GUEST_BUSYBOX, the programs of the guests that tests start: those that are
# set, or otherwise Debian's cloud kernel and static busybox, which are downloaded and unpacked, and not installed.
set -euo pipefail

if [[ -z ${STENCIL_GUEST_KERNEL:-} || -z ${STENCIL_GUEST_BUSYBOX:-} ]]; then
	command -v apt-get >/dev/null || {
		echo "hack/guest.sh: no apt-get here: set STENCIL_GUEST_KERNEL to a kernel for x86_64 and STENCIL_GUEST_BUSYBOX to a static busybox" >&2
		exit 1
	}
	cache=${STENCIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stencil}/guest
	mkdir -p "$cache"
	if ! compgen -G "$cache/boot/vmlinuz-*" >/dev/null || [[ ! -x $cache/bin/busybox ]]; then
		folder=$(mktemp -d)
		trap 'rm -rf "$folder"' EXIT
		find_image() { apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}'; }
		image=$(find_image)
		[[ -n $image ]] || { apt-get update -qq >/dev/null 2>&1 && image=$(find_image); } || true
		[[ -n $image ]] || {
			echo "hack/guest.sh: apt-get knows no linux-image-cloud-amd64; set STENCIL_GUEST_KERNEL to a kernel for x86_64 and STENCIL_GUEST_BUSYBOX to a static busybox" >&2
			exit 1
		}
		(cd "$folder" && apt-get download -qq "$image" busybox-static)
		for package in "$folder"/*.deb; do dpkg-deb --extract "$package" "$folder/files"; done
		mkdir -p "$cache/boot" "$cache/bin"
		mv "$folder"/files/boot/vmlinuz-* "$cache/boot/"
		mv "$folder/files/bin/busybox" "$cache/bin/"
	fi
	STENCIL_GUEST_KERNEL=$(compgen -G "$cache/boot/vmlinuz-*" | sort -V | tail -n 1)
	STENCIL_GUEST_BUSYBOX=$cache/bin/busybox
fi
export STENCIL_GUEST_KERNEL STENCIL_GUEST_BUSYBOX
"$@"
