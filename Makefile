PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

ifndef SEED
SEED := $(shell date +%s)
endif

# Bytecode is kept, also where the environment says otherwise: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=

PYTHONS ?= $(PYTHON)  # interpreters with which `make dist` installs and runs the wheel

PREFIX ?= $(HOME)/.local
COMMAND := $(PREFIX)/bin/matrixdp

# Tests of what is promised: guarantees, layers, public names, results that must not change.
CLAIMS := $(wildcard tests/golden tests/unit/test_claims_*.py) $(addprefix tests/contract/,test_imports.py test_names.py)
# Tests that repeat more at night.
NIGHTLY := tests/property tests/statistical tests/contract/test_benchmarks.py $(addprefix tests/unit/,ledger/test_handles.py ledger/test_reading.py ledger/test_postgres_stops.py release/test_output_folder.py cli/test_hostile.py cli/test_bad_input.py)

.PHONY: demo install check test coverage docs nightly oldest others gpu bench accuracy audit proofs mutants studio-faults dist clean

demo: .venv/demo          ## design and release private correlations; shows a table, writes a picture and a report
	$(BIN)/python -m matrixdp demo

install: .venv/full       ## link the command into PREFIX/bin, by default ~/.local/bin; the clone must stay where it is
	@if [ -e "$(COMMAND)" ] && [ ! -L "$(COMMAND)" ]; then echo "$(COMMAND) exists and is not a link; remove it, or choose another place with PREFIX=..." >&2; exit 1; fi
	mkdir -p "$(PREFIX)/bin"
	ln -sfn "$(CURDIR)/$(BIN)/matrixdp" "$(COMMAND)"
	@"$(COMMAND)" --version
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo 'Add it to your PATH: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

check: .venv/dev          ## lint, types and the claims, for every save
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -n 2 --quiet $(CLAIMS); tests=$$?; wait $$types && exit $$tests

test: .venv/dev           ## lint, types and all tests, for every commit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p build
	$(BIN)/mypy & types=$$!; \
	$(BIN)/python -m pytest --quiet tests/browser > build/browser.log 2>&1 & pages=$$!; \
	$(BIN)/python -m pytest -n auto --quiet --dist worksteal --ignore tests/browser; tests=$$?; \
	wait $$pages; pages=$$?; cat build/browser.log; \
	wait $$types && [ $$tests -eq 0 ] && [ $$pages -eq 0 ]

coverage: .venv/dev       ## the lines that the tests leave out; fails below the floor in pyproject.toml
	$(BIN)/python -m pytest -n auto --quiet --cov --ignore tests/statistical

docs: .venv/docs          ## the documentation site in build/site, with pictures that it draws; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "Open build/site/index.html"

nightly: .venv/dev        ## new examples, new seeds, and many kills and races; repeat with SEED=...
	MATRIXDP_NIGHTLY=$(SEED) $(BIN)/python -m pytest -n auto --hypothesis-seed=$(SEED) $(NIGHTLY)

oldest: build/oldest/ready  ## the unit tests with the oldest versions that pyproject.toml allows
	build/oldest/bin/python -m pytest -n auto --quiet tests/unit

others: build/others/ready  ## the tests that need OpenDP, diffprivlib or Spark, with the versions of packages that these need; needs Java
	build/others/bin/python -m pytest -n auto --quiet tests/contract/test_migration.py tests/unit/records/test_spark.py
	build/others/bin/python -m pytest -n auto --quiet tests/contract/test_benchmarks.py -k "people_methods or table_answers"

gpu: .venv/dev .venv/cuda     ## kernels beside their reference bit for bit, their law at 10^10 draws, ratios; needs an NVIDIA GPU
	$(BIN)/python -m pytest --quiet -o norecursedirs= tests/gpu
	$(BIN)/python -m benchmarks.gpu

bench: .venv/bench        ## the table of ratios, each measured side by side in one run
	$(BIN)/python -m benchmarks

accuracy: .venv/accuracy  ## the estimators beside their peers, one table a task
	$(BIN)/python -m benchmarks.accuracy
	$(BIN)/python -m benchmarks.structure_moments
	$(BIN)/python -m benchmarks.table_answers

audit: .venv/dev          ## attack all queries, replay all fits, try the broken variants; AUDIT='--pairs ... --seconds ...'
	PYTHONPATH=tests $(BIN)/python -m audits $(AUDIT)

proofs: .venv/proofs      ## prove the inequalities behind the numbers in ball arithmetic, or list what is not proved
	mkdir -p build
	$(BIN)/python -m proofs.export build/numbers.json
	$(BIN)/python -m proofs.prove build/numbers.json

mutants: .venv/dev        ## make small mistakes in a copy of the source, one at a time; MUTANTS='--only ... --jobs ...'
	PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANTS)

studio-faults: .venv/dev  ## kill the studio at 50 moments; 50 analysts with 20 requests each against a budget for 200
	MATRIXDP_STUDIO_FAULTS=1 $(BIN)/python -m pytest --quiet tests/unit/studio/test_faults.py

dist: .venv/dist          ## wheel and sdist in dist, the same bytes twice, run in empty environments; PYTHONS='...' DIST=--newest
	$(BIN)/python tests/distribution.py $(addprefix --python ,$(PYTHONS)) $(DIST)

.venv/python:
	$(PYTHON) -m venv .venv
	touch $@

.venv/%: .venv/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[$*]'
	touch $@

build/oldest/ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv --clear build/oldest
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt --editable '.[test]' httpx
	touch $@

build/others/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear build/others
	grep -Ev '^(polars|scikit-learn)==' constraints.txt > build/others/constraints.txt
	build/others/bin/python -m pip install --quiet --disable-pip-version-check --constraint build/others/constraints.txt --editable '.[others]'
	touch $@

clean:
	rm -rf .venv .coverage build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis matrixdp-demo
