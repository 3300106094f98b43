# Targets for contributors. PYTHON chooses the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin

# Two workers need about 4 GB of memory each; an idle worker takes tests from the other.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal

.PHONY: help demo quick test test-all check docs bench bench-gpu dist dist-check format lock clean

help:
	@echo "make demo       train a pusher of many shapes (under 4 minutes), record a video, and show it"
	@echo "make quick      run the tests of the changes since the branch left main"
	@echo "make test       run all tests except the slow ones"
	@echo "make test-all   run all tests"
	@echo "make check      check format, lint, types, layers and project rules"
	@echo "make docs       build the documentation into site/, with all warnings as errors"
	@echo "make bench      measure speed and append the results to benchmarks/results.jsonl"
	@echo "make bench-gpu  run the benchmarks that need an NVIDIA GPU"
	@echo "make dist       build the sdist and the wheel in dist"
	@echo "make dist-check build them, and check metadata, contents and size"
	@echo "make format     format the code"
	@echo "make lock       write the installed versions to requirements-dev.txt"
	@echo "make clean      remove the virtual environment"

demo: .venv/.user
	$(BIN)/manyworlds demo $(ARGS)

quick: .venv/.dev
	@tests=$$($(BIN)/python tools/affected_tests.py) || exit 1; \
	if [ -z "$$tests" ]; then echo "No file with tests has changed."; exit 0; fi; \
	echo $$tests; $(PYTEST) -m "not slow" $$tests $(ARGS) || [ $$? = 5 ]  # all of them slow

test: .venv/.dev
	$(PYTEST) -m "not slow" $(ARGS)

test-all: .venv/.dev
	$(PYTEST) $(ARGS)

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python tools/check_house.py

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build $(ARGS)
	$(BIN)/python tools/write_shared_worlds.py

bench: .venv/.dev
	$(BIN)/python -m benchmarks $(ARGS)

bench-gpu: .venv/.dev
	$(BIN)/python -m benchmarks --gpu $(ARGS)

dist: .venv/.dev
	rm -rf build dist
	$(BIN)/python -m build

# ARGS="--install all" also installs the wheel with each extra in a fresh environment, and tries it.
dist-check: dist
	$(BIN)/python tools/check_dist.py
	@if [ -n "$(ARGS)" ]; then $(BIN)/python tools/check_dist.py $(ARGS); fi

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# After an upgrade whose tests pass. PyTorch is left out: its builds for CPU and CUDA differ by machine.
lock: .venv/.dev
	{ echo "# Versions with which make check and make test-all pass; make lock writes this file."; \
	$(BIN)/python -m pip freeze --exclude-editable --exclude torch; } > requirements-dev.txt

clean:
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo \
	"manyworlds needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1): install one (Debian: apt-get install python3.11-venv) and run make PYTHON=python3.11."; \
	exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo \
	"'$(PYTHON)' cannot make virtual environments: install its venv package (Debian: apt-get install python3-venv)."; \
	exit 1; }

.venv/.user: pyproject.toml | .venv/bin/python
	@echo "installing manyworlds into .venv; this takes a few minutes the first time ..."
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[train,lab,meshes]'
	@touch $@

.venv/.dev: pyproject.toml requirements-dev.txt | .venv/bin/python
	@echo "installing manyworlds and its development tools into .venv ..."
	$(BIN)/python -m pip install -q --disable-pip-version-check -c requirements-dev.txt -e '.[dev]'
	@# Tests read its MJCF files only, so none of its dependencies are needed.
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps dm_control==1.0.50
	@touch $@ .venv/.user

.venv/.docs: pyproject.toml | .venv/bin/python
	@echo "installing what builds the documentation into .venv ..."
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs,share]'
	@touch $@
