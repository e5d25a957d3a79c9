# `make help` lists the targets; CONTRIBUTING.md says when to use which.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
RESULTS := .cache/conformance.json
UV ?= uv
PART ?=
LIMIT ?=
RECORD ?=
WHICH ?=
FIRST ?= 0
SEEDS ?= 1000
DEB_PYTHON ?= 3.11
IMAGE ?=
# A long suite's record of what passed (docs/contribute/gate.md): LIMIT is judged by it, RECORD=1 writes it, WHICH=missing or covered runs a part.
recorded = $(if $(LIMIT),--limit=$(LIMIT)) $(if $(LIMIT)$(RECORD)$(WHICH),--record=$(1)) $(if $(RECORD),--record-write) $(if $(WHICH),--record-part=$(WHICH))
# Each module of a whole suite goes to one process, in the order of the suite.
SPREAD := --dist loadfile --no-loadscope-reorder
# A test that fails is tried once more, and named at the end (docs/contribute/gate.md).
AGAIN := --again
# Elsewhere a test that takes twenty minutes hangs.
UNHURRIED := -o faulthandler_timeout=0

export PYTHON
# Without its bytecode, every process that a test starts compiles the package again: two seconds of a processor each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo demo-down test weather lint format gen gen-check freeze golden conformance conformance-check docs web web-check recordings screenshots bench maxima soak mutants test-reference answers test-kubevirt cluster cluster-down test-host test-kvm deb image release lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv from the lock file (quick when nothing changed)
	@tools/setup.sh

demo: export PADDOCK_HOST_PACKAGES ?= demo
demo: setup ## start a control plane with a machine of each dialect, and watch them come up
	@exec .venv/bin/python -m tools.demo up

demo-down: export PADDOCK_HOST_PACKAGES ?= no
demo-down: setup ## take everything away that `make demo` left running
	@exec .venv/bin/python -m tools.demo down

test: setup ## unit, contract, scenario and architecture tests
	@# The = matters: otherwise pytest takes an existing file for a test path before it knows the option.
	$(PYTEST) -n auto $(AGAIN) --conformance-results=$(RESULTS)

lint: setup ## format, rules, types, import contracts, size limits
	$(PY) -m ruff format --check src tests tools
	$(PY) -m ruff check src tests tools
	$(PY) -m mypy src tests tools
	.venv/bin/lint-imports --no-cache --no-logo
	$(PY) tools/sizes.py

format: setup ## format the code and mend what can be mended
	$(PY) -m ruff check --fix-only --quiet src tests tools
	$(PY) -m ruff format src tests tools

gen: setup ## write what is generated from the declarations
	$(PY) -m tools.gen

gen-check: setup ## fail when a generated file is missing, stale or surplus
	$(PY) -m tools.gen --check

freeze: setup ## print what users would see of this tree that differs from BASE=<commit>: generated files, help, output, texts
	@$(PY) -m tools.freeze $(or $(BASE),HEAD)

golden: setup ## rewrite the golden files; read the difference before you commit it
	$(PYTEST) -n auto --golden-update

conformance: test ## run the tests and write docs/evidence/conformance.md
	$(PY) -m tools.conformance --results $(RESULTS)

conformance-check: setup ## fail when the page is not what the last `make test` gave
	$(PY) -m tools.conformance --results $(RESULTS) --check

docs: setup ## build the documents as a website into build/site; broken links fail
	@$(PY) -m tools.site

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

web: web/node_modules/.package-lock.json ## build the page of the web console into src/paddock/web/assets (needs Node.js)
	@cd web && npm run --silent build

web-check: ## fail when the page is not what its sources build; its types and tests (needs Node.js; says so when there is none)
	@if command -v npm >/dev/null; then \
		$(MAKE) web/node_modules/.package-lock.json && cd web && npm run --silent types && npm run --silent check && npm test --silent; \
	else \
		echo "web-check: left out: the page is built with Node.js, and there is no \`npm\` on PATH"; \
	fi

recordings: setup ## play the scenes of tools/recordings on this host and write docs/recordings/*.svg; NAME=scene plays one
	$(PY) -m tools.recordings $(NAME)

screenshots: setup ## take pictures of every page of the web console into build/console/pages, and those of its guide (needs Chromium)
	SCREENSHOTS=1 $(PYTEST) tests/host/console/test_pictures.py tests/host/console/test_story.py --slow

bench: setup ## print the measured figures beside their targets (BENCH=--quick: in minutes)
	$(PY) -m tools.bench $(BENCH)

maxima: setup ## grow a server in batches of machines until something takes too long, and say what broke first (MAXIMA=--help)
	$(PY) -m tools.bench.maxima $(MAXIMA)

soak: setup ## property tests with many more examples, and the long tests; PART=tests/... runs a part
	@# Each worker of the reference cluster would start one of its own.
	$(PYTEST) $(if $(findstring tests/reference/cluster,$(PART)),,-n auto) -m "hypothesis or soak" --hypothesis-profile soak $(UNHURRIED) $(PART)
	@if [ -z "$(PART)" ]; then WHOLE=1 $(MAKE) weather SEEDS=3400; fi
	@if [ -z "$(PART)" ]; then CHAOS=200 SCALES=50 RESTORES=60 $(PYTEST) $(UNHURRIED) tests/host/chaos tests/host/pools tests/host/owners/test_restores_in_place.py; fi
	@if [ -z "$(PART)" ]; then LIVE_FAULTS=1000 $(PYTEST) $(UNHURRIED) tests/host/machines/test_livefaults.py; fi
	@if [ -z "$(PART)" ]; then $(PYTEST) -s -m soak $(UNHURRIED) tests/host/soak; fi
	@if [ -z "$(PART)" ] && command -v go >/dev/null; then $(PYTEST) tests/reference -m soak $(UNHURRIED) --conformance-results=tests/reference/results.json; fi

mutants: setup ## break the product in small ways, and say which the tests of the broken item do not notice; ITEM="kube-api 140"
	$(PY) -m tools.mutants $(if $(ITEM),"$(ITEM)")

weather: setup ## the controllers of other dialects in storms: 1,000 seeds of each dialect, 200 of the costliest; FIRST=n, SEEDS=n, WHOLE=1; RECORD=1 records what passes
	WEATHER=$(FIRST):$$(($(FIRST) + $(SEEDS))) $(PYTEST) -n auto $(AGAIN) tests/scenario/fronts/test_convergence.py $(call recorded,weather)

test-reference: setup ## ask real programs for their verdict (needs Go; says so when there is none); RECORD=1 records what passes
	@if command -v go >/dev/null; then \
		$(PYTEST) tests/reference -n $$(($$(nproc) + 1)) $(SPREAD) $(AGAIN) $(call recorded,test-reference) --conformance-results=tests/reference/results.json; \
	else \
		echo "test-reference: left out: the programs that judge are built with Go, and there is no \`go\` on PATH"; \
		$(if $(LIMIT),$(PYTEST) tests/reference $(call recorded,test-reference) --limit=0;) \
	fi

answers: setup ## ask a kube-apiserver the questions of tests/reference that have no recorded answer, and record what it says (needs Go)
	ANSWERS=write $(PYTEST) tests/reference/test_{crds,examples,verdicts,workloads}.py -n 2 --dist loadfile

test-kubevirt: setup ## run groups of KubeVirt's functional tests with real guests: GROUP="access pools", GROUP=all; ONLY=regex runs specs by name, FAILED=1 those that failed last, NEW=1 those that have not run (needs Go)
	@$(PY) -m tests.reference.functional $(GROUP) $(if $(ONLY),--only '$(ONLY)') $(if $(FAILED),--failed) $(if $(NEW),--new)

cluster: setup ## start a Kubernetes node on this machine; KUBEVIRT=1 installs KubeVirt, also on a node that runs; CDI=1 with CDI itself; WEIGHT=N (docs/cluster/local-cluster.md)
	@exec $(PY) -m tests.reference.cluster up $(if $(KUBEVIRT),--with-kubevirt) $(if $(CDI),--with-cdi) $(if $(WEIGHT),--weight $(WEIGHT))

cluster-down: setup ## end what `make cluster` started
	@exec $(PY) -m tests.reference.cluster down

test-host: setup ## boot real guests on this host; SLOW=1 adds the slow ones; PART=tests/host/... runs a part; RECORD=1 records what passes
	$(PYTEST) $(or $(PART),tests/host) $(if $(PART)$(SLOW),,-n auto $(SPREAD)) $(AGAIN) --durations=10 $(call recorded,test-host) $(if $(SLOW),--slow $(UNHURRIED)) $(if $(or $(PART),$(if $(SLOW)$(RECORD),,no)),,--conformance-results=tests/host/results.json)

test-kvm: setup ## run a machine's life under KVM: a bare guest wherever /dev/kvm opens, and real guests where a processor runs them
	$(PYTEST) tests/host/underkvm -v $(UNHURRIED)

deb: setup ## build a Debian package into dist/ (DEB_PYTHON=3.13: for Debian 13)
	$(PY) -m tools.packages.deb --python $(DEB_PYTHON)

image: setup ## build the operator's container image into dist/ (IMAGE=host: the one with QEMU for `paddock up`; IMAGE=provider: for VirtRigaud's Providers)
	$(PY) -m tools.container $(or $(IMAGE),operator)

release: setup ## build wheel, sdist, deb, SHA256SUMS and SBOM of a version into dist/; RELEASE=1 tags it, too
	$(PY) -m tools.packages.release $(if $(RELEASE),--tag)

lock: ## write the lock files anew from pyproject.toml (needs uv)
	$(UV) pip compile -q --generate-hashes --universal --python-version 3.11 --no-header pyproject.toml --group build -o requirements.lock
	$(UV) pip compile -q --generate-hashes --universal --python-version 3.11 --no-header pyproject.toml --group dev -o requirements-dev.lock
	$(UV) pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --group libvirt -o requirements-libvirt.lock
	$(UV) pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --group docs -o requirements-docs.lock
	$(UV) pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --group browser -o requirements-browser.lock

clean: ## remove what the other targets made, except generated files that are committed
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build
