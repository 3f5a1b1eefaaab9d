# make demo   the whole story on a built-in graph          make test   the tests
# Both set everything up by themselves. PYTHON names the interpreter (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo install test test-all fuzz crash mutants lint bench clean

demo: install
	$(BIN)/veil demo --out demo --force

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	touch $@

test: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

test-all: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m ""

fuzz: install
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --inputs 10000
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.flips --flips 2000

crash: install
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.crash --points 500 --graph-kills 500

mutants: install
	$(BIN)/python -m tests.privacy.mutants.plant

lint: install
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy

bench: install
	for name in load train rank growth; do $(BIN)/veil bench $$name --json || exit 1; done

clean:
	rm -rf .venv demo build *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
