# make demo       installs Podium into .venv and runs the demo, offline once installed
# make test       installs Podium and its tools into .venv and runs the default tests
# make test-deep  runs the long tests: whole searches, published experiments, floods
# make e2e        builds a Kubernetes control plane with Go and runs the tests that need it
# make lint       runs the linters; make fix applies their fixes
# make docs       regenerates the reference in docs/; make figures redraws the pictures
# make manifests  regenerates the chart's schema and the plain manifests; needs helm
# make lock       locks the dependencies in requirements/; needs uv
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Wheels with the hashes that are locked and nothing else; Podium itself is then built with them.
LOCKED := $(PIP) install --require-hashes --only-binary :all: --no-deps
OWN := $(PIP) install --no-index --no-deps --no-build-isolation -e .
TESTS := $(BIN)/pytest -n auto --dist worksteal -q
# Each process has a control plane of its own, and 2 GB; the tests of a file share what they made.
CLUSTER_TESTS := $(BIN)/pytest tests/cluster -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder -q
# As pip does with what it copies: tests start some thousand processes, and each would do it again.
COMPILE := $(BIN)/python -m compileall -q src

.PHONY: demo test test-deep e2e lint fix docs manifests figures bench lock clean

demo: $(VENV)/.ready
	$(BIN)/podium demo

test: $(VENV)/.ready-dev
	$(COMPILE)
	$(TESTS) -m "not deep"

test-deep: $(VENV)/.ready-dev
	$(COMPILE)
	$(TESTS) -m deep

e2e: $(VENV)/.ready-dev
	assets="$${KUBEBUILDER_ASSETS:-$$(tools/build_control_plane.sh)}" \
	&& KUBEBUILDER_ASSETS="$$assets" $(CLUSTER_TESTS)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.ready-dev
	$(BIN)/cog -r docs/*.md README.md

manifests: $(VENV)/.ready-dev
	$(BIN)/python tools/chart_schema.py
	$(BIN)/python tools/render_manifests.py

figures: $(VENV)/.ready-dev
	$(BIN)/python tools/draw_figures.py

bench: $(VENV)/.ready-dev
	$(BIN)/python bench/check.py

lock:
	$(PYTHON) tools/lock_requirements.py

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Podium needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml requirements/base.txt
	@test -e $@ || echo "setting up $(VENV) ..."
	$(LOCKED) -r requirements/base.txt
	$(OWN)
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml requirements/dev.txt
	@test -e $@ || echo "setting up $(VENV) with the development tools ..."
	$(LOCKED) -r requirements/dev.txt
	$(OWN)
	@touch $@ $(VENV)/.ready
