# Every target makes its own virtual environment; a machine needs only Python 3.11, pip and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
LOCKED := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --quiet

.PHONY: demo test check lint types imports bench demo-data cassettes picture docs docs-tables lock clean

# What ragaudit itself needs: enough to run it.
$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(LOCKED) requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m compileall -q $(VENV)/lib >/dev/null || true
	touch $(READY)

# The same versions, and all that tests and checks need: real stores and frameworks among it.
$(DEV): $(READY) requirements-dev.lock
	$(LOCKED) requirements-dev.lock
	$(BIN)/python -m compileall -q $(VENV)/lib >/dev/null || true
	touch $(DEV)

demo: $(READY)
	$(BIN)/ragaudit demo

test: $(DEV)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEV)
	$(BIN)/mypy

imports: $(DEV)
	$(BIN)/lint-imports

check: lint types imports test

# Speed, without a model. Judge quality and hostile texts need one: python -m benchmarks --help says how.
bench: $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

demo-data: $(DEV)
	$(BIN)/python examples/make_demo.py

# Downloads a judge model of 1.1 GB (examples/local_model) and asks it: the better part of an hour on two cores.
cassettes: $(DEV)
	$(BIN)/python examples/local_model/assemble.py
	test -x .models/venv/bin/python || $(PYTHON) -m venv .models/venv
	.models/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r examples/local_model/requirements.txt
	$(BIN)/python examples/local_model/with_server.py -- \
	  $(BIN)/ragaudit audit examples/judged --tape new -o .models/judged.audit

picture: $(DEV)
	$(BIN)/python docs/picture.py
	$(BIN)/python docs/cast.py

docs-tables: $(DEV)
	$(BIN)/python docs/tables.py

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The larger one first: the smaller one takes its versions.
lock: $(DEV)
	$(COMPILE) --extra dev -o requirements-dev.lock
	$(COMPILE) --constraint requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
