# The commands of a contributor. CI runs `make test` and nothing else.
# Needs Go, make, git, Maven and Python 3.11 with pip; everything else is downloaded or built once into ~/.cache/mnemo.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ifeq ($(shell command -v go),)
$(error Go is not in the PATH: install Go 1.26 or newer, or put its bin directory in the PATH)
endif

# One set of build settings for the product, its tests, the tools and the images, so that all share one build cache.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

TOOL := hack/tool.sh
TESTSUM := $(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --

# Packages whose tests need no running dependencies: they do not use internal/testkit.
unit = ./test/texts $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.TestImports}} {{.XTestImports}}{{end}}' ./... \
	| grep -v -e /internal/testkit -e /postgrestest -e mnemo/test/ -e /hack/ | cut -d' ' -f1)
# Excludes slow packages without concurrency: tests of texts, documents and scripts, parsers of large exports, and the tokenizer,
# whose vocabulary takes the compiler minutes and gigabytes with the race detector.
raced = $(filter-out ./test/texts %/docs %/hack %/internal/tokens %/internal/chatexport,$(unit))

# All packages. Only root runs the tests on a real node, which need namespaces, mounts and control groups.
everything = $(if $(filter 0,$(shell id -u)),./...,$(filter-out %/test/cluster,$(shell go list ./...)))

##@ Run

.PHONY: up
up: ## Run Mnemo and its dependencies on this machine until Ctrl-C (PORT=8080)
	@go build -o bin/up ./hack/up && exec bin/up up $(if $(PORT),-port $(PORT))

.PHONY: dev
dev: ## Run Mnemo for one user on PostgreSQL alone, without Kubernetes and Milvus, until Ctrl-C (PORT=8080)
	@go build -o bin/dev ./hack/dev && exec bin/dev $(if $(PORT),-port $(PORT))

.PHONY: sign-in
sign-in: ## Print another one-time link that signs in to the dashboard of make up
	@. .mnemo/up.env && bin/mnemo sign-in-link --tenant default/acme --user alice

.PHONY: tour
tour: ## Take a picture of each step of docs/tour.md and write bin/tour/index.html
	@go build -o bin/hacktest ./hack/test && MNEMO_SCREENSHOTS=$(CURDIR)/bin bin/hacktest -only postgres,milvus,model,chromium,oidc -- \
		go test -count=1 ./apiserver/dashboard -run '^TestDashboard$$/^Tour$$'
	@echo "bin/tour/index.html"

.PHONY: down
down: ## Stop processes that `make up` or `make dev` left after a crash
	@go run ./hack/up down

.PHONY: reset
reset: ## Run make down and delete the data
	@go run ./hack/up reset

.PHONY: cluster
cluster: ## Run a one-node Kubernetes cluster with the chart installed; needs root
	@go build -o bin/cluster ./hack/cluster && exec bin/cluster up

.PHONY: cluster-down
cluster-down: ## Delete the cluster and its data, and report leftovers
	@go build -o bin/cluster ./hack/cluster && exec bin/cluster down

##@ Develop

.PHONY: build
build: ## Build bin/mnemo
	go build -o bin/mnemo ./cmd/mnemo

.PHONY: generate
generate: ## Regenerate schema.sql, SQL code, deep copies, CRD, RBAC, api/openapi.json, its client and the SDKs
	@hack/generate.sh

.PHONY: fmt
fmt: ## Format Go code
	@$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## Check format, vet, lint and import rules (.golangci.yml)
	@$(TOOL) golangci-lint run --allow-parallel-runners

.PHONY: unit
unit: ## Run the tests without dependencies
	@$(TESTSUM) $(unit)

.PHONY: check
check: lint unit ## Run the fast part of `make test`, for every commit

##@ Release

.PHONY: sdk
sdk: ## Build the Python and npm packages into bin/sdk (VERSION=0.0.0)
	@go run ./hack/sdk/build $(or $(VERSION),0.0.0) bin/sdk && ls bin/sdk

.PHONY: changelog
changelog: ## Move the fragments in docs/changelog to the section of a version in CHANGELOG.md (VERSION=1.2.3)
	@go run ./hack/changelog/join "$(VERSION)"

.PHONY: release
release: ## Build the files, images, chart, OLM bundle and SDKs of a release into dist (VERSION=1.2.3 PUSH=true REGISTRY=ghcr.io/mnemo-dev)
	@rm -rf dist && go run ./hack/release --version "$(VERSION)" $(if $(REGISTRY),--registry "$(REGISTRY)") $(if $(filter true,$(PUSH)),--push)

##@ Test

.PHONY: test
test: verify race ## Run everything that CI runs: verify, then all tests with real dependencies; as root on a real node too
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest $(if $(filter 0,$(shell id -u)),-node) -- $(TESTSUM) -count=1 -timeout 40m $(everything)

.PHONY: cluster-test
cluster-test: ## Test an installation on a real node, from helm install to uninstall; needs root
	@$(TESTSUM) -count=1 -timeout 20m ./test/cluster

.PHONY: verify
verify: ## Check generated files, modules, workflows, commit subjects, format, vet and lint
	@hack/commits.sh
	@$(TOOL) actionlint
	@hack/verify.sh
	@go mod tidy -diff
	@go vet ./...
	@$(MAKE) lint

# The race detector needs a C compiler, which is optional. Building Go's own C code shows whether there is one.
.PHONY: race
race: ## Run the unit tests with the race detector, if there is a C compiler
	@if CGO_ENABLED=1 go build -race runtime/cgo 2>/dev/null; then \
		CGO_ENABLED=1 $(TESTSUM) -race $(raced); \
	else \
		echo "no C compiler here: the unit tests run without the race detector"; \
	fi

.PHONY: contract
contract: ## Print the routes and statuses with the test of each
	@go build -o bin/hacktest ./hack/test && bin/hacktest -only postgres,milvus,model -- \
		go test -count=1 ./apiserver -contract $(CURDIR)/bin/contract.md >&2 && cat bin/contract.md

.PHONY: fuzz-api
fuzz-api: ## Fuzz the API for responses that violate the contract (FOR=30m)
	@go test ./test/e2e -count=1 -timeout 0 -v -run '^TestContract$$' -fuzz-api $(or $(FOR),30m)

.PHONY: fuzz
fuzz: ## Fuzz every parser, one after the other (TIME=10m NAME=FuzzHTTP)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only postgres,model -- hack/fuzz.sh $(or $(TIME),10m) $(NAME)

.PHONY: bench
bench: ## Compare Mnemo with raw calls, mem0 and LangGraph (SIZES=200,2000 N=200 JSON=), or with mem0 in a mix of 1,000 users (MIX=1)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -durable -only postgres,milvus,model,mnemo -- \
		go test -count=1 -timeout 0 -v -run '^$(if $(MIX),TestMix,TestBench)$$' ./test/bench -args -full $(if $(SIZES),-sizes $(SIZES)) $(if $(N),-n $(N)) $(if $(JSON),-json $(abspath $(JSON)))

.PHONY: bench-go
bench-go: ## Run the Go benchmarks with real dependencies
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -- go test -run '^$$' -bench . -benchmem ./internal/... ./test/bench ./test/retrievalbench

.PHONY: bench-retrieval
bench-retrieval: ## Measure retrieval on LoCoMo and BEAM files (DATA=a.json,b.json URL= TOKEN= JSON=)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only $(if $(URL),model,postgres,milvus,model,mnemo) -- \
		go test -count=1 -timeout 4h -v -run '^TestRetrieval$$' ./test/retrievalbench \
		-args -data '$(DATA)' -url '$(URL)' -token '$(TOKEN)' -json '$(if $(JSON),$(abspath $(JSON)))' $(if $(THRESHOLD),-threshold $(THRESHOLD))

.PHONY: bench-tenants
bench-tenants: ## Reconcile a thousand Tenants at once, then measure idling (TENANTS=1000 IDLE=10m)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only postgres,milvus,kube,mnemo -- \
		go test -count=1 -timeout 2h -v -run '^TestManyTenants$$' ./test/scale \
		-args -tenants $(or $(TENANTS),1000) -idle $(or $(IDLE),10m) -ratio 1.5 -alone -patience 30m

.PHONY: bench-users
bench-users: USERS ?= 10,1000,100000
bench-users: ## Compare few and many users of an application (USERS=10,1000,100000 WRITES=200)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only postgres,milvus,kube,mnemo -- \
		go test -count=1 -timeout 2h -v -run '^TestApplicationUsers$$' ./test/scale \
		-args -users $(USERS) -first-writes $(or $(WRITES),200) -patience 5m

.PHONY: bench-scale
bench-scale: ## Measure scaling curves (CURVE=units,unindexed,tenants,users,concurrency,writes LIMIT=20000 N=500 JSON=)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -durable -only postgres,milvus,model,mnemo -- \
		go test -count=1 -timeout 0 -v -run '^TestScale$$' ./test/bench \
		-args -full -n $(or $(N),500) $(if $(CURVE),-curve $(CURVE)) $(if $(LIMIT),-limit $(LIMIT)) $(if $(JSON),-json $(abspath $(JSON)))

.PHONY: faults
faults: ## Run the platform under load and faults and check that no data is lost (DURATION=1h SEED=1)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only postgres,milvus,kube,mnemo -- \
		go test -count=1 -timeout 0 -v -run '^TestFaults$$' ./test/faults -args -duration $(or $(DURATION),1h) -seed $(or $(SEED),1) -users 6

.PHONY: overload
overload: ## Send twice the sustainable rate of requests, then hostile inputs (DURATION=30m)
	@go build -o bin/hacktest ./hack/test && exec bin/hacktest -only postgres,milvus,kube,mnemo -- \
		go test -count=1 -timeout 0 -v -run '^(TestOverload|TestHostileInputs)$$' ./test/faults -args -overload $(or $(DURATION),30m)

.PHONY: vuln
vuln: ## Check dependencies for known vulnerabilities (vuln.go.dev)
	@$(TOOL) govulncheck ./...

.PHONY: help
help: ## Show this text
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
