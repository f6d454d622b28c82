#!/usr/bin/env bash
# hack/matrix.sh [PACKAGE...] runs end-to-end tests on other releases of Kubernetes and KubeVirt than those of `make test`, and prints a table. Each
# release has a tools module of its own. Without packages it runs those of the main path.
#
# MATRIX is a list of KUBERNETES/KUBEVIRT; - is the release of `make test`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra combinations <<<"${MATRIX:-1.30/- -/1.9 1.30/1.9}"
packages=("$@")
((${#packages[@]})) || packages=(./e2e/road ./e2e/attacks ./e2e/capture ./e2e/apiserver)

assets=$(mktemp -d)
trap 'rm -rf "$assets"' EXIT

# choose FOLDER RELEASE NAME... has the tools NAME of another release used under their plain names.
choose() {
	local folder=$1 release=$2 name path
	shift 2
	[[ $release != - ]] || return 0
	for name in "$@"; do
		path=$(hack/tool "$name-$release")
		ln -s "$path" "$folder/$name"
	done
}

failed=0 table=""
for combination in "${combinations[@]}"; do
	kubernetes=${combination%/*} kubevirt=${combination#*/}
	folder=$assets/$kubernetes-$kubevirt
	mkdir "$folder"
	choose "$folder" "$kubernetes" kube-apiserver kube-controller-manager
	choose "$folder" "$kubevirt" virt-api virt-controller kubevirt-manifests
	for package in "${packages[@]}"; do
		echo "=== Kubernetes $kubernetes, KubeVirt $kubevirt: $package"
		started=$SECONDS result=passes
		STENCIL_ASSETS=$folder make --no-print-directory e2e PACKAGES="$package" || { result=fails failed=1; }
		table+=$(printf '%-10s %-8s %-16s %-6s %5d s' "$kubernetes" "$kubevirt" "$package" "$result" $((SECONDS - started)))$'\n'
	done
done
printf '\n%-10s %-8s %-16s\n%s' Kubernetes KubeVirt package "$table"
exit "$failed"
