# Every target sets up what it needs: python3 with venv and pip is enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The data sets of the papers are looked for in the folder that MANYCLASS_DATA names: as it is set,
# or ../shared/data where there is such a folder. Without one they are fetched from OpenML, and tests
# and benchmarks of those that are not to be had are skipped.
ifneq ($(wildcard ../shared/data),)
MANYCLASS_DATA ?= $(abspath ../shared/data)
endif
export MANYCLASS_DATA

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-long bench fuzz docs lint format clean

help: ## Print the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.installed-app ## See it work on the bundled data
	$(BIN)/manyclass compare

test: lint $(VENV)/.installed-test ## Everything CI checks: lint, tests, doctests
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto

test-long: $(VENV)/.installed-test ## The papers' claims that hold, computed again (some minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto experiments/long

fuzz: $(VENV)/.installed-fuzz ## A million hostile inputs, and damaged files (about 20 minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz --inputs 1000000
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.readers_atheris

docs: $(VENV)/.installed-docs ## Build the documentation, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

bench: export OMP_NUM_THREADS = 1
bench: export OPENBLAS_NUM_THREADS = 1
bench: export MKL_NUM_THREADS = 1
bench: $(VENV)/.installed-bench ## Measure against peers, one thread (about 15 minutes)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.reliability
	$(BIN)/python -m benchmarks.growth --most 5000

lint: $(VENV)/.installed-lint ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-lint ## Rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove caches and build products (not .venv)
	rm -rf build dist docs/_build docs/auto_examples docs/api/generated htmlcov .coverage .pytest_cache .hypothesis .ruff_cache .mypy_cache
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp per extra of pyproject.toml, renewed when that file changes.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

.PRECIOUS: $(VENV)/.installed-%
