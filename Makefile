# The same commands as CI, for daily use in an installed checkout.
PYTHON ?= .venv/bin/python
CODE = fedhh papers tests benchmarks tools examples docs/conf.py docs/_ext setup.py

.PHONY: check test format bench bench-more results docs web web-check

check: ## style, types, import contracts, tests
	$(PYTHON) -m ruff format --check $(CODE)
	$(PYTHON) -m ruff check $(CODE)
	$(PYTHON) -m mypy
	$(dir $(PYTHON))lint-imports
	$(PYTHON) -m pytest -n auto

test: ## tests and doctests
	$(PYTHON) -m pytest -n auto

format: ## rewrite in the project's style
	$(PYTHON) -m ruff format $(CODE)
	$(PYTHON) -m ruff check --fix $(CODE)

BENCHMARKS = adaptive startup commands accounting subset_selection exact_tally pipeline gboard_pass rounds decoding sweep files live table1
# They wait, or install other packages.
MORE_BENCHMARKS = ledger subset_selection_peer oracle_peers discovery_peer stopping scaling

bench: ## speed, as ratios measured in one run, saved in benchmarks/results; five to seven minutes
	for name in $(BENCHMARKS); do echo "== $$name"; $(PYTHON) -m benchmarks.$$name || exit 1; done

bench-more: ## against other packages, stopping, a second worker; takes some minutes, and the network
	for name in $(MORE_BENCHMARKS); do echo "== $$name"; $(PYTHON) -m benchmarks.$$name || exit 1; done

results: ## tables and figures of the built-in sweeps, into docs/results; takes some minutes
	$(PYTHON) tools/make_results.py

docs: ## the documentation site, into docs/_build/html; warnings are errors
	$(PYTHON) -m sphinx -W --keep-going -q docs docs/_build/html

web: ## the script of a report's page, of the modules in web/src and the libraries in package.json
	cd web && npm ci --silent && npm run --silent build

web-check: ## its style and types, and whether the package holds what its sources make
	cd web && npm ci --silent && npm run --silent check
