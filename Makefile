# Every target makes its own virtual environment; a machine needs only Python 3.11, pip and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check lint types imports bench demo-data picture lock clean

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m compileall -q $(VENV)/lib >/dev/null || true
	touch $(READY)

demo: $(READY)
	$(BIN)/ragaudit demo

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

check: lint types imports test

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

demo-data: $(READY)
	$(BIN)/python examples/make_demo.py

picture: $(READY)
	$(BIN)/python docs/picture.py

lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
