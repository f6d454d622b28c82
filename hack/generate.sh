#!/usr/bin/env bash
# hack/generate.sh writes everything in the tree that is generated from Go types: deep-copy methods, the CRDs in the
# chart, and the API reference. `make generate` runs it; CI runs it too, and fails when it leaves a difference behind.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
controller_gen=$(hack/tool controller-gen)
crd_ref_docs=$(hack/tool crd-ref-docs)
crds=charts/stencil/files/crds

# What a type that is gone has left must go as well, so the folder starts empty.
mkdir -p "$crds"
rm -f "$crds"/*.yaml

cd api
"$controller_gen" object paths=./...
"$controller_gen" crd "paths=./template/...;./stencil/..." output:crd:dir="$root/$crds"

cd "$root"
"$crd_ref_docs" --source-path=api --config=hack/crd-ref-docs.yaml --renderer=markdown \
	--output-path=docs/reference/api.md --log-level=ERROR
