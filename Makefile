# The same commands as CI, for daily use in an installed checkout.
PYTHON ?= .venv/bin/python

.PHONY: check test format bench results

check: ## style, types, import contracts, tests
	$(PYTHON) -m ruff format --check fedhh tests benchmarks tools
	$(PYTHON) -m ruff check fedhh tests benchmarks tools
	$(PYTHON) -m mypy
	$(dir $(PYTHON))lint-imports
	$(PYTHON) -m pytest -n auto

test: ## tests and doctests
	$(PYTHON) -m pytest -n auto

format: ## rewrite in the project's style
	$(PYTHON) -m ruff format fedhh tests benchmarks tools
	$(PYTHON) -m ruff check --fix fedhh tests benchmarks tools

BENCHMARKS = startup accounting subset_selection subset_selection_peer rounds discovery_peer \
	stopping scaling

bench: ## speed, as ratios measured in one run, saved in benchmarks/results; takes some minutes
	for name in $(BENCHMARKS); do echo "== $$name"; $(PYTHON) -m benchmarks.$$name || exit 1; done

results: ## tables and figures of the built-in sweeps, into docs/results; takes some minutes
	$(PYTHON) tools/make_results.py
