# Berth's commands. `make` alone lists them. Each installs what it needs first: uv and the locked Python
# packages; what needs root (Debian's Chromium, containerd …) only where we are root and it is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/berth
UV_VERSION := 0.13.9
UV := $(CACHE)/uv-$(UV_VERSION)/bin/uv
PYTHON := .venv/bin/python
DEBIAN_PACKAGES := chromium fonts-dejavu-core containerd runc containernetworking-plugins busybox-static iproute2 \
  iptables conntrack
export UV_PYTHON_DOWNLOADS := never

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.PHONY: demo
demo: .venv/.ready ## Run the product: portal, identity provider and a development Kubernetes (Ctrl-C ends it)
	@$(PYTHON) -m deploy.demo run $(if $(REAL_NODE),--real-node)

.PHONY: demo-scenario
demo-scenario: .venv/.ready ## In the running demo: team A submits 100 jobs, B and C one each
	@$(PYTHON) -m deploy.demo scenario

.PHONY: demo-kubectl
demo-kubectl: .venv/.ready ## In the running demo: kubectl with a user's own rights (WHO=alice ARGS="get jobs")
	@$(PYTHON) -m deploy.demo kubectl --as "$(or $(WHO),alice)" --arguments "$(or $(ARGS),auth whoami)"

.PHONY: demo-check
demo-check: .venv/.ready ## Try the demo without a person, on fresh data; REAL_NODE=1 adds a real container (root)
	@$(PYTHON) -m deploy.demo check $(if $(REAL_NODE),--real-node)

.PHONY: demo-reset
demo-reset: .venv/.ready ## Remove the demo's data
	@$(PYTHON) -m deploy.demo reset

.PHONY: test
test: .venv/.ready packages ## All checks and tests (what CI runs)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory integration
	@$(MAKE) --no-print-directory cluster

.PHONY: lint
lint: .venv/.ready ## Style, types, and who may import whom
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy portal tenants jobs deploy tests manage.py
	.venv/bin/lint-imports --no-logo

.PHONY: unit
unit: .venv/.ready ## Tests of the pure modules, in seconds
	$(PYTHON) -m pytest tests/unit tests/test_architecture.py -q

.PHONY: integration
integration: .venv/.ready ## Tests with a database (SQLite, then PostgreSQL) and the identity provider
	$(PYTHON) -m pytest tests/integration -q
	$(PYTHON) -m tests.postgresql tests/integration -q

.PHONY: cluster
cluster: .venv/.ready packages ## Tests with a real Kubernetes, all processes and a browser
	$(PYTHON) -m deploy.devcluster build
	$(PYTHON) -m pytest tests/cluster tests/e2e -q

.PHONY: bench
bench: .venv/.ready packages ## Berth beside kubectl on one real API server: ratios, .berth/bench.json (ARGS="--teams 1000")
	@$(PYTHON) -m deploy.devcluster build
	@$(PYTHON) -m tests.bench $(ARGS)

# What pip cannot install. Without root nothing is installed: the tests that need it say that they were not run.
.PHONY: packages
packages:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  ! dpkg -s $(DEBIAN_PACKAGES) >/dev/null 2>&1; then \
	  echo "Installing Debian packages: $(DEBIAN_PACKAGES)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    $(DEBIAN_PACKAGES) </dev/null >/dev/null; fi

.PHONY: format
format: .venv/.ready ## Rewrite the sources in the house style
	$(PYTHON) -m ruff check --fix -q . || true
	$(PYTHON) -m ruff format .

.PHONY: sync
sync: .venv/.ready ## Install the locked packages into .venv

.venv/.ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --all-groups --compile-bytecode --quiet
	@touch $@

$(UV):
	@echo "Installing uv $(UV_VERSION) into $(CACHE)"
	@mkdir -p $(CACHE)
	python3 -m venv $(CACHE)/uv-$(UV_VERSION)
	$(CACHE)/uv-$(UV_VERSION)/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
