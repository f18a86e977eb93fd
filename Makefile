# Everything a newcomer needs: 'make demo' and 'make test' set the machine up first, whatever is missing.

# the first Python that is new enough; 'make PYTHON=…' overrides
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$python; exit; }; done)
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench bench-formats docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup: $(VENV)/.jars ## create .venv from requirements.lock and fetch the jars

$(VENV)/.python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(NEW_ENOUGH)' || { \
	echo "Headwater needs Python 3.10 or later. Install one, or name it: make PYTHON=/path/to/python3 setup" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.packages: requirements.lock $(VENV)/.python
	@echo "Installing the packages of requirements.lock; the first time takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.jars: src/headwater/runtime/jars.sha256 $(VENV)/.package
	$(BIN)/headwater fetch
	@touch $@

demo: setup ## a broker, a script and live results, in one go
	$(BIN)/headwater demo

test: setup ## all tests, against a real broker
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: $(VENV)/.package ## ruff, mypy and the walls between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/unit/test_imports.py

bench: setup ## Headwater and Flink side by side; takes a quarter of an hour
	$(BIN)/headwater fetch --bench
	$(BIN)/python benchmarks/run.py

bench-formats: setup ## every format beside Flink's of the same name; takes some minutes
	$(BIN)/headwater fetch --bench
	$(BIN)/python benchmarks/formats.py

docs: $(VENV)/.package ## rewrite the generated option tables
	$(BIN)/python -m headwater.options.docs

clean: ## remove what the other targets made here; the jars in HEADWATER_HOME stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
