# Everything a contributor types. CI runs `make test` and nothing else.
# Needs Go, make, git and Python 3.11 with pip; the rest is fetched or built once into ~/.cache/mnemo.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ifeq ($(shell command -v go),)
$(error Go is not in the PATH: install Go 1.26 or newer, or put its bin directory in the PATH)
endif

# One set of build settings for the product, its tests, the tools and the images, so that all share one build cache.
# The local embedder's kernels use Go's simd package: an experiment, on amd64 only. Other machines run plain Go.
ifeq ($(shell go env GOARCH),amd64)
export GOEXPERIMENT := simd
endif
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

TOOL := hack/tool.sh
TESTSUM := $(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --

# Packages whose tests need nothing running: they do not ask internal/testkit for a part.
unit = ./test/texts $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.TestImports}} {{.XTestImports}}{{end}}' ./... \
	| grep -v -e /internal/testkit -e /postgrestest -e mnemo/test/ -e /hack/ | cut -d' ' -f1)
# Without what runs nothing at the same time and is slow: parsers of big exports, and the tokenizer, whose vocabulary takes
# the compiler minutes and gigabytes with the race detector.
raced = $(filter-out %/internal/tokens %/internal/chatexport,$(unit))

# Everything, but the tests on a real node for who is not root: they need it for namespaces, mounts and control groups.
everything = $(if $(filter 0,$(shell id -u)),./...,$(filter-out %/test/cluster,$(shell go list ./...)))

##@ Run it here

.PHONY: up
up: ## The whole platform on this machine, from real parts, until Ctrl-C (PORT=8080)
	@go build -o bin/up ./hack/up && exec bin/up up $(if $(PORT),-port $(PORT))

.PHONY: down
down: ## Stop what `make up` left running after a crash
	@go run ./hack/up down

.PHONY: reset
reset: ## make down, and remove the data
	@go run ./hack/up reset

.PHONY: cluster
cluster: ## A real one-node Kubernetes on this machine with the chart installed; needs root
	@go build -o bin/cluster ./hack/cluster && exec bin/cluster up

.PHONY: cluster-down
cluster-down: ## Take it down, data and all, and look for anything that is left
	@go build -o bin/cluster ./hack/cluster && exec bin/cluster down

##@ Change it

.PHONY: build
build: ## bin/mnemo
	go build -o bin/mnemo ./cmd/mnemo

.PHONY: generate
generate: ## Regenerate SQL code, deep copies, CRD, RBAC, api/openapi.json and its client
	@hack/generate.sh

.PHONY: fmt
fmt: ## Format Go code
	@$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## Format, vet, lint and import rules (.golangci.yml)
	@$(TOOL) golangci-lint run --allow-parallel-runners

.PHONY: unit
unit: ## The tests that need nothing running
	@$(TESTSUM) $(unit)

.PHONY: check
check: lint unit ## The fast part of `make test`, for every commit

##@ Test it

.PHONY: test
test: verify race ## Everything CI runs: verify, then every test on real parts; as root on a real node too
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest $(if $(filter 0,$(shell id -u)),-node) -- $(TESTSUM) -count=1 -timeout 20m $(everything)

.PHONY: cluster-test
cluster-test: ## The life of an installation on a real node, from helm install to uninstall; needs root
	@$(TESTSUM) -count=1 -timeout 20m ./test/cluster

.PHONY: verify
verify: ## Check generated files, modules, commit subjects, format, vet and lint
	@hack/commits.sh
	@hack/verify.sh
	@go mod tidy -diff
	@go vet ./...
	@$(MAKE) lint

# The race detector needs a C compiler, which we do not ask our users for. Building Go's own C part is the question.
.PHONY: race
race: ## The unit tests again with the race detector, where there is a C compiler
	@if CGO_ENABLED=1 go build -race runtime/cgo 2>/dev/null; then \
		CGO_ENABLED=1 $(TESTSUM) -race $(raced); \
	else \
		echo "no C compiler here: the unit tests run without the race detector"; \
	fi

.PHONY: contract
contract: ## The table of routes and statuses, with the test that holds each of them
	@go build -o bin/hacktest ./hack/test && bin/hacktest -only postgres,milvus,model -- \
		go test -count=1 ./apiserver -contract $(CURDIR)/bin/contract.md >&2 && cat bin/contract.md

.PHONY: fuzz-api
fuzz-api: ## Look for answers that break the contract for long, on a platform of its own (FOR=30m)
	@go test ./test/e2e -count=1 -timeout 0 -v -run '^TestContract$$' -fuzz-api $(or $(FOR),30m)

.PHONY: bench
bench: ## Benchmarks, on the real parts
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -- go test -run '^$$' -bench . -benchmem ./internal/...

.PHONY: bench-tenants
bench-tenants: ## A thousand Tenants at once, and then nothing to do (TENANTS=1000 IDLE=10m)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only postgres,milvus,kube -- \
		go test -count=1 -timeout 2h -v -run '^TestManyTenants$$' ./test/scale \
		-args -tenants $(or $(TENANTS),1000) -idle $(or $(IDLE),10m) -ratio 1.5 -alone -patience 30m

.PHONY: vuln
vuln: ## Known vulnerabilities in what we use (asks vuln.go.dev)
	@$(TOOL) govulncheck ./...

.PHONY: help
help: ## This text
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
