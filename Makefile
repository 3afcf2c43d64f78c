# Everything a person types. Each target sets up what it needs: `make lab` and `make test` start from a plain Debian
# with make and Python 3.11 to 3.14. CI=true makes a missing piece an error instead of a message.
# Options for `workbench lab` go into ARGS: make lab ARGS="--no-browser --port 9000".

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What an install compiles, and knows the types of: it is installed again when any of it has changed.
COMPILED := pyproject.toml hatch_build.py $(wildcard kernelproxy/csrc/*) $(shell find gpu_backend -path '*/csrc/*') $(shell find gpu_backend -name '*.py')
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --editable

.DEFAULT_GOAL := help
.PHONY: help lab test check docs wheel clean

help: ## say what there is
	@sed -n 's/^\([a-z]*\):[^#]*## /make \1\t/p' Makefile

lab: compiler $(VENV)/.lab ## open JupyterLab with the kernel "Remote GPU (CuPy)"
	@$(BIN)/workbench lab $(ARGS)

test: compiler $(VENV)/.test chromium ## all checks, then all tests that need no GPU
	@$(MAKE) --no-print-directory check
	@if command -v chromium >/dev/null; then marks="not gpu and not gpu_long and not soak and not ray"; else marks="not gpu and not gpu_long and not soak and not ray and not browser"; fi; \
	  $(BIN)/python -m pytest -m "$$marks"

check: $(VENV)/.test ## style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell *.md docs newsfragments catalog/entries

docs: $(VENV)/.docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(VENV)/.dev ## build the wheel and the source distribution into dist/
	$(BIN)/python -m hatchling build

clean: ## remove what the other targets made
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# --- set-up ---------------------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
	  echo "gpu-workbench needs Python 3.11 to 3.14. Install it, or name it: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python has no venv here. Run: sudo apt-get install python3-venv"; exit 1; }
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.lab: $(COMPILED) | $(BIN)/python
	@echo "Installing gpu-workbench with JupyterLab ..."
	@$(PIP) '.[lab,examples]'
	@touch $@

$(VENV)/.test: $(COMPILED) | $(BIN)/python
	@echo "Installing gpu-workbench with its tests ..."
	@$(PIP) '.[test,examples]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "Installing what builds the documentation ..."
	@$(PIP) '.[docs]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@$(PIP) '.[dev]'
	@touch $@

# The embedded CPU device compiles CUDA C kernels with the system's C++ compiler. It comes first: an install compiles the
# core of recording where it can.
.PHONY: compiler chromium
compiler:
	@command -v c++ >/dev/null || $(call debian,g++,RawKernel and ElementwiseKernel will not run on the CPU device)

chromium:
	@command -v chromium >/dev/null || $(call debian,chromium,the browser tests are left out)

# $(call debian,PACKAGE,WHAT IS MISSING WITHOUT IT): install as root, else say what to run.
define debian
{ if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "Installing Debian's $(1) ..."; \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $(1) >/dev/null; \
  else \
    echo "There is no $(1) here: $(2). Run: sudo apt-get install $(1)"; [ -z "$$CI" ]; \
  fi; }
endef
