# Needs Go 1.26 or newer, Python 3 and make. Everything else is fetched, pinned, into .tools/.

GO     ?= go
PYTHON ?= python3
FUZZTIME  ?= 1m
# More arguments for go test, e.g. make test TESTFLAGS='-run TestRing -v'
TESTFLAGS ?=

# Where make install puts the binary; DESTDIR comes before it.
PREFIX  ?= /usr/local
DESTDIR ?=

BIN   = bin/perfagent
READY = .tools/ready
ENGINES = .tools/engines
PEERS = .tools/peers/installed
FLOOR = .tools/floor/installed
KUBERNETES = .tools/kubernetes/installed
PLATFORMS = linux/arm64 darwin/arm64 darwin/amd64 windows/amd64

export GO PYTHON FUZZTIME
export PERFAGENT_TEST_PYTHON = $(CURDIR)/.tools/venv/bin/python
export PERFAGENT_TEST_MLFLOW3 = $(CURDIR)/.tools/mlflow3
export PERFAGENT_TEST_MLFLOW2 = $(CURDIR)/.tools/mlflow2
export PERFAGENT_TEST_OPS = $(CURDIR)/.tools/ops
export PERFAGENT_TEST_OPS_OLD = $(CURDIR)/.tools/ops-old
export PERFAGENT_TEST_OPS_06 = $(CURDIR)/.tools/ops-06
export PERFAGENT_TEST_REDIS = $(CURDIR)/.tools/redis
export PERFAGENT_TEST_S3 = $(CURDIR)/.tools/versitygw
export PERFAGENT_TEST_JUPYTER = $(CURDIR)/.tools/jupyter
export PERFAGENT_TEST_WORKFLOWS = $(CURDIR)/.tools/workflows

# Any target but help and clean needs Go, which may fetch the version of go.mod.
ifneq (,$(filter-out help clean,$(MAKECMDGOALS)))
no_go := $(shell out=$$( ($(GO) list -m) 2>&1 ) || echo "$$out")
ifneq (,$(no_go))
$(error No Go that builds perfagent ($(no_go)). Run "pip install .", which fetches one, or install Go: https://go.dev/dl)
endif
endif

.DEFAULT_GOAL = help
.PHONY: help build install dist demo test e2e race check times bench floor peers campaign e2e-kubernetes fuzz lint cross picture pictures clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

build: ## build the static binary bin/perfagent
	@sh scripts/build.sh $(BIN)
	@wc -c <$(BIN) | awk '{ printf "$(BIN): %.1f MiB (%d bytes)\n", $$1/1048576, $$1 }'

install: build ## install the binary in PREFIX/bin (/usr/local/bin), below DESTDIR
	mkdir -p "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(BIN) "$(DESTDIR)$(PREFIX)/bin/perfagent"

dist: ## make the packages of all platforms in dist/
	@cd scripts/dist && $(GO) run . ../..
	@cd dist && wc -c * | awk '{ printf "%10d  dist/%s\n", $$1, $$2 }' | grep -v total

demo: build ## wrap a real job of about ten seconds, then show its report
	$(BIN) run --summary never --out perfagent-out -- $(PYTHON) testdata/demo/job.py
	$(BIN) show

test: $(READY) ## install what the tests need, then run those that need no engine, browser or virtual machine
	@sh scripts/test.sh test $(TESTFLAGS)

e2e: $(READY) $(ENGINES) ## install engines, then run the end-to-end tests: browser, Slurm, MPI, containers, packages, virtual machine
	@sh scripts/test.sh e2e $(TESTFLAGS)

race: ## run the packages in which goroutines share something under the race detector
	@sh scripts/test-tools.sh .tools/race race
	@sh scripts/test.sh race $(TESTFLAGS)

check: lint cross test race e2e ## the whole check

times: $(READY) ## run the tests of make test, and print where the time goes
	@sh scripts/test.sh times

bench: build $(READY) $(PEERS) ## run the benchmarks
	CGO_ENABLED=0 $(GO) test -tags e2e -run '^$$' -bench . -benchmem $(TESTFLAGS) ./...

floor: $(PEERS) $(FLOOR) ## measure what a run and a sample cost beside other tools, and write the table of docs/dev/performance.md
	CGO_ENABLED=0 $(GO) test -tags e2e -count=1 -timeout 30m ./e2e/floor -v -floor

peers: build $(PEERS) ## measure beside other tools and write the table of docs/job.md
	CGO_ENABLED=0 $(GO) test -tags e2e -count=1 -timeout 20m ./e2e/peers -v -peers

campaign: $(READY) ## kill 15,000 runs, fail each system call of one, simulate a week; writes docs/dev/testing.md
	CGO_ENABLED=0 $(GO) test -tags e2e -count=1 -timeout 2h ./e2e/campaign -kills 15200 -faults $(TESTFLAGS)
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 1h ./agent -run 'TestSoak$$' -v -soak

e2e-kubernetes: $(KUBERNETES) ## run a real cluster and write its transcripts of docs/kubernetes.md; builds Kubernetes first
	CGO_ENABLED=0 $(GO) test -tags e2e -count=1 -timeout 20m ./e2e/kubernetes -v -kubernetes $(TESTFLAGS)

fuzz: ## run every fuzz target for FUZZTIME (1m)
	@sh scripts/fuzz.sh

lint: ## gofmt, vet, staticcheck and the house rules
	@sh scripts/lint.sh

# Nothing of these builds is kept, so there is no version to stamp, and both commands use the same packages. The
# end-to-end tests are for Linux: their browser's protocol takes longer to compile than all else.
cross: ## build and vet for the other platforms
	@set -e; for p in $(PLATFORMS); do \
		echo "cross $$p"; \
		export CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/}; \
		$(GO) build -buildvcs=false ./...; \
		$(GO) vet ./...; \
	done

picture: build ## make the picture of MLflow's page in docs/ with a real browser
	@sh scripts/picture.sh

pictures: ## make the pictures of the report's page in docs/ with a real browser
	@sh scripts/pictures.sh

clean: ## remove the binary, the packages, the tools and the demo's reports
	rm -rf bin dist .tools perfagent-out

# The script leaves these stamps only when nothing was missing; until then it asks again each time.
$(READY): scripts/requirements.txt scripts/requirements-mlflow3.txt scripts/requirements-ops.txt \
		scripts/requirements-ops-old.txt scripts/requirements-ops-06.txt scripts/test-tools.sh
	@sh scripts/test-tools.sh $(READY)

$(ENGINES): scripts/requirements-mlflow2.txt scripts/requirements-jupyter.txt scripts/requirements-workflows.txt \
		scripts/test-tools.sh
	@sh scripts/test-tools.sh $(ENGINES) e2e

# Not among what the tests need. A machine on which it cannot be installed benches all else.
$(PEERS): scripts/requirements-peers.txt
	@sh scripts/test-tools.sh $(PEERS) peers

# Nor is this, which needs Rust's cargo. Without it, make floor compares with the others.
$(FLOOR):
	@sh scripts/test-tools.sh $(FLOOR) floor

# Nor is this. make test skips what needs it.
$(KUBERNETES): scripts/kubernetes/go.mod scripts/kubernetes/go.sum
	@sh scripts/test-tools.sh $(KUBERNETES) kubernetes
