# `make demo` and `make test` do all the set-up on a fresh machine, then the job.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo test lint bench bakeoff docs tutorials clean

help: ## say what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 15

demo: .venv/demo ## the paper's experiments with the shipped policies, and a report to open, in a few minutes
	$(BIN)/driftformer reproduce --out runs/demo --workers 2

test: lint ## lint, types and all tests
	$(BIN)/python -m pytest -n 2

lint: .venv/dev ## style, types and the order of the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/bench .venv/rlberry ## compare speed with other libraries and update docs/benchmarks.md
	$(ONE_THREAD) $(BIN)/python -m benchmarks.precision --write
	$(ONE_THREAD) $(BIN)/python -m benchmarks.compare --write
	$(ONE_THREAD) $(BIN)/python -m benchmarks.policies --write
	$(ONE_THREAD) $(BIN)/python -m benchmarks.online --write
	$(ONE_THREAD) $(BIN)/python -m benchmarks.karmed --write
	$(ONE_THREAD) $(BIN)/python -m benchmarks.mdp --rlberry .venv/rlberry/bin/python --write

bakeoff: .venv/bench ## compare agents on real tables and update docs/bakeoff.md
	$(ONE_THREAD) $(BIN)/python -m benchmarks.bakeoff --write

docs: .venv/docs ## the documentation site, its links checked, with the report of the demo: docs/_build/index.html
	$(BIN)/driftformer reproduce --out runs/demo --workers 2
	$(BIN)/python docs/_site/record.py runs/playground.js
	@rm -rf docs/_build
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build
	@echo "open docs/_build/index.html"

tutorials: .venv/dev ## run the notebooks of the tutorials and store their outputs
	$(ONE_THREAD) $(BIN)/python docs/run_tutorials.py

clean: ## remove the virtual environment and all caches, but no results
	rm -rf .venv docs/_build docs/jupyter_execute .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/new:
	@$(PYTHON) -c 'import sys; sys.exit("driftformer needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv (torch is large: this takes a minute or two) …"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/demo .venv/dev .venv/docs .venv/bench: .venv/%: pyproject.toml constraints.txt | .venv/new
	@echo "installing what '$*' needs …"
	@$(PIP) --editable '.[$*]'
	@touch $@

.venv/rlberry: .venv/core
	@echo "setting up rlberry apart, with the eighty packages it brings …"
	@$(PYTHON) -m venv .venv/rlberry
	@.venv/rlberry/bin/python -m pip install --quiet --disable-pip-version-check rlberry==0.7.3 rlberry-scool==0.7.3
