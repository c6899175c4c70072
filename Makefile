# The same commands as CI, for daily use in an installed checkout.
PYTHON ?= .venv/bin/python
CODE = fedhh tests benchmarks tools examples docs/conf.py docs/_ext setup.py

.PHONY: check test format bench results docs

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

BENCHMARKS = startup accounting subset_selection subset_selection_peer exact_tally rounds \
	discovery_peer decoding stopping scaling

bench: ## speed, as ratios measured in one run, saved in benchmarks/results; takes some minutes
	for name in $(BENCHMARKS); do echo "== $$name"; $(PYTHON) -m benchmarks.$$name || exit 1; done

results: ## tables and figures of the built-in sweeps, into docs/results; takes some minutes
	$(PYTHON) tools/make_results.py

docs: ## the documentation site, into docs/_build/html; warnings are errors
	$(PYTHON) -m sphinx -W --keep-going -q docs docs/_build/html
