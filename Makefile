# make demo   sets Podium up in .venv and shows it at work, offline once installed
# make test   sets Podium up in .venv with its tools and passes the tests
# make lint   runs the linters; make fix mends what they can; make figures redraws the pictures
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint fix docs figures bench clean

demo: $(VENV)/.ready
	$(BIN)/podium demo

test: $(VENV)/.ready-dev
	$(BIN)/pytest -n auto --dist worksteal -q

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

figures: $(VENV)/.ready-dev
	$(BIN)/python tools/draw_figures.py

bench: $(VENV)/.ready-dev
	$(BIN)/python bench/check.py

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Podium needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml constraints.txt
	@test -e $@ || echo "setting up $(VENV) ..."
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@test -e $@ || echo "setting up $(VENV) with the development tools ..."
	$(PIP) install -c constraints.txt -e . --group dev
	@touch $@ $(VENV)/.ready
