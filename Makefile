# Every target sets up what it needs: python3 with venv and pip is enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# MANYCLASS_DATA names the folder with the data sets of the papers. If it is not set and the folder
# ../shared/data exists, that one is used. Without a folder they are fetched from OpenML; tests and
# benchmarks whose data are not available are skipped.
ifneq ($(wildcard ../shared/data),)
MANYCLASS_DATA ?= $(abspath ../shared/data)
endif
export MANYCLASS_DATA

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-long test-peers coverage bench fuzz mutate soak docs lint format clean

help: ## Print the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.installed-app ## See it work on the bundled data
	$(BIN)/manyclass demo

# All tests of a file run in the same process, which fits its models and compiles its kernels once.
# Bytecode is kept, even if the environment says otherwise: tests start Python many times.
test: export PYTHONDONTWRITEBYTECODE =
test: lint $(VENV)/.installed-test ## Lint, types, tests and doctests
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile

test-long: $(VENV)/.installed-test ## Check the papers' claims that hold (some minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto experiments/long

test-peers: export OMP_NUM_THREADS = 1
test-peers: export OPENBLAS_NUM_THREADS = 1
test-peers: $(VENV)/.installed-test ## scikit-learn's own tests with our classes in place of its
	$(BIN)/python tests/peers

# A few cases of each test reach the lines of all. Compiled code is invisible to coverage: the tests
# of kernels run a second time with the kernels as plain Python (tests/without_jit.py); the lines of
# both runs are combined. Failures are ignored here (tracing changes times and memory): `make test`
# judges.
OF_KERNELS := $(addprefix tests/, _lib/test_duplicate_entries.py _lib/test_lib_helpers.py \
	_lib/test_logarithm.py _lib/test_rows.py banks/svm calibration codes/test_trees.py \
	combiners/coupling/test_coupling.py combiners/test_reliability.py learners/kernel_logistic \
	learners/test_pairwise_neighbors.py scaling test_many_classes.py)
coverage: export OMP_NUM_THREADS = 1
coverage: export OPENBLAS_NUM_THREADS = 1
coverage: $(VENV)/.installed-test ## Lines and branches of the package that tests reach (some minutes)
	rm -rf build/coverage && mkdir -p build/coverage
	-$(BIN)/python -m coverage run -m pytest -q -n auto --dist loadfile --cases 2 src tests
	-NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -q -n auto -o addopts= -p tests.without_jit --cases 2 $(OF_KERNELS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --skip-empty
	@echo "lines and branches covered: $$($(BIN)/python -m coverage report --format=total) %"

fuzz: $(VENV)/.installed-fuzz ## A million hostile inputs, damaged files, interrupts (an hour)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz --inputs 1000000
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.readers_atheris
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.stored_models
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.interrupts

mutate: $(VENV)/.installed-test ## Change one place of the code at a time: do tests fail? (long)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.mutants --number 120

soak: $(VENV)/.installed-test ## Ten minutes of work in threads: does anything grow?
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.soak --minutes 10

docs: $(VENV)/.installed-docs ## Build the documentation, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

bench: export OMP_NUM_THREADS = 1
bench: export OPENBLAS_NUM_THREADS = 1
bench: export MKL_NUM_THREADS = 1
bench: $(VENV)/.installed-bench ## Measure against peers, one thread (about 15 minutes)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.reliability
	$(BIN)/python -m benchmarks.growth

lint: $(VENV)/.installed-lint ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-lint ## Rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove caches and build products (not .venv)
	rm -rf build dist docs/_build docs/auto_examples docs/api/generated .pytest_cache .hypothesis .ruff_cache .mypy_cache
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp file per extra of pyproject.toml. A change of pyproject.toml installs it again.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

.PRECIOUS: $(VENV)/.installed-%
