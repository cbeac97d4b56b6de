# On a fresh machine: `make train` or `make test`. Needs Python 3.11+, pip and a C++20 compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
SOURCES := $(shell find csrc src/sparring -name '*.hpp' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.in')
# Tests start dozens of programs, and each would compile sparring anew.
unexport PYTHONDONTWRITEBYTECODE
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
NATIVE_CMAKE := $(BIN)/cmake -G Ninja -S . -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	-DSPARRING_PYTHON=OFF -DSPARRING_NATIVE_TESTS=ON

.PHONY: help install cluster web train test test-slow figures gpu lint format docs docs-serve sanitize sanitize-python native-test wheel-smoke release clean

help:  ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(INSTALLED)  ## Make .venv and build the native core into it

$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt $(SOURCES)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -c constraints.txt scikit-build-core nanobind cmake ninja
	$(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation \
		-C cmake.define.SPARRING_TEST_GAMES=ON -e '.[dev]'
	@touch $@

cluster: install  ## Add Ray, for --cluster and its tests
	$(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation \
		-C cmake.define.SPARRING_TEST_GAMES=ON -e '.[dev,cluster]'

web: install  ## Add the games as WebAssembly, and what tests them in a real browser
	$(BIN)/python -m pip install -q -c constraints.txt 'ziglang>=0.15'
	SPARRING_WASM=1 $(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation \
		-C cmake.define.SPARRING_TEST_GAMES=ON -e '.[dev,wasm,browser]'

train: install  ## Train the default game for five minutes and measure the agent; OPTIONS="--minutes 1"
	$(BIN)/sparring train skull_king $(OPTIONS)

test: install  ## Everything but the long comparisons; the ten slowest tests are shown
	$(MAKE) -j $(JOBS) lint native-test
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow" --durations 10 tests

test-slow: install sanitize sanitize-python  ## The long comparisons
	$(BIN)/python -m pytest -q -m slow tests

figures: install  ## Measure the headline figures, write them into README and the home page; OPTIONS=--check
	$(BIN)/python benchmarks/headline.py --update-docs $(OPTIONS)

gpu:  ## Build, test and measure on a GPU, in one call
	scripts/gpu_suite.sh

lint: install  ## Formatters, linters, types, import rules, the extension's stub
	$(BIN)/ruff format --check -q src tests benchmarks examples scripts
	$(BIN)/ruff check -q src tests benchmarks examples scripts
	$(BIN)/clang-format --dry-run --Werror $(filter %.hpp %.cuh %.cpp,$(SOURCES))
	$(BIN)/mypy
	$(BIN)/oxfmt --check 'src/sparring/**/*.js' 'src/sparring/**/*.css' > /dev/null
	$(BIN)/oxlint --deny-warnings src/sparring
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m nanobind.stubgen -q -m sparring._native -o build/_native.pyi
	diff src/sparring/_native.pyi build/_native.pyi

format: install  ## Format everything, write the stub anew
	$(BIN)/ruff check -q --fix src tests benchmarks examples scripts
	$(BIN)/ruff format -q src tests benchmarks examples scripts
	$(BIN)/oxfmt 'src/sparring/**/*.js' 'src/sparring/**/*.css' > /dev/null
	$(BIN)/clang-format -i $(filter %.hpp %.cuh %.cpp,$(SOURCES))
	$(BIN)/python -m nanobind.stubgen -q -m sparring._native -o src/sparring/_native.pyi

docs: install  ## Write the reference, build the site into build/site
	$(BIN)/python scripts/reference_pages.py
	$(MKDOCS) build --strict

docs-serve: install  ## The site at http://127.0.0.1:8000, built anew when a page changes
	$(MKDOCS) serve --livereload --dev-addr 127.0.0.1:8000

# Ninja finds make's jobs in MAKEFLAGS, cannot use them, and gives up.
native-test: install  ## The native core without Python
	$(NATIVE_CMAKE) -B build/native > /dev/null
	MAKEFLAGS= $(BIN)/cmake --build build/native -- -v > build/native/log || (cat build/native/log; exit 1)
	$(BIN)/ctest --test-dir build/native --output-on-failure -Q -j $(JOBS)

sanitize: install  ## The native tests under ASan + UBSan and under TSan
	for kind in address,undefined thread; do \
		$(NATIVE_CMAKE) -B build/sanitize-$${kind%%,*} -DSPARRING_SANITIZE=$$kind > /dev/null && \
		$(BIN)/cmake --build build/sanitize-$${kind%%,*} && \
		$(BIN)/ctest --test-dir build/sanitize-$${kind%%,*} --output-on-failure || exit 1; \
	done

sanitize-python: install  ## The extension under ASan + UBSan, which the slow tests call
	$(BIN)/cmake -G Ninja -S . -B build/sanitize-python -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python -DSPARRING_SANITIZE=address,undefined \
		-DSPARRING_TEST_GAMES=ON -DSPARRING_WASM=OFF > /dev/null
	$(BIN)/cmake --build build/sanitize-python

wheel-smoke:  ## Build a wheel and use it where there is no compiler and no torch; OPTIONS=--train
	$(PYTHON) scripts/wheel_smoke.py $(WHEEL) $(OPTIONS)

release:  ## Check and build a release: make release VERSION=x.y.z. Uploads nothing
	@$(PYTHON) scripts/release.py $(VERSION)

clean:  ## Remove what was built
	rm -rf build dist $(INSTALLED)
