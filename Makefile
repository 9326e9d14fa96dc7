# Everything that a developer or CI does with sandplan. `make demo` and `make test` are the two
# commands of the README: on Debian as root they install and start what is missing.
.DEFAULT_GOAL := build
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

GO := $(shell scripts/toolchain)
ifeq ($(GO),)
$(error no Go toolchain; see the message above)
endif
export GOTOOLCHAIN := local
export PATH := $(dir $(GO)):$(PATH)

VERSION ?= 0.1.0-dev
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Static, so that the same file is sandplan on the host and the proxy and the shim in containers.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
FUZZTIME ?= 30s

.PHONY: build
build: ## the static binary, bin/sandplan
	$(BUILD) -o bin/sandplan ./cmd/sandplan

# Packages that do one thing after another, and much of it: the race detector would only slow them down.
SEQUENTIAL := hclspec|planner|cmd/sandplan/crash|testfixtures|applier/races

# The go command would repeat what a test said of another engine and another program: it knows neither.
.PHONY: test
test: modules engine tools ## every test, on the real engine
	$(GO) test -count=1 -timeout 14m $$($(GO) list ./... | grep -E '/($(SEQUENTIAL))(/|$$)')
	@mkdir -p bin && rm -f bin/census
	SANDPLAN_CENSUS=$(CURDIR)/bin/census $(GO) test -race -count=1 -timeout 14m $$($(GO) list ./... | grep -vE '/($(SEQUENTIAL))(/|$$)')
	@cat bin/census 2>/dev/null || echo 'census: not run anew'
	@$(MAKE) --no-print-directory clients

.PHONY: test-engines
test-engines: build ## the engine suites on three engines side by side; writes docs/engines.md
	scripts/test-engines

.PHONY: test-vendors
test-vendors: engine build ## the real CLIs of both vendors against a mock; fetches their npm packages
	scripts/test-vendors

.PHONY: vendor-matrix
vendor-matrix: engine build ## the same proof for the pinned versions and the newest on npm; prints a table
	scripts/vendor-matrix

.PHONY: demo
demo: engine build ## the whole loop on the real engine, without internet
	scripts/demo

# BENCHFLAGS=-only=run takes a part of it.
.PHONY: bench
bench: engine build ## sandplan beside the bare engine calls that it needs; fails on a missed goal
	$(GO) test -run '^$$' -bench . -benchtime 1s ./planner
	$(GO) run ./testfixtures/bench -sandplan bin/sandplan $(BENCHFLAGS)

# Fails on a missed goal. squid and tinyproxy are installed and never enabled: the bench starts its own.
# BENCHFLAGS='-rows=throughput -rounds=3' takes a part of it.
.PHONY: bench-proxy
bench-proxy: build ## the proxy beside squid, tinyproxy and bare relays, on loopback; fails on a missed goal
	@PATH=$$PATH:/usr/sbin; { command -v squid && command -v tinyproxy; } >/dev/null || { \
	  echo 'installing squid and tinyproxy'; \
	  RUNLEVEL=1 scripts/apt-install squid tinyproxy-bin >/dev/null; }
	$(GO) run ./testfixtures/benchproxy -sandplan bin/sandplan $(BENCHFLAGS)

SOAKTIME ?= 10m
MANY ?= 500
.PHONY: many
many: engine build ## one project with MANY (500) invocations: plan, apply, drift, destroy, and nothing left behind
	$(GO) run ./testfixtures/many -sandplan bin/sandplan -n $(MANY)

.PHONY: test-many
test-many: engine tools ## 20 agents at once by one command; make test has 4
	SANDPLAN_TEST_FULL=1 $(GO) test -count=1 -timeout 20m -v -run '^TestRealMany$$' ./applier/launch

.PHONY: soak
soak: many ## 500 invocations on the real engine, then the proxy under resets, half-closes, slow readers and 5,000 idle tunnels, for SOAKTIME (10m)
	SANDPLAN_SOAK=$(SOAKTIME) $(GO) test -count=1 -timeout 30m -v -run '^TestSoak$$' ./providers/docker/egress

# curl, wget, git and Python from Debian, Node 24 from npm: older ones know no proxy in fetch.
CLIENTS := bin/clients
NODE := node-linux-$(if $(filter aarch64,$(shell uname -m)),arm64,x64)
.PHONY: clients
clients: ## curl, wget, git, npm, Node and Python through the proxy
	@for c in curl wget git python3 npm; do command -v $$c >/dev/null || missing=1; done; [ -z "$${missing:-}" ] || \
	  scripts/apt-install curl wget git python3 npm >/dev/null
	scripts/again npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(CLIENTS) $(NODE)@24.22.3
	PATH=$(CURDIR)/$(CLIENTS)/node_modules/$(NODE)/bin:$$PATH $(GO) test -tags sandplanclients -count=1 -run '^TestRealClients$$' ./providers/docker/egress

.PHONY: races
races: tools ## every mutation and every fault at every call of a run, an apply and a destroy, on an engine in memory
	$(GO) test -race -count=1 -timeout 60m ./applier/races -full

.PHONY: record-engines
record-engines: ## what three engines answer, for the engine in memory to be held to
	scripts/engines up
	for engine in 20.10 26.1 28.5; do scripts/engines run $$engine go test -count=1 ./providers/docker/dockertest -run '^TestRecord$$' -record; done

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (30s)
	scripts/fuzz $(FUZZTIME)

# What `make test` leaves out, and the build for tests.
TAGS := vendors sandplantest sandplanclients

.PHONY: release
release: ## dist/: static linux binaries for amd64 and arm64, each built twice, with SBOM and checksums
	scripts/release

.PHONY: lint
lint: modules ## gofmt, vet, staticcheck; and that what works anywhere builds elsewhere
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  if [ -n "$$unformatted" ]; then printf 'not gofmt-ed:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags '$(TAGS)' ./...
	@scripts/again $(GO) run $(STATICCHECK) -version >/dev/null
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags '$(TAGS)' ./...
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/sandplan

# The go command does not try again what it could not fetch. What is there already costs a second.
.PHONY: modules
modules:
	@scripts/again $(GO) list -deps -test -tags '$(TAGS)' ./... >/dev/null

.PHONY: engine
engine:
	scripts/engine

# The race detector needs a C compiler; tests change routes and links with ip, to see that it is noticed, run a
# workflow's curl, and hold JUnit to its schema with xmllint.
.PHONY: tools
tools:
	@missing=; \
	command -v gcc >/dev/null || command -v cc >/dev/null || missing='gcc libc6-dev'; \
	PATH=$$PATH:/usr/sbin:/sbin command -v ip >/dev/null || missing="$$missing iproute2"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	command -v xmllint >/dev/null || missing="$$missing libxml2-utils"; \
	[ -z "$$missing" ] || { \
	  echo "installing $$missing for the tests"; \
	  scripts/apt-install $$missing >/dev/null; }

.PHONY: help
help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18
