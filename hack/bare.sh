#!/usr/bin/env bash
# hack/bare.sh [--cold] [COMMAND...] runs commands in a clone of the commit that is checked out, as an ordinary user of a minimal Debian that has only
# what the README names: Go (the one of this host), git, make, a C compiler, and a network. Without commands it runs `make demo ARGS=--once` and
# `make test`. The network and the caches of modules, builds and tools are those of the calling user; --cold starts with empty ones. Needs root.
#
# STENCIL_BARE_SUITE is the release of Debian (bookworm). The mirror is debootstrap's, or STENCIL_DEBIAN_MIRROR.
set -euo pipefail

if [[ ${1:-} == --inside ]]; then # In namespaces of its own: mounts, processes. $2 is the root, $3 the folder of the run.
	root=$2 run=$3
	shift 3
	bind() { mkdir -p "$root$2" && mount --rbind "$1" "$root$2"; }
	mount --make-rprivate /
	# A root of its own, so that runs beside each other share no mount point.
	mount --bind "$root" "$run/root"
	root=$run/root
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	for device in null zero full random urandom tty; do
		touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
	done
	ln -s /proc/self/fd "$root/dev/fd"
	mkdir -m 1777 "$root/dev/shm"
	mkdir "$root/dev/pts" && mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	mount -t proc proc "$root/proc"
	bind "$run/tmp" /tmp
	bind "$run/home" /home/user
	bind "$(go env GOROOT)" /usr/local/go
	bind "$GOMODCACHE" /home/user/go/pkg/mod
	bind "$GOCACHE" /home/user/.cache/go-build
	bind "$STENCIL_CACHE" /home/user/.cache/stencil
	mount -o remount,bind,ro "$root"
	for command in "$@"; do
		echo "--- as an ordinary user: $command"
		began=$SECONDS
		env -i PATH=/usr/local/go/bin:/usr/bin:/bin HOME=/home/user USER=user LANG=C.UTF-8 ${CI:+CI="$CI"} ${GOPROXY:+GOPROXY="$GOPROXY"} \
			/usr/sbin/chroot "$root" setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
			sh -c "cd ~/stencil && $command" || exit
		echo "--- done in $((SECONDS - began)) s: $command"
	done
	exit
fi

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cold=
[[ ${1:-} != --cold ]] || { cold=yes; shift; }
(($#)) || set -- "make demo ARGS=--once" "make test"
suite=${STENCIL_BARE_SUITE:-bookworm}
packages=ca-certificates,git,make,gcc,libc6-dev
export STENCIL_CACHE=${STENCIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stencil}
GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE) GOPROXY=$(go env GOPROXY)
export GOMODCACHE GOCACHE GOPROXY

root=$STENCIL_CACHE/bare-$suite-$(sha256sum <<<"$packages" | head -c 16)
mkdir -p "$STENCIL_CACHE" "$GOMODCACHE" "$GOCACHE"
(
	flock 9
	[[ -d $root ]] || {
		echo "making a minimal Debian ($suite), once"
		trap 'rm -rf "$root.new"' EXIT
		rm -rf "$STENCIL_CACHE"/bare-*
		debootstrap --variant=minbase --include="$packages" "$suite" "$root.new" ${STENCIL_DEBIAN_MIRROR:+"$STENCIL_DEBIAN_MIRROR"} >"$STENCIL_CACHE/bare.log" || {
			tail -n 20 "$STENCIL_CACHE/bare.log" >&2
			exit 1
		}
		rm -rf "$root.new"/var/cache/apt/archives/*.deb
		mkdir -p "$root.new/home/user" "$root.new/usr/local/go"
		useradd --root "$root.new" --uid 1000 --home-dir /home/user --shell /bin/sh user
		mv "$root.new" "$root"
	}
) 9>"$STENCIL_CACHE/bare.lock"
# As the host resolves names and trusts authorities, the user does.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
[[ ! -e /etc/ssl/certs/ca-certificates.crt ]] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
mkdir -p "$run/root" "$run/home"
mkdir -m 1777 "$run/tmp"
chmod 755 "$run"
if [[ $cold ]]; then
	GOMODCACHE=$run/mod GOCACHE=$run/build STENCIL_CACHE=$run/tools
	mkdir "$GOMODCACHE" "$GOCACHE" "$STENCIL_CACHE"
fi
git -C "$checkout" diff --quiet HEAD || echo "changes that are not committed are not part of the run" >&2
git -c advice.detachedHead=false clone --quiet "$checkout" "$run/home/stencil"
mkdir -p "$run/home/go/pkg/mod" "$run/home/.cache/go-build" "$run/home/.cache/stencil"
chown -R 1000:1000 "$run/home"
# The user writes them, and root may as well.
find "$GOMODCACHE" "$GOCACHE" "$STENCIL_CACHE" -path "$STENCIL_CACHE/bare-*" -prune -o ! -uid 1000 -exec chown -h 1000:1000 {} +
# The processes end with this one, and the mounts with them.
unshare --mount --pid --fork --kill-child -- "$0" --inside "$root" "$run" "$@"
