#!/usr/bin/env bash
# hack/generate.sh writes everything in the tree that is generated from Go types: deep-copy methods, the typed client, the CRDs in the
# chart, the API reference, and the schemas of what policies read. `make generate` runs it; CI runs it too, and fails when it leaves a difference behind.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
controller_gen=$(hack/tool controller-gen)
crd_ref_docs=$(hack/tool crd-ref-docs)
# It writes its own name into what it generates, so it is called by the one that does not change.
names=$(mktemp -d)
trap 'rm -rf "$names"' EXIT
ln -s "$(hack/tool client-gen)" "$names/client-gen"
crds=charts/stencil/files/crds

# What a type that is gone has left must go as well, so the folder starts empty.
mkdir -p "$crds"
rm -f "$crds"/*.yaml

cd api
"$controller_gen" object paths=./...
"$controller_gen" crd "paths=./template/...;./stencil/..." output:crd:dir="$root/$crds"

# The typed client. What a type that is gone has left must go as well.
rm -rf client/clientset
"$names/client-gen" --clientset-name=clientset --output-dir=client --output-pkg=github.com/vmstencil/stencil/api/client \
	--input-base=github.com/vmstencil/stencil/api --input=template/v1beta1,stencil/v1alpha1 --go-header-file=/dev/null

cd "$root"
"$crd_ref_docs" --source-path=api --config=hack/crd-ref-docs.yaml --renderer=markdown \
	--output-path=docs/reference/api.md --log-level=ERROR

# The types of what policies read, for the type checker of Rego.
kubevirt=$(hack/tool kubevirt-crds)/kubevirt.io/api
schemas=rego/schema/files
rm -f "$schemas"/*.json
go run ./rego/schema/internal/generate "$schemas" \
	"$kubevirt/core/v1/kubevirt.io_virtualmachines.yaml" \
	"$kubevirt/instancetype/v1beta1/instancetype.kubevirt.io_virtualmachineinstancetypes.yaml" \
	"$kubevirt/instancetype/v1beta1/instancetype.kubevirt.io_virtualmachinepreferences.yaml" \
	"$crds/template.kubevirt.io_virtualmachinetemplates.yaml" \
	"$crds/template.kubevirt.io_virtualmachinetemplaterequests.yaml" \
	"$crds/template.kubevirt.io_virtualmachinetemplateimports.yaml" \
	"$crds/template.kubevirt.io_virtualmachinetemplateexports.yaml"
