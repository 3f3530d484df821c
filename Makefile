# Verbs of this project. `make demo` shows what it is for, `make test` passes the tests.
GO     ?= go
TOOL   := $(GO) tool -modfile=tools/go.mod
BIN    := bin/fermata
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.release=$(VERSION)
export CGO_ENABLED := 0

.PHONY: build demo test lint golden fuzz bench slow e2e-real clean

build: ## the static binary, bin/fermata
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/fermata

demo: build ## two servers, one load: what the averages hide
	$(BIN) demo

test: browser ## all tests but the slow ones
	$(GO) test -timeout 30m ./... # which only bounds hanging: a busy machine of two slow cores takes its time

.PHONY: browser
browser: ## Chromium for the tests of pages, where it is missing and can be installed
	@./tools/chromium.sh

lint: ## formatting, vet, staticcheck; rules of our own are tests (house_test.go)
	@unformatted=$$($(TOOL) gofumpt -l .); if [ -n "$$unformatted" ]; then echo "not gofumpt-ed (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	$(TOOL) staticcheck ./...

.PHONY: fmt
fmt: ## format with gofumpt
	$(TOOL) gofumpt -w .

golden: ## rewrite golden files; read the difference before committing
	$(GO) test ./report ./recording -update

FUZZTIME ?= 20s
fuzz: ## each fuzz test for FUZZTIME
	@for p in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $$p | sed 's/^func //'); do \
			echo "$$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) || exit 1; done; done

bench: ## speed of metrics, recording, parsing and the simulator, in tokens a second
	$(GO) test -run '^$$' -bench . -benchmem ./metrics ./recording ./experiment ./dialect ./internal/sse ./sim

.PHONY: bench-page
bench-page: browser ## size of pages of 10,000 and of a million requests, and how soon a browser has them ready
	$(GO) test -run '^$$' -bench Page -benchtime 5x -timeout 20m ./report

CC ?= cc
.cache/bench/reader: bench/limit/reader.c
	@mkdir -p .cache/bench
	$(CC) -O2 -Wall -Wextra -o $@ $<

.cache/bench/bench: FORCE
	@mkdir -p .cache/bench
	$(GO) build -o $@ ./bench

.PHONY: FORCE bench-peers bench-client
bench-peers: .cache/bench/reader .cache/bench/bench ## Fermata beside a C loop, an aiohttp reader and inference-perf, in one run
	./bench/peers.sh install
	.cache/bench/bench peers -python $$(./bench/peers.sh python) $(BENCH)

bench-client: build .cache/bench/reader .cache/bench/bench ## the goals of the client, each with what this machine measures
	./bench/peers.sh install
	.cache/bench/bench client -python $$(./bench/peers.sh python) $(BENCH)

slow: ## the tests that take minutes, and the curve of a real engine; for a machine with nothing else to do
	FERMATA_SLOW=1 $(GO) test -count=1 -timeout 60m ./...
	$(MAKE) e2e-profile

e2e-real: build ## a real engine (llama.cpp) with a real model, installed into .cache
	./e2e/engine.sh install
	FERMATA_E2E=1 $(GO) test -count=1 -timeout 20m -v ./e2e

.PHONY: e2e-capacity
e2e-capacity: build ## the capacity of the same engine on a core of its own, in minutes; for a machine with nothing else to do
	./e2e/engine.sh install
	FERMATA_E2E_CAPACITY=1 $(GO) test -count=1 -timeout 12m -v -run TestCapacityOfAnEngine ./e2e

.PHONY: e2e-profile
e2e-profile: build ## the prefill curve of that engine, idle and while others ask it: minutes, and a calm machine
	./e2e/engine.sh install
	FERMATA_E2E=1 FERMATA_PROFILE=1 FERMATA_SLOW=1 $(GO) test -count=1 -timeout 40m -v -run TestProfileOfAnEngine ./e2e

.PHONY: e2e-vllm
e2e-vllm: build ## what averages hide on vLLM's CPU build, installed into .cache (5.6 GB); writes docs/evidence/vllm.md
	./e2e/vllm.sh install
	FERMATA_VLLM=1 $(GO) test -count=1 -timeout 25m -v -run TestVLLM ./e2e

.PHONY: e2e-loadgen
e2e-loadgen: ## percentiles, estimates and validity beside MLPerf's own LoadGen, installed into .cache
	./e2e/loadgen.sh install
	FERMATA_LOADGEN=1 $(GO) test -count=1 -timeout 9m -v -run TestLoadGen ./e2e

clean: ## remove what was built and run here
	rm -rf bin runs .cache
