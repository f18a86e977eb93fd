# Everything a newcomer needs: 'make demo' and 'make test' set the machine up first, whatever is missing.

# the first Python that is new enough; 'make PYTHON=…' overrides
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$python; exit; }; done)
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long test-flink check bench bench-formats bench-delivery bench-state bench-operators soak docs clean

# two processes: each has a broker and a Spark of its own, and both together need some 4 GB of memory
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --durations 15
# 'make soak MINUTES=60'
MINUTES ?= 30

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

$(VENV)/.jars: src/headwater/install/jars.sha256 $(VENV)/.package
	$(BIN)/headwater fetch
	@touch $@

demo: setup ## a broker, a script and live results, in one go
	$(BIN)/headwater demo

test: setup ## all tests but the long ones, against a real broker; some 15 minutes on 2 cores
	$(PYTEST) -m "not long and not flink"

test-long: setup ## the long tests: many kills, outages, object storage, more replays of the case files
	$(PYTEST) -m long

test-flink: setup ## scripts and functions in Flink and here, compared; installs Flink (800 MB) when first run
	$(BIN)/headwater fetch --bench
	$(BIN)/python -m pytest -m flink tests/flink

check: $(VENV)/.package ## ruff, mypy and the import directions between packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/unit/test_imports.py tests/unit/test_code_rules.py

bench: setup ## throughput and latency beside Flink on the same topics; about an hour
	$(BIN)/headwater fetch --bench
	$(BIN)/python benchmarks/run.py

bench-formats: setup ## encoding and decoding of every format beside Flink's; about ten minutes
	$(BIN)/headwater fetch --bench
	$(BIN)/python benchmarks/formats.py

bench-delivery: setup ## throughput of exactly-once beside at-least-once; a few minutes
	$(BIN)/python benchmarks/delivery.py

bench-state: setup ## a job with a state of 100 million pairs, in workers of less than 1 GiB; three minutes
	$(BIN)/python benchmarks/state_size.py

bench-operators: $(VENV)/.package ## 1,000 changes on operators with small and large state; two minutes
	$(BIN)/python benchmarks/operator_state.py

soak: setup ## three jobs for 30 minutes (MINUTES=60: for longer) with faults: memory, threads, files, results
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES)

docs: $(VENV)/.package ## rewrite the generated option tables
	$(BIN)/python -m headwater.reference.docs

clean: ## remove what the other targets made here; the jars in HEADWATER_HOME stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# MkDocs has a venv of its own, so that 'make setup' stays as light as it is
DOCS := build/docs-venv

.PHONY: docs-site
docs-site: $(DOCS)/.packages ## the documentation as a web site, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet --site-dir build/site
	@echo "Open build/site/index.html, or serve it: $(DOCS)/bin/mkdocs serve"

.PHONY: docs-picture
docs-picture: setup $(DOCS)/.packages ## record the demo, the shell and the page for the documentation: docs/images; do it on a quiet machine
	$(DOCS)/bin/python docs/images/record_demo.py -- $(BIN)/headwater demo --seconds 20
	HEADWATER_PICTURES=docs/images $(BIN)/python -m pytest -q tests/cli/test_shell.py -k session
	HEADWATER_PICTURES=docs/images $(BIN)/python -m pytest -q tests/ui/test_real_page.py

$(DOCS)/.packages: requirements-docs.lock $(VENV)/.python
	$(BIN)/python -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-docs.lock
	@touch $@
