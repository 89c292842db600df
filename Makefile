# Every target makes its own environment, .venv, when it is missing or its pins changed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EXTRAS := cli frames shuffler cluster test check docs bench

# The matrices here are small: BLAS threads only get in each other's way.
export OMP_NUM_THREADS      := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS      := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test campaigns check mutants bench docs lock clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

demo: $(VENV)/.installed ## optimise a test function, with a table and a figure
	@$(BIN)/discreet demo

test: $(VENV)/.installed ## tests and doctests; ARGS="-k name" to choose
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

campaigns: $(VENV)/.installed ## every case of what tests sample: interrupts at every bytecode
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal -m campaign -rA $(ARGS) tests

check: $(VENV)/.installed ## lint, format, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright -p pyproject.toml
	@$(BIN)/lint-imports --no-logo

mutants: $(VENV)/.installed ## break the privacy code in every listed way: each must be noticed
	@$(BIN)/python -m tests.mutants.run $(ARGS)

bench: $(VENV)/.installed ## cost of a round against peers
	@$(BIN)/python benchmarks/rounds.py $(ARGS)

docs: $(VENV)/.installed ## write the generated pages, build the site into build/site
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs build/site
	@echo "open build/site/index.html"

lock: ## compile requirements.txt from pyproject.toml
	@test -x .venv-lock/bin/pip-compile || { \
	    $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet 'pip-tools>=7.6'; }
	@CUSTOM_COMPILE_COMMAND="make lock" .venv-lock/bin/pip-compile --quiet \
	    --generate-hashes --strip-extras --build-deps-for editable \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	    $(EXTRAS:%=--extra %) --output-file requirements.txt $(ARGS) pyproject.toml
	@! grep -nE '://|file:|^--(index|extra-index|find-links|trusted)' requirements.txt

clean: ## remove the environment, caches and build output
	rm -rf $(VENV) .venv-lock build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Changed pins: a fresh environment, so that nothing lingers. A changed pyproject.toml: seconds.
$(VENV)/.requirements: requirements.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("discreet needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11")'
	@echo "creating $(VENV) (about a minute)..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install -qq --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.requirements pyproject.toml
	@echo "installing discreet into $(VENV)..."
	@$(BIN)/pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@
