# Lustrum, from a fresh checkout: `make serve` to use it, `make test` to check it.
# All that is needed beforehand is Python 3.11 or newer, git and make.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh

# Processes that tests start find modules compiled, also where the environment would not keep them.
unexport PYTHONDONTWRITEBYTECODE

# Which Python makes .venv; without it, the first good one found: make serve PYTHON=python3.12
PYTHON ?=

BIN := .venv/bin

# The first Python that runs reads bootstrap.py, which finds a good one or says what is missing.
CANDIDATES := $(if $(PYTHON),'$(PYTHON)',python3 python3.14 python3.13 python3.12 python3.11 python)
ASKED = $(or $(firstword $(MAKECMDGOALS)),$@)
define BOOTSTRAP
@for python in $(CANDIDATES); do \
  if "$$python" -c "" >/dev/null 2>&1; then \
    exec "$$python" scripts/bootstrap.py $(if $(PYTHON),--exact) "$$python" $(1) $(ASKED); \
  fi; \
done; \
echo "Lustrum needs Python 3.11 or newer, and $(if $(PYTHON),\`$(PYTHON)\` cannot be run,there is none on PATH); install one or say which to use: make $(ASKED) PYTHON=python3.12" >&2; \
exit 2
endef

# HOST and DATA count only when given to make itself: shells and tools export variables of these
# names for purposes of their own, and a server must not follow them to a public address. A port is
# harmless, so `PORT=8123 make serve` does what it says.
given = $(if $(filter command $(3),$(firstword $(origin $(1)))),$(2) '$($(1))')
SERVE_OPTIONS = $(call given,HOST,--host) $(call given,PORT,--port,environment) $(call given,DATA,--data)

.PHONY: help
help: ## print this list
	@echo "make serve    install what is needed and start the table builder with demonstration data"
	@echo "              (options: HOST=127.0.0.1 PORT=8000 DATA=folder PYTHON=python3.12)"
	@echo "make test     check style, types and imports, and run all tests"
	@echo "make deep     run the tests that take minutes, and properties on many more examples"
	@echo "make coverage run all tests and print which lines they do not reach"
	@echo "make docs     build the documentation into site/"
	@echo "make bench    run the benchmarks (DATA=folder: a folder of suppression problems that some need)"
	@echo "make mutants  change single lines where a wrong one leaks, and see tests fail (MODULES=audit/bounding TESTS=tests/audit)"
	@echo "make format   format the code and mend what can be mended"
	@echo "make release  build the wheel and the bill of its materials into dist/"
	@echo "make audit    look for known vulnerabilities of the pinned packages (needs pip-audit)"
	@echo "make demo-bundles  make the demo's public bundles anew, where protection changed"
	@echo "make lock     pin the newest versions of all dependencies (needs uv)"
	@echo "make clean    remove all that can be made again, .venv included"

.PHONY: serve
serve:
	$(call BOOTSTRAP,run)
	@exec $(BIN)/lustrum serve --demo $(SERVE_OPTIONS)

.PHONY: install
install:
	$(call BOOTSTRAP,dev)

# Each process takes half of the tests as they stand, so that fixtures and compiled loops are made once; the
# one that ends first takes tests from the other.
PARALLEL := -n 2 --dist worksteal

.PHONY: test
test: install
	@$(BIN)/python scripts/ensure_chromium.py
	@$(BIN)/python scripts/ensure_services.py postgresql java promtool
	@$(BIN)/python scripts/ensure_clients.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/pytest $(PARALLEL) --durations=25

# The same tests, and which lines they reach; that takes half as long again.
.PHONY: coverage
coverage: install
	@$(BIN)/python scripts/ensure_chromium.py
	@$(BIN)/python scripts/ensure_services.py postgresql java promtool
	@$(BIN)/python scripts/ensure_clients.py
	@$(BIN)/pytest $(PARALLEL) --cov --cov-report=term:skip-covered

# Proofs that take minutes: every byte of a dataset damaged, every call to the system failing, kills at every step;
# then every property on many more examples.
.PHONY: deep
deep: install
	@$(BIN)/python scripts/ensure_services.py
	$(BIN)/pytest -n 2 -m deep
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest $(PARALLEL) -m "hypothesis and not deep"

.PHONY: docs
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: bench
bench: install
	@for bench in bench/[a-z]*.py; do echo "== $$bench"; \
	  case "$$bench" in \
	    bench/suppression.py) $(BIN)/python "$$bench" $(call given,DATA,) || exit 1 ;; \
	    bench/bounds.py|bench/rounding.py) $(BIN)/python "$$bench" $(call given,DATA,--data) || exit 1 ;; \
	    *) $(BIN)/python "$$bench" || exit 1 ;; \
	  esac; done

.PHONY: mutants
mutants: install
	$(BIN)/python scripts/mutants.py $(MODULES) $(if $(TESTS),--tests $(TESTS))

.PHONY: format
format: install
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The second file is compiled with the first as its limits, so that tests run what users run.
UV ?= uv
COMPILE = $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --no-emit-find-links --quiet
.PHONY: lock
lock:
	@command -v $(UV) >/dev/null || { echo "make lock needs uv; install it: pipx install uv" >&2; exit 2; }
	$(COMPILE) --upgrade --extra build --extra server -o requirements/run.txt
	$(COMPILE) --upgrade --all-extras -c requirements/run.txt -o requirements/dev.txt
	$(subst pyproject.toml,requirements/clients.in,$(COMPILE)) --upgrade -o requirements/clients.txt

# The demo's public bundles, which the package carries; they change only where protection does.
.PHONY: demo-bundles
demo-bundles: install
	$(BIN)/python scripts/demo_bundles.py

# A release: the wheel, byte for byte the same from the same commit, and the bill of its materials.
EPOCH = $(shell git log -1 --format=%ct)
.PHONY: release
release: install
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/hatchling build -t wheel -d dist
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python scripts/sbom.py > dist/lustrum.cdx.json

# Asks public databases of vulnerabilities about every pinned package. If a database cannot be reached, it ends
# with code 3; with OFFLINE=1 it only says so.
PIP_AUDIT ?= pip-audit
.PHONY: audit
audit: install
	@command -v $(PIP_AUDIT) >/dev/null || { echo "make audit needs pip-audit; install it: pipx install pip-audit" >&2; exit 2; }
	@$(BIN)/python scripts/audit_pins.py --pip-audit $(PIP_AUDIT) $(if $(OFFLINE),--offline-ok)

.PHONY: clean
clean:
	rm -rf .venv site build dist .coverage .coverage.* htmlcov .hypothesis \
	  .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
