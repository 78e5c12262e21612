# Berth's commands. `make` alone lists them. Each installs what it needs first: uv and the locked Python
# packages; what needs root (Debian's Chromium, containerd …) only where we are root and it is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/berth
UV_VERSION := 0.13.9
UV := $(CACHE)/uv-$(UV_VERSION)/bin/uv
PYTHON := .venv/bin/python
export UV_PYTHON_DOWNLOADS := never

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.PHONY: test
test: .venv/.ready ## All checks and tests (what CI runs)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit

.PHONY: lint
lint: .venv/.ready ## Style
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

.PHONY: unit
unit: .venv/.ready ## Tests of the pure modules, in seconds
	$(PYTHON) -m pytest tests/unit -q

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
