# gpuslice: what can be done here. "make help" lists it.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Exported for all go commands, those of programs and tests too. Go would ask git for the revision, and fail in a checkout of another
# user. go test would vet what it tests, for which it reads some 1,000 packages once more: "make lint" runs all of vet.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath -buildvcs=false -vet=off
# go-nvml's header marks half of NVML as deprecated; a page of warnings hides real ones.
export CGO_CFLAGS := -Wno-deprecated-declarations
FUZZTIME ?= 10s
# The compiler collects its garbage less often: a fifth less CPU, for more memory. It changes nothing in what is built.
COMPILE := GOGC=400

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# With gRPC's tracing the linker keeps every method of every Kubernetes type: 20 MB.
BIN ?= bin
build: build-flags = -tags grpcnotrace -ldflags "$(LDFLAGS)"
build: ## build webhook, guard with the programs beside it, agent and command line into bin/
	CGO_ENABLED=0 go build $(build-flags) -o $(BIN)/gpuslice-webhook ./cmd/webhook
	CGO_ENABLED=0 go build $(build-flags) -o $(BIN)/gpuslice ./cmd/gpuslice
	CGO_ENABLED=1 go build $(build-flags) -o $(BIN)/gpuslice-guard ./cmd/guard
	CGO_ENABLED=0 go build $(build-flags) -o $(BIN)/gpuslice-exec ./cmd/exec
	CGO_ENABLED=1 go build $(build-flags) -o $(BIN)/gpuslice-prove ./cmd/prove
	CGO_ENABLED=1 go build $(build-flags) -o $(BIN)/gpuslice-agent ./cmd/agent

# What the Dockerfile copies. Nearly all licenses must go along with a program.
ARCH ?= $(shell go env GOARCH)
image-files:
	GOOS=linux GOARCH=$(ARCH) $(MAKE) build BIN=bin/linux/$(ARCH)
	rm -rf bin/licenses
	modules() { go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' "$$1"; }; \
	(echo github.com/gpuslice/gpuslice "$(CURDIR)"; echo std "$$(go env GOROOT)"; \
	  (GOOS=linux modules ./cmd/...; GOOS=windows modules ./cmd/gpuslice) | sort -u) | \
	while read -r module folder; do \
	  find "$$folder" -maxdepth 1 -type f \( -iname 'LICEN[CS]E*' -o -iname 'COPYING*' -o -iname 'NOTICE*' \) \
	    -exec install -D -m 644 -t "bin/licenses/$$module" {} +; done

builder = $(shell for b in $(or $(BUILDER),docker podman buildah); do $$b info > /dev/null 2>&1 && echo $$b && break; done)
images: ## build the container images by docker, podman or buildah, and push them to REGISTRY=HOST/PATH if that is set (CC=aarch64-linux-gnu-gcc ARCH=arm64 for others)
	@test "$(builder)" || { echo "no builder of images answers: start Docker, or install podman or buildah (BUILDER=PROGRAM names another)" >&2; exit 1; }
	$(MAKE) image-files
	for image in webhook guard agent cli; do name="$(or $(REGISTRY),gpuslice)/$$image:$(VERSION)"; \
	  $(builder) build --platform linux/$(ARCH) --target "$$image" --tag "$$name" --label "org.opencontainers.image.version=$(VERSION)" \
	    --label "org.opencontainers.image.revision=$$(git rev-parse HEAD 2>/dev/null || true)" $(BUILDFLAGS) .; \
	  $(if $(REGISTRY),$(builder) push "$$name";) done

run: ## show it in a minute: a pod goes past its slice, pods come out in slices (V=1 diffs, POD=my.yaml yours, CLUSTER=1 on a real node, KEEP=1 leaves it up)
	$(COMPILE) go build -ldflags "-s -w" -o bin/demo ./test/demo/$(if $(or $(CLUSTER),$(KEEP)),node,run)
	./bin/demo $(if $(POD),-pod "$(POD)") $(if $(V),-v) $(if $(KEEP),-keep)

# Compiled first, with a line for each 100 packages: go test is silent until its first package is done.
test: ## unit tests, scenarios, import rules: no root, no cluster, no GPU
	@echo "compiling (the first time some 1,000 packages)"
	@$(COMPILE) go build -v $$(go list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./...) 2>&1 \
	| awk 'NF > 1 {print; next} ++n % 100 == 0 {print "  " n " packages compiled"; fflush()}'
	$(COMPILE) go test -exec "env -u GOGC" ./...

# GOENV alone is kept: it may name a module proxy.
fresh: ## README's commands on what is committed, each in a clone and a home of its own without caches (FRESH=run: that one alone)
	@place=$$(mktemp -d); trap 'chmod -R u+w "$$place"; rm -rf "$$place"' EXIT; kept=$$(go env GOENV); \
	for command in $(or $(FRESH),run test); do \
	  git clone --quiet . "$$place/$$command/gpuslice"; \
	  env -u MAKEFLAGS -u MAKELEVEL -u GOCACHE -u GOMODCACHE -u GOPATH -u GPUSLICE_CACHE -u XDG_CACHE_HOME -u XDG_CONFIG_HOME \
	    HOME="$$place/$$command" GOENV="$$kept" make -C "$$place/$$command/gpuslice" "$$command"; \
	done

test-race: ## the tests of webhook, guard, policies and cmd that need no cluster, under the race detector (needs a C compiler; about 11 minutes)
	CGO_ENABLED=1 go test -race -count=1 -timeout 20m ./webhook/... ./guard/... ./policies/... ./cmd/...

# Packages beside test/ with tests that start an API server. Those tests are named ...OnAPIServer; the others ran in "make test".
apiserver-packages = $(sort $(dir $(shell grep -rl --include='*_test.go' 'cluster[.]ForTest' certs cmd webhook)))
# The tests of ./test/apiserver wait more than they compute: they run in two halves, each with its own API server.
test-apiserver: cluster ## the scenarios, the public pods, the chart and the rotation of certificates on a real API server
	go run ./test/cluster/cmd/build -cert-manager -prometheus > /dev/null
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 30m ./test/apiserver -run '^Test[A-F]' & half=$$!; \
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 30m ./test/apiserver -skip '^Test[A-F]' || failed=1; \
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 30m ./test/cluster ./test/chart ./test/rotation ./test/observability || failed=1; \
	wait $$half && test -z "$${failed:-}"
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 20m $(addprefix ./,$(apiserver-packages)) -run 'OnAPIServer$$'

# The tests that webhook/THREATS.md names.
attacks = ^($$(grep -o 'Test[A-Za-z0-9]*' webhook/THREATS.md | sort -u | paste -sd '|'))$$
abuse abuse-table: export GPUSLICE_ABUSE ?= $(CURDIR)/out/abuse
abuse: cluster ## every attack of webhook/THREATS.md, carried out, and a table of what became of each (as root; needs what e2e needs)
	rm -rf "$$GPUSLICE_ABUSE"
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 20m ./test/apiserver ./webhook/leader/observe -run "$(attacks)"
	GPUSLICE_TEST=node go test -count=1 -timeout 20m -parallel 4 ./test/e2e -run "$(attacks)"
	$(MAKE) abuse-table

abuse-table: ## the rest of the attacks, which need no cluster, and the table: after test-apiserver and e2e it repeats nothing
	go test -count=1 ./policies/... ./webhook/... ./guard/... ./cmd/agent -run "$(attacks)"
	go run ./test/abuse/table "$$GPUSLICE_ABUSE"

test-matrix: ## what has several versions: each supported Helm on each supported Kubernetes, test/apiserver on the newest, NVIDIA's newest plugin, NVIDIA's DRA driver, Karpenter, Kueue, KubeRay, Argo Workflows (as root; the first time: 40 minutes)
	GPUSLICE_TEST=apiserver,matrix go test -count=1 -v -timeout 60m -run 'TestMatrix$$|TestKarpenter$$|TestClusterAutoscaler$$|TestKueue|TestRay$$|TestArgoWorkflows$$' ./test/chart ./test/autoscalers ./test/controllers
	GPUSLICE_TEST=apiserver,newest go test -count=1 -timeout 20m ./test/apiserver
	GPUSLICE_TEST=node,matrix go test -count=1 -v -timeout 30m -p 1 -run 'TestGranular$$|TestNVIDIADriver$$' ./test/e2e ./test/dra

test-load: cluster ## quotas under load and faults: three replicas, real API server, 24 seeds (about 4 minutes)
	GPUSLICE_TEST=apiserver go test -count=1 -v -timeout 20m ./test/load

test-ops: cluster ## restarts, upgrades, outages, hostile reviews and a soak, scaled to minutes (needs git's history for the previous release)
	GPUSLICE_TEST=apiserver go test -count=1 -v -timeout 20m ./test/ops

e2e: ## gpuslice on a real node, as root: kubelet, containerd, runc, NVIDIA's plugin on a simulated GPU (E2E_OPTIONAL=1 skips where none can run)
	go run ./test/cluster/cmd/build -node -cert-manager -prometheus > /dev/null
	GPUSLICE_TEST=node go test -count=1 -timeout 20m ./test/cluster/...
	GPUSLICE_TEST=node go test -count=1 -timeout 20m -parallel 6 ./test/e2e -skip '^TestAgent'
	GPUSLICE_TEST=node go test -count=1 -timeout 20m -parallel 4 ./test/e2e -run '^TestAgent'
	GPUSLICE_TEST=node go test -count=1 -timeout 20m ./test/chart -run '^TestPages$$' & pages=$$!; \
	GPUSLICE_TEST=node go test -count=1 -timeout 20m -p 2 ./test/chart ./test/dra ./test/observability ./test/cdi -skip '^TestPages$$' || failed=1; \
	wait $$pages && test -z "$${failed:-}"

test-cgroupv2: ## guard and agent on Debian's kernel with cgroup v2 alone, in QEMU without KVM or root (E2E_OPTIONAL=1 skips where there is none)
	GPUSLICE_TEST=vm go test -count=1 -timeout 10m ./test/cgroupv2

test-images: ## the images that users get: the Dockerfile, built by buildah on Debian's packages, and the programs in them, run (as root)
	GPUSLICE_TEST=images go test -count=1 -timeout 20m ./test/images

MUTATE ?= guard guard/idle guard/limits webhook/ledger webhook/admission/budgets policies/quota=policies policies/promise=policies policies/accounting=policies policies/internal/plan=policies
mutants: ## change one comparison, boolean or loop of MUTATE's packages at a time, and list what no test notices (N=40 of each; PACKAGE=OTHER runs OTHER's tests, too)
	go run ./test/mutants -n $(or $(N),40) $(MUTATE)

functions: ## how many functions of the project answer one review of a pod: an error where they are more than they may be
	go run -cover -covermode=atomic -coverpkg=github.com/gpuslice/gpuslice/... ./test/functions

removal: ## each wing (test/removal/wings) comes off: what remains builds and passes its unit tests
	$(COMPILE) test/removal/removal.sh

programs: ## build all that test-apiserver and e2e run: as cluster, and cert-manager, Prometheus, containerd, runc, NVIDIA's plugin
	go run ./test/cluster/cmd/build -node -cert-manager -prometheus > /dev/null

cluster: ## build etcd, kube-apiserver, kubectl and helm into the cache (the first time: about eight minutes, 5 GiB)
	go run ./test/cluster/cmd/build > /dev/null

# Before Go 1.27, go test -fuzz that has found nothing sometimes fails as its time ends, with "context deadline exceeded" and no
# failing input (https://go.dev/issue/75804). That is no finding.
fuzz: ## every fuzz target for FUZZTIME (default 10s) each
	@programs=$$(mktemp -d); trap 'rm -rf "$$programs"' EXIT; failed=; cache=$$(go env GOCACHE)/fuzz; \
	for d in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  $(COMPILE) go test -c -fuzz . -o "$$programs/fuzz" $$d; package=$$(go list $$d); \
	  for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$d/*_test.go); do \
	    if out=$$(cd $$d && "$$programs/fuzz" -test.run '^$$' -test.fuzz "^$$t\$$" -test.fuzztime $(FUZZTIME) \
	      -test.fuzzcachedir "$$cache/$$package" 2>&1); then echo "$$t: $$(grep '^fuzz: elapsed' <<< "$$out" | tail -1)"; \
	    elif grep -qx ' *context deadline exceeded' <<< "$$out" && ! grep -q 'Failing input\|panic\|_test.go:' <<< "$$out"; then echo "$$t: found nothing until its time was up"; \
	    else echo "$$t fails:"; echo "$$out"; failed="$$failed $$t"; fi; done; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

golden: ## rewrite what the scenarios want, for review in the diff
	go test ./policies -run TestEveryScenario -update
	go test ./cmd/gpuslice ./cmd/gpuslice/fleet ./test/commandline -update
	go test ./policies/config -run 'Schema|Reference' -update

manifests: ## rewrite what is made of deploy/*.yaml: the chart's templates, the kustomization, the alerts; and the pages of metrics
	go test ./deploy -run TestDerivedFiles -update
	go test ./cmd/webhook ./cmd/guard ./cmd/agent -run MetricsPage -update

bench: cluster ## figures: deciding, pod creates with and without us and without each part, the command line's start; 20 minutes
	go test ./test/bench ./webhook/admission/pods ./webhook/admission/cluster -run "^$$" -bench . -benchmem -count 5
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 30m ./test/bench -run 'TestPrint(PodCreates|PartsOf(ASlice|Gpuslice)|CommandLineStart|WhatAReplicaUses)' -v

plan-trace: ## GPUs and waiting pods of the trace openb by layout, and best fit against what its authors published, on TRACES=DIR
	GPUSLICE_TRACES="$(abspath $(TRACES))" go test -count=1 -v -run '^TestTrace' ./cmd/gpuslice/fleet/plan

backtest: ## how often recommended sizes are exceeded, on TRACES=DIR and on generated histories that are hard (JSON=FILE writes the figures)
	go run ./test/backtest -traces "$(TRACES)" $(if $(JSON),-json "$(JSON)")

bench-quota: cluster ## figures: pod creates under a quota, beside no webhook, one that only answers, and a ResourceQuota, with GPUSLICE_CROWDS (default 0,5000) pods there
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 30m ./test/bench -run TestPrintQuotaCreates -v

bench-ops: cluster ## figures: the same at full size and latency, about an hour and SOAK (default 10m)
	GPUSLICE_TEST=apiserver go test -count=1 -timeout 30m ./test/bench -run 'TestPrint(LatencyAtAPace|QuotaCreates)' -v
	GPUSLICE_TEST=long go test -count=1 -timeout 20m ./test/model -run TestTwoWatches -v
	GPUSLICE_TEST=apiserver,long GPUSLICE_SOAK=$(or $(SOAK),10m) go test -count=1 -timeout 6h ./test/ops -v

bench-check: cluster ## compare a create's cost with the previous release in one run; fails beyond GPUSLICE_MARGIN (default 1.2)
	GPUSLICE_TEST=apiserver,long go test -count=1 -timeout 20m ./test/bench -run TestCostBesidePreviousRelease -v

bench-scale: ## figures and curves: replicas beside generated clusters of up to 5,000 nodes and 100,000 pods, beside the largest objects, and 200 ledgers; half an hour, 4 GiB
	GPUSLICE_TEST=long GPUSLICE_CURVES=growth.svg go test -count=1 -timeout 40m ./test/bench -run 'TestPrint(Scale|Largest|Ledgers)' -v

bench-recommend: ## figures of recommend: 10,000 workloads of a month from files, 200,000 series from a real Prometheus; minutes, 3 GiB, 3 GB of disk
	go test ./cmd/gpuslice/fleet/recommend -run "^$$" -bench Month -benchtime 1x
	GPUSLICE_TEST=apiserver,long go test -count=1 -timeout 30m ./test/observability -run TestRecommendMany -v

bench-guard: ## figures of the guard: size, memory, CPU, time to end
	go run ./test/bench/guard

gpu: ## on a machine with an NVIDIA GPU, as root: which sentences hold on this card, in at most 8 minutes (needs bin/ alone; out/gpu takes the table)
	test/gpu/run $(BIN)

GOVULNDB ?= https://vuln.go.dev
lint: ## gofmt, go vet, golangci-lint, actionlint, and govulncheck where its database can be reached
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	go vet ./...
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.9 -shellcheck= -pyflakes=
	@if curl --silent --fail --location --max-time 10 --output /dev/null "$(GOVULNDB)/index/db.json"; \
	then go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db "$(GOVULNDB)" ./...; \
	else echo "govulncheck is not run: its database $(GOVULNDB) cannot be reached"; fi

.PHONY: help build image-files images run test fresh test-race functions removal mutants abuse abuse-table plan-trace test-apiserver test-matrix test-load test-ops test-images test-cgroupv2 e2e programs cluster fuzz golden manifests bench bench-quota bench-ops bench-check bench-scale bench-recommend bench-guard gpu lint
