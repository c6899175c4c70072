# The same commands as CI, for daily use in an installed checkout.
PYTHON ?= .venv/bin/python
CODE = fedhh tests benchmarks tools examples docs/conf.py docs/_ext setup.py

.PHONY: check test test-all format bench results docs web web-check

check: ## style, types, import contracts, tests
	$(PYTHON) -m ruff format --check $(CODE)
	$(PYTHON) -m ruff check $(CODE)
	$(PYTHON) -m mypy
	$(dir $(PYTHON))lint-imports
	$(PYTHON) tools/slow_tests.py
	$(PYTHON) -m pytest -n auto -m "not slow"

test: ## the default suite and doctests
	$(PYTHON) -m pytest -n auto -m "not slow"

test-all: ## slow tests, too
	$(PYTHON) -m pytest -n auto

format: ## rewrite in the project's style
	$(PYTHON) -m ruff format $(CODE)
	$(PYTHON) -m ruff check --fix $(CODE)

bench: ## speed, as ratios measured in one run, saved in benchmarks/results; some minutes
	$(PYTHON) -m benchmarks

results: ## tables and figures of the built-in sweeps, into docs/results; takes some minutes
	$(PYTHON) tools/make_results.py

docs: ## the documentation site, into docs/_build/html; warnings are errors
	$(PYTHON) -m sphinx -W --keep-going -q docs docs/_build/html

web: ## the script of a report's page, of the modules in web/src and the libraries in package.json
	cd web && npm ci --silent && npm run --silent build

web-check: ## its style and types, and whether the package holds what its sources make
	cd web && npm ci --silent && npm run --silent check
