# make demo    a report of a shipped sample, in the terminal
# make test    everything that must hold: lint, types, layers, tests
# See CONTRIBUTING.md for the rest.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAGE  := build/typecheck
TRACE  ?= sample_traces/synthetic/input_bound.sqlite

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: demo test lint types bench docs samples wheel nsys clean
.DEFAULT_GOAL := demo

demo: $(VENV)/installed
	$(BIN)/traceviz report $(TRACE)

test: lint nsys
	$(BIN)/python -m pytest -q $(PYTEST_OPTIONS)

lint: $(VENV)/dev types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

# parsers/ and collectors/ are imported as traceviz.parsers and traceviz.collectors: mypy wants to see them there.
types: $(VENV)/dev
	@rm -rf $(STAGE) && mkdir -p $(STAGE) && cp -r traceviz $(STAGE)/traceviz
	@cp -r parsers $(STAGE)/traceviz/parsers && cp -r collectors $(STAGE)/traceviz/collectors
	cd $(STAGE) && $(abspath $(BIN))/mypy --strict -p traceviz --config-file $(CURDIR)/pyproject.toml \
	    --cache-dir $(CURDIR)/.mypy_cache

bench: $(VENV)/dev
	$(BIN)/python benchmarks/nsys_convert.py $(BENCH_OPTIONS)

docs: $(VENV)/dev
	$(BIN)/python scripts/generate_docs.py

samples: $(VENV)/dev
	$(BIN)/python sample_traces/make_synthetic.py

# What goes into a wheel: the three folders as one package, and nothing at the top that could clash.
wheel: $(VENV)/dev
	@rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python scripts/check_wheel.py dist/*.whl

# Root in a container or on a CI machine installs nsys for the tests that record; elsewhere they skip without it.
nsys:
	@if command -v nsys >/dev/null || [ "$$(id -u)" -eq 0 ] || [ -n "$$CI" ]; then scripts/install-nsys.sh; \
	else echo "nsys is not installed (scripts/install-nsys.sh does on Debian 12): tests that need it are skipped"; fi

# Stamps: nothing is installed again until pyproject.toml changes. The install is editable, code needs no new one.
$(VENV)/installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
