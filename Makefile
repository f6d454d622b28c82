# The commands of the project. `make help` lists them.

# libvirt is loaded at run time, so that its headers are not needed.
TAGS := libvirt_dlopen
# What `make test` runs, what only `make test-full` does, and what only `make test-long` does.
GATE_TOOLS := etcd kube-apiserver kube-controller-manager kubectl kubectls helm virt-api virt-controller kubevirt-manifests kubevirt-crds cdi-crds snapshot-crds
FULL_TOOLS := cdi-server cdi-manifests virtctl cert-manager cosign versitygw
LONG_TOOLS := oras argocd-engine flux-engine virt-operator kubevirt-operator virt-operator-1.9 kubevirt-operator-1.9
# The flags with which the tools and Stencil's programs are built, so that the Go command compiles a package once for all of them.
# They hold no tables for a debugger: compiling without these takes an eighth less time.
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath -gcflags=all=-dwarf=false
ARGS ?=
# download takes published binaries where hack/binaries.lock has them, instead of building etcd, kube-apiserver, kubectl and helm.
export STENCIL_BINARIES := $(BINARIES)
# The packages of end-to-end tests that start a defaulter.
ON_LIBVIRT := ./defaulter ./e2e/defaults ./e2e/toggles ./e2e/gitops ./e2e/release ./e2e/upgrade ./e2e/takeover
# Those that start a real node.
ON_CLUSTER := ./cluster ./cluster/... ./e2e/cluster
# The namespace of KubeVirt in the manifest for virt-operator.
NAMESPACE ?= kubevirt
GENERATED := ':(glob)api/**/zz_generated.*' api/client/clientset charts/stencil/files docs/reference rego/schema/files
# How many inputs a fuzz target tries. Not a time: the Go command reports the end of a duration as a failure now and then (go.dev/issue/75804).
FUZZTIME ?= 60000x
# Which fuzz targets, as a regular expression.
FUZZ ?= .

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what the other commands need of this host (as root, with apt-get; elsewhere it names the packages)
	@hack/preflight.sh --install libvirt guests qemu-img debian bare cluster

.PHONY: bare
bare: ## `make demo ARGS=--once` and `make test` as an ordinary user in a root file system that has only what the README names; needs root and debootstrap
	@hack/preflight.sh bare
	@hack/bare.sh $(ARGS)

.PHONY: demo
demo: ## a cluster with Stencil on loopback, and what it does (ARGS=--once ends after printing)
	@hack/preflight.sh
	@started=$$(date +%s); \
	[ -x bin/stencil-demo ] || echo "building the demo, which takes about a minute the first time"; \
	(cd test && go build -o ../bin/stencil-demo ./demo) && exec bin/stencil-demo -started=$$started $(ARGS)

.PHONY: test
test: ## the gate: unit tests, and the main end-to-end tests on an embedded control plane; what passed with the same inputs is left out (ALL=1 runs it)
	@hack/preflight.sh
	@hack/tool $(GATE_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && exec ../bin/tests -suite gate $(if $(ALL),,-changed)

.PHONY: test-full
test-full: ## what continuous integration runs after `make test`: the race detector, and the other end-to-end tests; needs root, libvirt and QEMU (CHANGED=1 leaves out what passed with the same inputs)
	@hack/preflight.sh libvirt guests qemu-img
	@hack/tool $(GATE_TOOLS) $(FULL_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && exec ../hack/guest.sh ../bin/tests -suite full $(if $(CHANGED),-changed)

.PHONY: cluster
cluster: ## a real cluster on this host: a node in namespaces of its own, KubeVirt and Stencil in pods, guests by emulation (ARGS="--demo --once" shows a login and ends); needs root and a containerd
	@hack/preflight.sh cluster
	@cd test && go build -o ../bin/stencil-cluster ./cluster/cmd/cluster && exec ../bin/stencil-cluster $(ARGS)

.PHONY: test-cluster
test-cluster: ## the end-to-end tests on a real cluster; needs root and a containerd
	@hack/preflight.sh cluster
	@hack/tool $(GATE_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && exec ../bin/tests -suite cluster

.PHONY: measure
measure: ## which packages of Stencil each package of end-to-end tests executes, into test/executed.txt (an hour); needs root, libvirt and QEMU
	@hack/preflight.sh libvirt guests qemu-img
	@hack/tool $(GATE_TOOLS) $(FULL_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && exec ../hack/guest.sh ../bin/tests -measure

.PHONY: record
record: ## write what has passed with the present inputs into test/passed.txt, which each landing commits
	@cd test && go build -o ../bin/tests ./runner && exec ../bin/tests -record

.PHONY: test-long
test-long: ## the tests that a release and changes of their subject have to pass in addition: more failures and timings, all packages with the race detector, releases and upgrades; needs root, libvirt and QEMU
	@hack/preflight.sh libvirt guests qemu-img
	@hack/tool $(GATE_TOOLS) $(FULL_TOOLS) $(LONG_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && ../hack/guest.sh ../bin/tests -suite long
	@$(MAKE) fuzz

.PHONY: e2e
e2e: ## some packages of tests, such as PACKAGES=./e2e/road RUN=TestCreate (IMAGES=1 runs the servers from images)
	@hack/preflight.sh $(if $(IMAGES),root) $(if $(filter $(ON_LIBVIRT),$(PACKAGES)),libvirt guests) $(if $(filter $(ON_CLUSTER),$(PACKAGES)),cluster)
	@cd test && go build -o ../bin/tests ./runner && exec ../bin/tests $(if $(RUN),-run '$(RUN)') $(if $(V),-v) $(if $(UPDATE),-update) $(if $(IMAGES),-images) $(PACKAGES)

.PHONY: test-images
test-images: ## the tests of the main path, of process and create, and of defaults with servers that run from the images of a release; needs root, libvirt and QEMU
	@hack/preflight.sh libvirt guests
	@hack/tool $(GATE_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && exec ../hack/guest.sh ../bin/tests -suite images

.PHONY: soak
soak: ## many captures at once, deleted at every step, and many restarts of the API server: up to an hour
	@hack/preflight.sh
	@hack/tool $(GATE_TOOLS) $(FULL_TOOLS) >/dev/null
	@cd test && go build -o ../bin/tests ./runner && STENCIL_SOAK=1 exec ../bin/tests ./e2e/restarts ./e2e/capture

.PHONY: test-matrix
test-matrix: ## the main path on other releases of Kubernetes and KubeVirt: hours; MATRIX="1.30.14/- -/1.9" and PACKAGES=./e2e/road for less
	@hack/preflight.sh
	@hack/matrix.sh $(PACKAGES)

.PHONY: oracle
oracle: ## layouts of the defaulter against those of KubeVirt's own converter, of each release, and in guests; STENCIL_SEEDS=10 for more (a first build takes minutes)
	@hack/preflight.sh libvirt guests
	@# Without a package go test shows what the tests count.
	@export CGO_ENABLED=1; for module in test/oracle test/oracle/v1.9; do \
		(cd $$module && go vet -tags $(TAGS) ./... && "$(CURDIR)/hack/guest.sh" go test -count=1 -tags $(TAGS) -timeout 50m) || exit 1; \
	done

.PHONY: lint
lint: ## static checks, the import rule among them, of the modules that have not passed with the present sources
	@hack/preflight.sh
	@cd test && go build -o ../bin/tests ./runner && exec ../bin/tests -lint
	@for script in hack/tool hack/*.sh .ci/run; do bash -n $$script || exit 1; done
	@hack/check-links.sh
	@hack/check-dependencies.sh

.PHONY: generate
generate: ## deepcopy code, the typed client, CRDs, reference docs and the chart's copies
	@hack/preflight.sh
	@hack/generate.sh

.PHONY: verify
verify: generate ## fail when generated files are not current
	@changed=$$(git status --porcelain -- $(GENERATED)) && [ -z "$$changed" ] || { \
		echo "generated files are not current; run \`make generate\` and commit:"; echo "$$changed"; exit 1; }

.PHONY: fuzz
fuzz: ## search with each fuzz target for FUZZTIME (60000x: so many inputs); the stored corpora are part of the unit tests
	@hack/preflight.sh
	@for folder in template approval rego template/validations apiserver/jsonschema ovf ovf/ova ovf/conversion disk/internal/inflate disk/vmdk disk/qcow2 disk/vhd disk/vhdx disk/rawzstd oci; do \
		for target in $$(grep -ho 'func Fuzz[A-Za-z]*' $$folder/*_test.go | cut -c6- | grep -E '$(FUZZ)'); do \
			echo "== $$target"; \
			(cd $$folder && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s .) || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## the benchmarks of docs/performance.md (ARGS=--write records them there)
	@hack/preflight.sh $(if $(findstring only,$(ARGS)),$(if $(findstring disks,$(ARGS)),qemu-img) $(if $(findstring defaulting,$(ARGS)),libvirt),libvirt qemu-img)
	@hack/tool $(GATE_TOOLS) $(FULL_TOOLS) >/dev/null
	@cd test && go run ./bench/cmd/bench $(ARGS)

.PHONY: build
build: ## stencil-manager, stencil-apiserver, stencil-mover, stencilctl and stencil-defaulter, into bin/
	@hack/preflight.sh
	@go build -trimpath -tags grpcnotrace -o bin/ ./cmd/...
	@cd cmd/stencil-defaulter && CGO_ENABLED=1 go build -trimpath -tags $(TAGS) -o ../../bin/ .

.PHONY: debian-image
debian-image: ## build the image of stencil-defaulter with Debian's packages, and run it (downloads them; needs root and gcc, on amd64)
	@hack/preflight.sh root debian
	@cd test && go build -o ../bin/tests ./runner && exec ../bin/tests -suite debian -v

.PHONY: debian-lock
debian-lock: ## the current versions of the Debian packages in the image of stencil-defaulter, and in the compilers, into their lock files (needs apt-get)
	@hack/preflight.sh debian
	@cd hack/release && go run . -root ../.. -debian-lock $(ARGS)

.PHONY: release
release: ## images, chart, stencilctl and checksums of VERSION=v0.1.0 for all platforms, into dist/release/, of the commit that is checked out (ARGS=-help for more)
	@hack/preflight.sh
	@[ -n "$(VERSION)" ] || { echo "name the version: make release VERSION=v0.1.0" >&2; exit 2; }
	@# The digests depend on the version of Go.
	@export GOTOOLCHAIN=$$(awk '$$1 == "toolchain" {print $$2}' hack/release/go.mod) && \
		(cd hack/release && go build -o ../../bin/release .) && exec bin/release -version $(VERSION) $(ARGS)

.PHONY: build-installer-virt-operator
build-installer-virt-operator: ## the manifest that KubeVirt's virt-operator can embed, and its permissions, into dist/ (NAMESPACE=kubevirt, ARGS="--set manager.image.tag=…")
	@hack/preflight.sh
	@hack/preflight.sh
	@go run ./hack/operatorbundle -helm "$$(hack/tool helm)" -namespace $(NAMESPACE) -- $(ARGS)
