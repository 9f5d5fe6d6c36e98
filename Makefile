# `make help` lists the targets. Everything goes into .venv, except the programs that `make labs` installs as root.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two stamps: a newcomer's `make demo` need not wait for the test tools.
DEMO := $(VENV)/.installed-demo
DEV := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
TRAINER := .venv-examples/.installed
KERAS2 := .venv-keras2
RIVALS := .venv-bench/.installed
RAY := .venv-ray/.installed
# Most tests wait for schedulers and brokers, so there may be more workers than cores; not so many that these are late.
WORKERS ?= 8
PYTEST := $(BIN)/python -m pytest --dist loadgroup
ARGS ?=
# Where this is set, every one of the tests' thousands of processes would compile runyard anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo example-deps bench-deps ray-deps test-quick test test-long labs lab-slurm lab-gridengine lab-rabbitmq check format docs bench trial clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(DEV)  ## make .venv with runyard and everything its tests need

$(DEMO): pyproject.toml scripts/make-venv
	@sh scripts/make-venv "$(PYTHON)" "$(VENV)"
	@$(PIP) '.[demo]'
	@touch $(DEMO)

$(DEV): pyproject.toml scripts/make-venv
	@sh scripts/make-venv "$(PYTHON)" "$(VENV)"
	@$(PIP) '.[dev,postgres,rabbitmq,demo]'
	@touch $(DEMO) $(DEV)

demo: $(DEMO)  ## start a yard, sweep over a small model's parameters, show the best
	@$(BIN)/python examples/demo.py

# In environments of their own: PyTorch is too big for everybody's, and Keras 2 needs an old Python.
example-deps: $(TRAINER)  ## what examples with PyTorch, Keras or PyTables and their tests run on
	@sh scripts/make-keras2-venv "$(KERAS2)" tests/labs/keras2.txt

$(TRAINER): examples/patchwise/requirements.txt examples/ic-train/requirements.txt examples/torch-digits/requirements.txt \
		tests/labs/writers.txt tests/labs/searchers.txt scripts/make-venv
	@sh scripts/make-venv "$(PYTHON)" $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check \
		$(patsubst %,--requirement %,$(filter %.txt,$^))
	@touch $@

bench-deps: $(RIVALS)  ## Flask and Celery, with which runyard is compared

$(RIVALS): bench/requirements.txt scripts/make-venv
	@sh scripts/make-venv "$(PYTHON)" $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

ray-deps: $(RAY)  ## Ray Tune, with which `make bench` compares sweeps

$(RAY): bench/ray-requirements.txt scripts/make-venv
	@sh scripts/make-venv "$(PYTHON)" $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --requirement $<
	@touch $@

test-quick: check  ## checks and unit tests, for the editing loop (a minute and a half)
	@$(PYTEST) -n 4 -q -m "not long" tests/unit $(ARGS)

test: install example-deps labs check  ## everything that a change can break (half an hour on two cores)
	@$(PYTEST) -n $(WORKERS) -m "not long" $(ARGS)

test-long: install example-deps bench-deps labs  ## endurance, many Pythons, large examples, thousands of random inputs
	@$(PYTEST) -n $(WORKERS) -m "long or hypothesis" --hypothesis-profile=many $(ARGS)

labs:  ## the programs that the tests talk to, by apt-get when root
	@sh scripts/install-labs

lab-slurm: install labs  ## leave a small Slurm running to try runyard on
	@$(BIN)/python -m tests.labs slurm

lab-gridengine: install labs  ## leave a small Grid Engine running to try runyard on (root)
	@$(BIN)/python -m tests.labs gridengine

lab-rabbitmq: install labs  ## leave a RabbitMQ running to try runyard on
	@$(BIN)/python -m tests.labs rabbitmq

check: install  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: install  ## put the code into shape
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: install  ## write the generated reference pages anew
	@$(BIN)/python scripts/write_settings_page.py
	@$(BIN)/python scripts/write_cli_page.py

bench: install bench-deps ray-deps labs  ## measure runyard against the plain alternatives
	@$(BIN)/python -m bench $(ARGS)

trial: install labs  ## faults drawn by seeds, all endings on all sites, GPU; by hand, outside CI
	@$(BIN)/python -m tests.trial $(ARGS)

clean:  ## remove what the targets above made
	rm -rf $(VENV) .venv-examples .venv-bench .venv-ray $(KERAS2) demo-home build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
