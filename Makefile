# Everything a developer does. Each target sets up what it needs: Python 3.11 or newer, pip and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := .venv-run
comma := ,
# With it, each program that a test starts would compile the whole package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-agents test-adapters test-long lint bench proof docs dist clean

run: $(RUN)/.ready  ## Walk through what Kept does, in a scratch home
	$(RUN)/bin/kept tour

test: $(READY)  ## All tests, the short versions of the long suites included
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

AGENTS ?= claude,codex,gemini,qwen,copilot,opencode,goose,cn,inspector,server-memory
test-agents: $(READY)  ## Real agent programs against a scripted model; AGENTS=claude,codex chooses
	@$(BIN)/python -m tests.agents.programs $(subst $(comma), ,$(AGENTS)) \
	&& KEPT_AGENTS=$(AGENTS) $(BIN)/python -m pytest -q tests/agents

ADAPTERS ?= agent_framework,anthropic,google_adk,langchain,langgraph,llama_index,openai,pydantic_ai
test-adapters: $(READY)  ## Adapters against the real frameworks, each in its own environment; ADAPTERS=… chooses
	$(BIN)/python -m tests.adapters.frameworks $(subst $(comma), ,$(ADAPTERS))

test-long: $(READY)  ## The long versions: storms, power cuts, canaries, byte flips
	$(BIN)/python -m tests.crash.kills --kills 1000
	$(BIN)/python -m tests.crash.powercut
	$(BIN)/python -m tests.crash.faults
	$(BIN)/python -m tests.crash.storm
	$(BIN)/python -m tests.crash.session_kills --kills 300
	$(BIN)/python -m tests.crash.upkeep_kills
	$(BIN)/python -m tests.storage.erase_canaries
	$(BIN)/python -m tests.storage.byte_flips --flips 10000
	$(BIN)/python -m tests.postgres.chaos
	$(BIN)/python -m tests.recall.renders
	KEPT_TEST_LONG=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m 'slow or hypothesis'
	KEPT_TEST_LONG=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m 'not slow and not hypothesis' tests/properties tests/postgres/test_in_step.py

lint: $(READY)  ## Style, types, layers, boundaries, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict examples
	$(BIN)/lint-imports
	$(BIN)/python -m tests.architecture
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/stems.py --check

bench: $(READY)  ## Speed and size; docs/benchmarks.md lists the longer ones
	$(BIN)/python -m bench.cold_start
	$(BIN)/python -m bench.storage
	$(BIN)/python -m bench.remember
	$(BIN)/python -m bench.briefing
	$(BIN)/python -m bench.upkeep
	$(BIN)/python -m bench.size

proof: $(READY)  ## The figures of docs/benchmarks.md, beside peers: ten minutes on an idle machine
	$(BIN)/python -m bench.delivery
	$(BIN)/python -m bench.delivery --said
	$(BIN)/python -m bench.talk
	$(BIN)/python -m bench.peers || true  # ends with 1 if a bar fails, and shows it
	$(BIN)/python -m bench.recall --only zipf || true
	$(BIN)/python -m bench.hook || true

docs: $(READY)  ## Write the generated pages, and the tables of stems
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/stems.py

dist: .venv-dist/.ready  ## Build the wheel and the source archive, and check them
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist .
	.venv-dist/bin/python -m twine check --strict dist/*
	$(PYTHON) -m tests.wheel dist

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Kept needs Python 3.11 or newer; this is " + sys.version)'

$(READY): pyproject.toml constraints.txt
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# To run Kept, its own few packages are enough; the tools of developers take minutes to install.
$(RUN)/.ready: pyproject.toml constraints.txt
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(RUN)
	$(RUN)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

.venv-dist/.ready: constraints.txt
	$(CHECK_PYTHON)
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build twine
	touch $@

clean:
	rm -rf $(VENV) $(RUN) .venv-dist dist .mypy_cache .ruff_cache .hypothesis .coverage*
