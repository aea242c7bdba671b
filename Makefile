# Two commands on a machine with only Python and git: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MARK := $(VENV)/.installed

OLDEST := .venv-minimum

# Compiled modules are kept, also where the environment says otherwise: hundreds of tests start a process of their own.
export PYTHONDONTWRITEBYTECODE :=

# One thread for each of the processes that share the cores: more of them wait for each other.
test slow minimum: export OMP_NUM_THREADS := 1
test slow minimum: export OPENBLAS_NUM_THREADS := 1

# A file of tests belongs to one process, so that what a module makes once is made once; the longest come first. One process
# more than there are cores: tests of the page wait for a browser and for servers that are killed, a quarter of their time.
SHARED = -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist loadfile --no-loadscope-reorder

.PHONY: demo test slow mutants minimum coverage lint types check site engines wheel clean

demo: $(MARK)
	$(BIN)/altmas demo

test: $(MARK)-dev
	$(BIN)/python -m pytest $(SHARED)

# The long statistical tests, which `make test` leaves out.
slow: $(MARK)-dev
	$(BIN)/python -m pytest $(SHARED) -m slow

# Small faults planted in the code that estimates, draws, stores, stops and lets in: the tests must notice 90 % of them.
mutants: $(MARK)-dev
	$(BIN)/python -m benchmarks.operations.mutants --again --show

# The tests with the lowest versions that pyproject.toml allows, on the lowest Python: make minimum PYTHON=python3.11
minimum:
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python .ci/minimum.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --editable '.[paper]' --group dev
	$(OLDEST)/bin/python -m pytest $(SHARED)

coverage: $(MARK)-dev
	$(BIN)/python -m pytest --cov=altmas --cov-report=term:skip-covered --cov-fail-under=95

lint: $(MARK)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(MARK)-dev
	$(BIN)/mypy

# The pages of docs/ as a site in site/; a warning is an error, and nothing is loaded from elsewhere.
site: $(MARK)-docs
	$(BIN)/python -m mkdocs build --strict

# The tests of DuckDB, Spark (needs Java), Dask and Ray, which are skipped where these are not installed.
engines: $(MARK)-engines
	$(BIN)/python -m pytest tests/test_engines.py tests/test_clusters.py

# Source archive and wheel, tried in a clean environment and kept in dist/.
wheel: $(BIN)/python
	$(BIN)/python .ci/wheel.py --keep dist

check: test lint types

clean:
	rm -rf $(VENV) $(OLDEST) site dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "altmas needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(MARK): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[paper]'
	@touch $@

$(MARK)-dev: pyproject.toml $(MARK) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(MARK)-docs: pyproject.toml $(MARK) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(MARK)-engines: pyproject.toml $(MARK)-dev | $(BIN)/python
	$(BIN)/python -m pip install --quiet --group engines
	@touch $@
