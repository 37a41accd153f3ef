# The one door to the project: `make help` lists what it opens. Needs Python 3.11, g++ 12 or newer and
# make; the rest comes from the package index into .venv. ccache and mold are used if present.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
VENV := .venv
BUILD := build/dev
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -q
CMAKE := $(VENV)/bin/cmake
CTEST := $(VENV)/bin/ctest
NINJA := $(VENV)/bin/ninja
SITE = $(shell $(PY) -c 'import sysconfig; print(sysconfig.get_path("platlib"))')

# The "+cpu" makes pip refuse the CUDA builds (gigabytes) that an index may hold as plain 2.13.0.
TORCH ?= torch==2.13.0$(if $(filter x86_64,$(shell uname -m)),+cpu)
NEW_PLUGIN := $(if $(filter x86_64,$(shell uname -m)),lammps-jax-pjrt-cpu)
NEW_PLUGIN_FILE = $(wildcard $(SITE)/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so)
OLD_PLUGIN_FILE = $(SITE)/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
TEST_PLUGINS = $(if $(NEW_PLUGIN_FILE),$(NEW_PLUGIN_FILE):)$(OLD_PLUGIN_FILE)
PJRT_HEADER := build/pjrt-header/xla/pjrt/c/pjrt_c_api.h
CMAKE_PYTHON = -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(NINJA)) -DPython_EXECUTABLE=$(abspath $(PY))

.DEFAULT_GOAL := help
.PHONY: help venv build test test-fast test-all test-modes core-tests googletest demo bench bench-dispatch \
        bench-peers bench-page tcmalloc asan tsan conformance tpu-check wheel lint format cases docs \
        clean distclean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'

# --- Setting up.

venv: $(VENV)/.installed ## .venv with pinned packages

$(VENV)/.installed: requirements/constraints.txt requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "no python3.11 or python3 found: set PYTHON"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11: set PYTHON to a newer one"; exit 1; }
	@echo "== packages into $(VENV)"
	$(PYTHON) -m venv $(VENV)
	@$(PIP) install -c requirements/constraints.txt '$(TORCH)' || { \
	  echo "No CPU build of PyTorch 2.13.0 in pip's index. Point pip at one (PIP_EXTRA_INDEX_URL, see"; \
	  echo "PyTorch's install page), or name another with TORCH=..."; exit 1; }
	$(PIP) install -c requirements/constraints.txt -r requirements/dev.txt
	$(PIP) install --no-deps -c requirements/constraints.txt $(NEW_PLUGIN) xla-cpu-pjrt
	@touch $@

# The declarations of the PJRT C ABI are compared with this header by a test; nothing else uses it.
$(PJRT_HEADER): $(VENV)/.installed
	@mkdir -p build/pjrt-header
	$(PIP) download --no-deps --no-binary :all: --no-build-isolation \
	  -c requirements/constraints.txt -d build/pjrt-header pypjrt
	tar -xzf build/pjrt-header/pypjrt-*.tar.gz -C build/pjrt-header --strip-components=2 --wildcards '*/vendor/xla'
	@touch $@

googletest:
	@echo '#include <gtest/gtest.h>' | $(or $(CXX),g++) -x c++ -E - >/dev/null 2>&1 && exit 0; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "== installing Debian's libgtest-dev for the core's tests"; \
	  apt-get update -qq && apt-get install -y -qq libgtest-dev; \
	else echo "GoogleTest is missing: run 'apt-get install libgtest-dev' as root"; exit 1; fi

# --- Building.

$(BUILD)/build.ninja: $(VENV)/.installed
	$(CMAKE) -S . -B $(BUILD) $(CMAKE_PYTHON) -DCMAKE_BUILD_TYPE=Release > $(BUILD)-configure.log 2>&1 || \
	  { cat $(BUILD)-configure.log; exit 1; }

$(VENV)/.editable: pyproject.toml $(VENV)/.installed
	$(PIP) install --no-build-isolation --no-deps -C wheel.cmake=false -C editable.mode=inplace -e .
	@touch $@

build: $(VENV)/.installed ## Build and install into .venv (incremental)
	@mkdir -p build
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja $(VENV)/.editable
	@$(NINJA) -C $(BUILD) -j$(JOBS) _C
	@ln -sf $(abspath $(BUILD))/torch/_C*.so python/torch_tpu/

wheel: $(VENV)/.installed ## A wheel in dist/
	$(PY) -m pip wheel -q --no-build-isolation --no-deps -w dist .

# --- Testing.

core-tests: build googletest $(PJRT_HEADER)
	@$(CMAKE) -S . -B $(BUILD) -DTORCH_TPU_BUILD_TESTS=ON -DTORCH_TPU_TEST_PLUGINS=$(TEST_PLUGINS) \
	  -DTORCH_TPU_PJRT_HEADER_DIR=$(abspath build/pjrt-header) > $(BUILD)-configure.log 2>&1 || \
	  { cat $(BUILD)-configure.log; exit 1; }
	@$(NINJA) -C $(BUILD) -j$(JOBS)

test: core-tests ## What CI runs
	$(CTEST) --test-dir $(BUILD) -j$(JOBS) --output-on-failure --no-tests=error
	TORCH_TPU_OLD_PLUGIN=$(OLD_PLUGIN_FILE) $(PY) -m pytest -q
	@$(MAKE) --no-print-directory test-modes

# What an operator gives must not depend on when it runs.
test-modes: build ## The operators' tests in debug and in fuse mode
	@for mode in debug fuse; do echo "== operators in $$mode mode"; TORCH_TPU_EAGER_MODE=$$mode \
	  $(PY) -m pytest -q tests/torch/test_ops_*.py tests/torch/test_views.py \
	  tests/torch/test_masks.py tests/reports || exit 1; done

test-fast: core-tests ## Under two minutes
	$(CTEST) --test-dir $(BUILD) -j$(JOBS) --output-on-failure --no-tests=error -LE slow
	$(PY) -m pytest -q -m "not slow"

test-all: core-tests ## Every sample of PyTorch's own databases
	$(CTEST) --test-dir $(BUILD) -j$(JOBS) --output-on-failure --no-tests=error
	TORCH_TPU_TEST_ALL=1 $(PY) -m pytest -q

conformance: build ## PyTorch's databases, every sample and dtype: report in out/, page in docs/
	$(PY) tools/conformance.py --docs docs/conformance.md

tpu-check: build ## Every row's programs compiled by libtpu for TPUs that aren't there; page in docs/
	@$(PY) -c 'import libtpu' 2>/dev/null || { echo "pip install libtpu==0.0.51 first (Google's terms)"; exit 1; }
	$(PY) tools/tpu_check.py --docs
	$(PY) tools/ops_page.py docs/ops.md

asan: $(VENV)/.installed googletest $(PJRT_HEADER) ## The core's tests with AddressSanitizer
	$(CMAKE) --preset asan $(CMAKE_PYTHON) -DTORCH_TPU_TEST_PLUGINS=$(TEST_PLUGINS) \
	  -DTORCH_TPU_PJRT_HEADER_DIR=$(abspath build/pjrt-header) > /dev/null
	$(NINJA) -C build/asan -j$(JOBS) --quiet
	$(CTEST) --test-dir build/asan -j$(JOBS) --output-on-failure --no-tests=error

# What has threads: the plugin's handles, the runtime, the executors. Writers are too slow here to be
# killed half way.
tsan: $(VENV)/.installed googletest ## Tests of threads with ThreadSanitizer
	$(CMAKE) --preset tsan $(CMAKE_PYTHON) -DTORCH_TPU_TEST_PLUGINS=$(TEST_PLUGINS) > /dev/null
	$(NINJA) -C build/tsan -j$(JOBS) --quiet
	TSAN_OPTIONS=suppressions=$(abspath tests/tsan.supp):report_mutex_bugs=0 \
	GTEST_FILTER=-DiskCacheTest.KilledWriters* \
	  $(CTEST) --test-dir build/tsan --output-on-failure --no-tests=error -R 'pjrt_pjrt|runtime|client|in_threads'

# --- Using.

demo: build ## Train two models on "tpu" and on "cpu"; table and picture in out/
	$(PY) tools/demo.py

bench: build ## Every suite in bench/suites; with peers where `make bench-peers` has set them up
	$(PY) bench/run.py

bench-dispatch: build ## The cost of one call
	$(PY) bench/run.py dispatch

# The peers take gigabytes and are no part of the project: each has an environment of its own, and one
# that can't be had here is left out of the table with its reason.
PEERS := .peers
PEER_PIP = $(PEERS)/$(1)/bin/python -m pip --disable-pip-version-check -q install

$(PEERS)/%/bin/python:
	@echo "== packages into $(PEERS)/$*"
	@$(PYTHON) -m venv $(PEERS)/$*

$(PEERS)/jax/.installed: requirements/peer-jax.txt | $(PEERS)/jax/bin/python
	@$(call PEER_PIP,jax) --no-deps -r $<
	@touch $@

$(PEERS)/google/.installed: requirements/peer-google.txt $(PEERS)/plugin_shim.so | $(PEERS)/google/bin/python
	@$(call PEER_PIP,google) --no-deps '$(TORCH)' -r $<
	@touch $@

$(PEERS)/plugin_shim.so: bench/peers/plugin_shim.cc $(PJRT_HEADER)
	@mkdir -p $(PEERS)
	@$(or $(CXX),g++) -std=c++20 -O2 -shared -fPIC -I $(dir $(PJRT_HEADER)) $< -o $@ -ldl

tcmalloc:
	@ldconfig -p | grep -q libtcmalloc_minimal.so.4 && exit 0; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "== installing Debian's libtcmalloc-minimal4, which Google's torch_tpu recommends"; \
	  apt-get update -qq && apt-get install -y -qq libtcmalloc-minimal4; else false; \
	fi || echo "without libtcmalloc_minimal: Google's torch_tpu will be somewhat slower"

bench-peers: build tcmalloc ## The same against JAX and Google's torch_tpu (gigabytes into .peers)
	@for peer in jax google; do $(MAKE) --no-print-directory $(PEERS)/$$peer/.installed || \
	  echo "== $$peer can't be set up here: left out"; done
	$(PY) bench/run.py

bench-page: ## The last runs' tables into docs/performance.md
	$(PY) bench/run.py --page docs/performance.md

# --- Keeping.

$(VENV)/.lint: requirements/lint.txt requirements/constraints.txt $(VENV)/.installed
	$(PIP) install -c requirements/constraints.txt -r requirements/lint.txt
	@touch $@

lint: $(VENV)/.lint ## Formatting, ruff, sizes
	$(VENV)/bin/ruff check .
	git ls-files '*.cc' '*.h' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(PY) tools/size_report.py --check

format: $(VENV)/.lint ## Format the sources
	git ls-files '*.cc' '*.h' | xargs $(VENV)/bin/clang-format -i
	$(VENV)/bin/ruff check --fix-only -q .

cases: $(VENV)/.installed ## tests/cases, from PyTorch's CPU
	$(PY) tools/make_cases.py

docs: build ## docs/ops.md, made from the table of operators
	$(PY) tools/ops_page.py docs/ops.md

clean: ## Remove what was built
	rm -rf build out bench_out dist python/torch_tpu/*.so $(VENV)/.editable

distclean: clean ## Remove .venv and .peers too
	rm -rf $(VENV) $(PEERS)
