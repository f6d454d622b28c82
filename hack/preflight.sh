#!/usr/bin/env bash
# hack/preflight.sh [--install] [NEED...] names all that this host lacks, and the line that installs it, before anything is built.
# Go, git, a C compiler and a network are needed always; NEED is
#   libvirt    libvirt with its QEMU driver and QEMU, as root
#   guests     a kernel and a busybox for guests, which apt-get downloads
#   qemu-img   with which disk images are compared
#   root       the right to start containers
#   debian     apt-get, which resolves Debian's packages
#   cluster    a container runtime and its network, libvirt's headers, and debootstrap, as root, for a node in namespaces of its own
#   bare       a root file system of its own, made by debootstrap, as root
# --install installs the packages where it can: as root with apt-get.
set -euo pipefail

install=
[[ ${1:-} != --install ]] || { install=yes; shift; }
missing=() packages=()

# lacks WHAT [PACKAGE...] records what is missing and the Debian packages that bring it.
lacks() {
	missing+=("$1")
	shift
	packages+=("$@")
}
have() { command -v "$1" >/dev/null; }
need_root() {
	[[ $EUID == 0 || " ${missing[*]-} " == *" root "* ]] || lacks root
}
libvirt() { # The library that stencil-defaulter loads, and its driver.
	PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -q 'libvirt\.so\.0' || return 1
	compgen -G '/usr/lib*/*/libvirt/connection-driver/libvirt_driver_qemu.so' >/dev/null || compgen -G '/usr/lib*/libvirt/connection-driver/libvirt_driver_qemu.so' >/dev/null
}

goVersion=
! have go || goVersion=$(go env GOVERSION) goVersion=${goVersion#go}
if [[ -z $goVersion ]]; then
	lacks "Go 1.26 or later (https://go.dev/dl)"
elif [[ $(printf '%s\n' 1.26 "$goVersion" | sort -V | head -n 1) != 1.26 ]]; then
	lacks "Go 1.26 or later (https://go.dev/dl); $(command -v go) is $goVersion"
fi
have git || lacks git git
have make || lacks make make
have "${CC:-cc}" || lacks "a C compiler" gcc libc6-dev
for each in "$@"; do
	case $each in
	libvirt)
		libvirt || lacks "libvirt with its driver for QEMU" libvirt0 libvirt-daemon-driver-qemu
		have qemu-system-x86_64 || lacks qemu-system-x86_64 qemu-system-x86
		have qemu-system-aarch64 || lacks qemu-system-aarch64 qemu-system-arm
		need_root ;;
	guests) have apt-get || [[ -n ${STENCIL_GUEST_KERNEL:-} && -n ${STENCIL_GUEST_BUSYBOX:-} ]] ||
		lacks "apt-get, or STENCIL_GUEST_KERNEL (a kernel for x86_64) and STENCIL_GUEST_BUSYBOX (a static busybox)" ;;
	qemu-img) have qemu-img || lacks qemu-img qemu-utils ;;
	root) need_root ;;
	debian) have apt-get || lacks apt-get ;;
	cluster)
		have containerd && have ctr || lacks containerd containerd
		have runc || lacks runc runc
		[[ -x /usr/lib/cni/ptp ]] || lacks "the CNI plugins in /usr/lib/cni" containernetworking-plugins
		PATH=$PATH:/usr/sbin:/sbin have nft || lacks nft nftables
		PATH=$PATH:/usr/sbin:/sbin have ip || lacks ip iproute2
		PATH=$PATH:/usr/sbin:/sbin have mkfs.ext4 || lacks mkfs.ext4 e2fsprogs
		PATH=$PATH:/usr/sbin:/sbin have fsfreeze || lacks fsfreeze util-linux
		PATH=$PATH:/usr/sbin:/sbin have losetup || lacks losetup mount
		[[ -e /usr/include/libvirt/libvirt.h ]] || lacks "the headers of libvirt" libvirt-dev pkg-config
		have debootstrap || lacks debootstrap debootstrap
		have apt-get || lacks apt-get
		need_root ;;
	bare)
		have debootstrap || lacks debootstrap debootstrap
		have unshare && have setpriv || lacks "unshare and setpriv" util-linux
		need_root ;;
	*) echo "hack/preflight.sh: unknown need $each" >&2 && exit 2 ;;
	esac
done
((${#missing[@]})) || exit 0

line="apt-get install --no-install-recommends ${packages[*]-}"
if [[ $install && ${#packages[@]} -gt 0 && $EUID == 0 ]] && have apt-get; then
	echo "$line"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
	exec "$0" "$@"
fi
{
	echo "This host lacks:"
	printf '  - %s\n' "${missing[@]}"
	((${#packages[@]} == 0)) || echo "On Debian: $line"
} >&2
exit 1
