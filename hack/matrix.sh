#!/usr/bin/env bash
# hack/matrix.sh [PACKAGE...] runs end-to-end tests on other releases of Kubernetes and KubeVirt than those of `make test`, and prints the rows of
# the table in docs/installation.md. Without packages it runs those of the main path.
#
# MATRIX is a list of KUBERNETES/KUBEVIRT; - is the release of `make test`. KUBERNETES is a release such as 1.33.5, built from a module that is made for
# it. KUBEVIRT is one that has a tools module: 1.7 or 1.9.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra combinations <<<"${MATRIX:-1.30.14/- 1.31.13/- 1.32.9/- 1.33.5/- 1.34.12/- 1.35.8/- 1.36.5/- -/1.7 -/1.9 1.30.14/1.9}"
packages=("$@")
((${#packages[@]})) || packages=(./e2e/road ./e2e/attacks ./e2e/capture ./e2e/apiserver)

# Not in bin, which hack/tool tidies.
cache=${STENCIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stencil}/matrix
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build_kubernetes RELEASE FOLDER makes a folder with kube-apiserver and kube-controller-manager of a release. Kubernetes' own go.mod refers to folders of
# its repository; each is replaced by the module that is published of it.
build_kubernetes() (
	release=$1 folder=$2 module=$work/kubernetes-$1
	echo "building kube-apiserver and kube-controller-manager $release, about 300 s"
	mkdir -p "$module" "${folder%/*}"
	cd "$module"
	unset GOFLAGS
	export CGO_ENABLED=0 GOWORK=off
	file=$(go mod download -json "k8s.io/kubernetes@v$release" | awk -F '"' '$2 == "GoMod" {print $4} $2 == "Error" {print $4 >"/dev/stderr"}')
	[[ -n $file ]] || exit 1
	{
		printf 'module kubernetes\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$release"
		awk -v version="v0.${release#1.}" '$2 == "=>" && $3 ~ /^\.\/staging\// {print "\t" $1 " => " $1 " " version}' "$file"
		printf ')\n\n'
		# The version of the language, which decides defaults of the runtime.
		grep '^go ' "$file"
	} >go.mod
	flags="-s -w" minor=${release#1.}
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=v$release -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=archive"
	done
	go build -mod=mod -trimpath -gcflags=all=-dwarf=false -ldflags "$flags" -o bin/ k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager}
	mv bin "$folder"
)

# build_virtctl FILE makes virtctl 1.9. The modules of the template API that it requires are not published. They are made of those of KubeVirt 1.8, which are,
# and which have the version v1alpha1 where 1.9 has v1beta1: its code compiles with them as it is.
build_virtctl() (
	file=$1 module=$work/virtctl
	echo "building virtctl 1.9, about 90 s"
	mkdir -p "$module" "${file%/*}"
	unset GOFLAGS
	export CGO_ENABLED=0 GOWORK=off
	for name in api client-go engine; do
		cp -r "$(cd test/controlplane/tools/kubevirt && go mod download -json kubevirt.io/virt-template-$name | awk -F '"' '$2 == "Dir" {print $4}')" "$module/virt-template-$name"
	done
	sed 's#\.\./standins/#./#; /operatormanifests/d' test/controlplane/tools/kubevirt-1.9/go.mod >"$module/go.mod"
	cp test/controlplane/tools/kubevirt-1.9/go.sum "$module"
	cd "$module"
	chmod -R u+w .
	find . -depth -name '*v1alpha1*' | while read -r path; do mv "$path" "${path%/*}/$(basename "$path" | sed 's/v1alpha1/v1beta1/')"; done
	find . -name '*.go' -exec sed -i 's/v1alpha1/v1beta1/g; s/V1alpha1/V1beta1/g' {} +
	go build -mod=mod -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$file" kubevirt.io/kubevirt/cmd/virtctl
)

# version NAME prints the release of a tool of hack/tool.
version() { hack/tool --list | awk -v name="$1" '$1 == name {print substr($2, 2)}'; }

failed=0 rows=""
for combination in "${combinations[@]}"; do
	kubernetes=${combination%/*} kubevirt=${combination#*/}
	assets=$work/$kubernetes-$kubevirt
	mkdir "$assets"
	if [[ $kubernetes != - ]]; then
		built=$cache/kubernetes-$kubernetes
		[[ -d $built ]] || build_kubernetes "$kubernetes" "$built"
		ln -s "$built"/* "$assets"
	fi
	if [[ $kubevirt == 1.9 ]]; then
		[[ -x $cache/virtctl-1.9 ]] || build_virtctl "$cache/virtctl-1.9"
		ln -s "$cache/virtctl-1.9" "$assets/virtctl"
	fi
	if [[ $kubevirt != - ]]; then
		for name in virt-api virt-controller kubevirt-manifests; do
			path=$(hack/tool "$name-$kubevirt")
			ln -s "$path" "$assets/$name"
		done
	fi
	passed="" broken=""
	for package in "${packages[@]}"; do
		echo "=== Kubernetes $kubernetes, KubeVirt $kubevirt: $package"
		if STENCIL_ASSETS=$assets make --no-print-directory e2e PACKAGES="$package"; then
			passed+=", ${package##*/}"
		else
			broken+=", ${package##*/}" failed=1
		fi
	done
	kubernetes=${kubernetes/#-/$(version kube-apiserver)}
	virtapi=virt-api
	[[ $kubevirt == - ]] || virtapi+=-$kubevirt
	rows+="| $kubernetes | $(version "$virtapi") | ${passed:2} | ${broken:2} | $(date +%F) |"$'\n'
done
printf '\n| Kubernetes | KubeVirt | pass | fail | date |\n|---|---|---|---|---|\n%s' "$rows"
exit "$failed"
