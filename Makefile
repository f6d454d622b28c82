# The commands of the project. `make help` lists them.

MODULES := api api/client template defaulting . cmd/stencil-defaulter test
# What needs a libvirt installed is tested by a command of its own.
WITHOUT_LIBVIRT := $(filter-out cmd/stencil-defaulter,$(MODULES))
NEEDS_LIBVIRT := /test/e2e/defaults$$
# libvirt is loaded at run time, so that its headers are not needed.
TAGS := libvirt_dlopen
# Test packages that start control planes run at most this many at a time.
PLANES ?= 2
# Anything has the longest of the tests do less.
BRIEF ?=
PLANE_TOOLS := etcd kube-apiserver kube-controller-manager kubectl helm virt-api virt-controller kubevirt-manifests cdi-server cdi-manifests kubevirt-crds cdi-crds snapshot-crds
# Only tests run these.
TEST_TOOLS := virtctl cert-manager
ARGS ?=
GENERATED := ':(glob)api/**/zz_generated.*' api/client/clientset charts/stencil/files docs/reference rego/schema/files
FUZZTIME ?= 20s
# Which fuzz targets, as a regular expression.
FUZZ ?= .

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: preflight ## a cluster with Stencil on loopback, and what it does (ARGS=--once ends after printing)
	@started=$$(date +%s); \
	[ -x bin/stencil-demo ] || echo "building the demo, which takes about a minute the first time"; \
	(cd test && go build -o ../bin/stencil-demo ./demo) && exec bin/stencil-demo -started=$$started $(ARGS)

.PHONY: test
test: tools ## every test that needs nothing installed: unit, and against the embedded control plane
	@hack/tool $(TEST_TOOLS) >/dev/null
	@for module in $(WITHOUT_LIBVIRT); do \
		echo "== go test in $$module"; \
		flags=-race; [ $$module = test ] && flags="-p $(PLANES)"; \
		(cd $$module && STENCIL_TEST_BRIEF=$(BRIEF) go test -tags $(TAGS) $$flags -timeout 25m $$(go list ./... | grep -v '$(NEEDS_LIBVIRT)')) || exit 1; \
	done

.PHONY: test-defaulter
test-defaulter: tools ## what needs libvirt and QEMU: stencil-defaulter, and admission with it, as root
	@# Kept results know nothing of the libvirt that is installed.
	@cd cmd/stencil-defaulter && go test -count=1 -tags $(TAGS) -timeout 25m ./...
	@cd test && go test -count=1 -timeout 25m $$(go list ./... | grep '$(NEEDS_LIBVIRT)')

.PHONY: oracle
oracle: preflight ## layouts of the defaulter against those of KubeVirt's own converter (a first build takes minutes)
	@# Without a package go test shows what the tests count.
	@cd test/oracle && go vet -tags $(TAGS) ./... && go test -count=1 -tags $(TAGS) -timeout 25m

.PHONY: lint
lint: preflight ## static checks, the import rule among them
	@linter=$$(hack/tool golangci-lint) && for module in $(MODULES) test/bench/helmengine; do \
		echo "== golangci-lint in $$module"; \
		(cd $$module && "$$linter" run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...) || exit 1; \
	done
	@for script in hack/tool hack/*.sh .ci/run; do bash -n $$script || exit 1; done
	@hack/check-links.sh
	@hack/check-dependencies.sh

.PHONY: generate
generate: preflight ## deepcopy code, the typed client, CRDs, reference docs and the chart's copies
	@hack/generate.sh && hack/generate-policies.sh

.PHONY: verify
verify: generate ## fail when generated files are not current
	@changed=$$(git status --porcelain -- $(GENERATED)) && [ -z "$$changed" ] || { \
		echo "generated files are not current; run \`make generate\` and commit:"; echo "$$changed"; exit 1; }

.PHONY: fuzz
fuzz: preflight ## each fuzz target for FUZZTIME (20s)
	@for folder in template approval rego validations; do \
		for target in $$(grep -ho 'func Fuzz[A-Za-z]*' $$folder/*_test.go | cut -c6- | grep -E '$(FUZZ)'); do \
			echo "== $$target"; \
			(cd $$folder && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s .) || exit 1; \
		done; \
	done

.PHONY: bench
bench: tools ## the benchmarks of docs/performance.md (ARGS=--write records them there)
	@cd test && go run ./bench/cmd/bench $(ARGS)

.PHONY: build
build: preflight ## stencil-manager, stencil-apiserver, stencilctl and stencil-defaulter, into bin/
	@go build -trimpath -o bin/ ./cmd/...
	@cd cmd/stencil-defaulter && go build -trimpath -tags $(TAGS) -o ../../bin/ .

.PHONY: tools
tools: preflight ## etcd, kube-apiserver, kubectl, helm and KubeVirt's controllers, built once into a cache
	@hack/tool $(PLANE_TOOLS) >/dev/null

.PHONY: preflight
preflight:
	@hack/preflight.sh
