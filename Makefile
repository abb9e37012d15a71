# Everything happens in .venv, from exact versions (constraints.txt). Needs GNU make, Python 3.11+ with venv, a C and C++
# compiler and git; the rest is installed. What is done leaves a stamp in .stamps/, named after a checksum of what it was
# made from: a second run repeats nothing, and a change repeats just what it touches.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# The Python that .venv is made with.
PYTHON ?= python3
# A folder with wheels that were built before (llama-cpp-python), e.g. `make demo WHEELHOUSE=wheelhouse`.
WHEELHOUSE ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

BIN := .venv/bin
VENV := .venv/pyvenv.cfg
PIP := $(BIN)/python -m pip
FOUND_WHEELS := $(if $(WHEELHOUSE),--find-links $(WHEELHOUSE))
INSTALL := $(PIP) install --quiet --constraint constraints.txt $(FOUND_WHEELS)
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

, := ,
say = @printf '%s\n' "carbon-mind: $(1)" >&2
checksum = $(shell { $(1); } 2>/dev/null | cksum | cut -d " " -f 1)

NATIVE_SOURCES := CMakeLists.txt native/CMakeLists.txt native/carbon_rank.h native/carbon_rank.cpp native/module.cpp
# The editable install knows each module by its path, so a new or moved one installs anew (two seconds); an edit does not.
MODULES := find carbon_mind -name '*.py' -print | LC_ALL=C sort

BASE := .stamps/base-$(call checksum,cat pyproject.toml constraints.txt)
PACKAGE := .stamps/package-$(call checksum,cat pyproject.toml constraints.txt $(NATIVE_SOURCES); $(MODULES))
LLAMA := .stamps/llama-$(call checksum,grep -h llama pyproject.toml constraints.txt)
MODEL := .stamps/model-$(call checksum,cat models/registry.toml)
WINDOW := .stamps/window-$(call checksum,cat models/registry.toml)

# A stamp that is made replaces the older ones of its kind.
stamp = @mkdir -p .stamps && rm -f $(firstword $(subst -, ,$@))-* && touch $@

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(PACKAGE) $(MODEL) ## from nothing to measured first-token times, with a small model
	$(BIN)/python bench/demo.py

.PHONY: test
test: lint native-test wheel $(LLAMA) $(MODEL) $(WINDOW) ## everything that has to pass: lint, native, wheel, tests
	$(call say,running all tests with coverage)
	CARBON_MIND_REQUIRE_NATIVE=1 $(BIN)/python -m pytest -q --cov --cov-report=term

.PHONY: check
check: lint native-test ## before each commit: lint, native, and the tests that need no model
	CARBON_MIND_REQUIRE_NATIVE=1 $(BIN)/python -m pytest -q -m "not model and not slow"

.PHONY: lint
lint: $(PACKAGE) ## format, style, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

.PHONY: format
format: $(BASE) ## rewrite the Python files in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

CMAKE_BUILD := $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" -DCARBON_MIND_PYTHON=OFF
CTEST := $(BIN)/ctest --output-on-failure --no-tests=error

.PHONY: native-test
native-test: $(BASE) ## the ranker without Python, plain and under the sanitizers
	$(call say,building and testing the native ranker twice: about 10 seconds)
	@mkdir -p build
	@$(CMAKE_BUILD) -B build/native -DCMAKE_BUILD_TYPE=Release >build/native.log || { cat build/native.log; exit 1; }
	@$(BIN)/cmake --build build/native
	@$(CTEST) --test-dir build/native
	@$(CMAKE_BUILD) -B build/sanitize -DCMAKE_BUILD_TYPE=Debug -DCARBON_MIND_SANITIZE=ON >build/sanitize.log || { cat build/sanitize.log; exit 1; }
	@$(BIN)/cmake --build build/sanitize
	@$(CTEST) --test-dir build/sanitize

.PHONY: wheel
wheel: $(BASE) ## sdist, a wheel from it, and a smoke test of the wheel in a fresh environment
	$(call say,building the sdist and the wheel and trying the wheel out: about 1 minute)
	rm -rf dist && mkdir -p build
	@$(BIN)/python -m build --no-isolation --outdir dist >build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	$(BIN)/python tests/wheel_smoke.py dist/*.whl --constraint constraints.txt

.PHONY: constraints
constraints: ## write constraints.txt anew from the newest versions that pyproject.toml allows
	$(call say,resolving all dependencies anew$(if $(WHEELHOUSE),, and building llama.cpp for it: 5-10 minutes))
	rm -rf build/constraints && mkdir -p build
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --upgrade pip
	CMAKE_BUILD_PARALLEL_LEVEL=$(CORES) build/constraints/bin/python -m pip install --quiet $(FOUND_WHEELS) '.[llama,languages,mcp,server,dev]'
	@{ \
	  echo '# Exact versions that were tested together, for every extra. Regenerate with `make constraints`, then run `make test`.'; \
	  { \
	    build/constraints/bin/python -m pip freeze --all --exclude carbon-mind --exclude setuptools --exclude wheel; \
	    echo 'colorama==0.4.6 ; sys_platform == "win32"'; \
	  } | sed -n 's/^\([A-Za-z0-9._-]*\)==/\1 &/p' | while read -r name line; do \
	    printf '%s%s\n' "$$(printf %s "$$name" | tr 'A-Z_' 'a-z-')" "$${line#"$$name"}"; \
	  done | LC_ALL=C sort; \
	} >build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/constraints

.PHONY: clean
clean: ## remove what was built and cached; .venv stays
	rm -rf build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find carbon_mind tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## clean, and remove .venv too (llama.cpp is then built again)
	rm -rf .venv .stamps

.PHONY: install llama model models
install: $(PACKAGE) ## carbon-mind in .venv, editable, with all tools
llama: $(LLAMA) ## the engine in .venv
model: $(MODEL) ## the small model that demo and tests use
models: $(MODEL) $(WINDOW) ## that one, and one with a sliding window for the slow tests

# --- what the stamps stand for -------------------------------------------------------------------------------

define CHECK_PYTHON
import sys
if sys.version_info < (3, 11):
    sys.exit(f"carbon-mind needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. Try: make PYTHON=python3.12 ...")
try:
    import ensurepip, venv
except ImportError:
    sys.exit(f"{sys.executable} has no venv module. On Debian and Ubuntu: apt install python3-venv")
endef
export CHECK_PYTHON

$(VENV):
	@command -v $(PYTHON) >/dev/null || { echo "carbon-mind: $(PYTHON) is not found; carbon-mind needs Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(call say,making .venv: a few seconds)
	$(PYTHON) -m venv --clear .venv

$(BASE): $(VENV)
	@command -v git >/dev/null || { echo "carbon-mind: git is not found" >&2; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || { echo "carbon-mind: no C++ compiler; on Debian and Ubuntu: apt install build-essential" >&2; exit 1; }
	$(call say,installing what carbon-mind and its tests need: about 1 minute)
	$(INSTALL) --upgrade pip
	$(INSTALL) scikit-build-core cmake ninja
	$(INSTALL) --no-build-isolation --only-deps '.[languages,mcp,server,dev]'
	$(stamp)

$(PACKAGE): $(BASE)
	$(call say,building the native ranker and installing the package: a few seconds)
	$(INSTALL) --no-build-isolation --no-deps --editable .
	$(stamp)

$(LLAMA): $(VENV) | $(BASE)
	@$(PIP) show --quiet llama-cpp-python 2>/dev/null || \
	  echo "carbon-mind: $(if $(WHEELHOUSE),installing llama.cpp from $(WHEELHOUSE),building llama.cpp for this CPU: about 3-8 minutes on two cores$(,) once)" >&2
	CMAKE_BUILD_PARALLEL_LEVEL=$(CORES) $(INSTALL) llama-cpp-python
	$(stamp)

$(MODEL): $(PACKAGE)
	$(call say,fetching the small model (about 100 MB): up to a minute)
	$(BIN)/carbon models pull smollm2-135m
	$(stamp)

$(WINDOW): $(PACKAGE)
	$(call say,fetching a model with a sliding window for the slow tests (about 250 MB): up to two minutes)
	$(BIN)/carbon models pull gemma3-270m
	$(stamp)
