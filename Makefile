# Needs python3 (3.11 or later) and make; every target sets up the environment it needs in .venv.
PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check -c constraints.txt
# Worker processes for the tests; `make test JOBS=0` runs them in this one.
JOBS ?= auto
# One BLAS thread for each of them: idle BLAS threads spin, and workers that share cores wait for each other.
# The tests of our own threads ask for two by themselves; tests/conftest.py does the same for torch.
BLAS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest attack mutate lint pytest bench docs publish paper examples clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */|/' | awk -F'|' '{printf "make %-10s %s\n", $$1, $$2}'

# A stamp is written only after its step succeeded, and an environment whose pip does not run is made afresh,
# so an interrupted set-up is repaired by the next one.
.venv/venv.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Gramian needs Python 3.11 or later; try: make PYTHON=python3.12 ...")'
	@$(PY) -m pip --version >/dev/null 2>&1 || { echo "Creating .venv"; $(PYTHON) -m venv --clear .venv; }
	@touch $@

.venv/core.stamp: pyproject.toml constraints.txt .venv/venv.stamp
	@echo "Installing Gramian and what it needs into .venv (once)"
	@$(PIP) -e .
	@touch $@

.venv/dev.stamp: pyproject.toml constraints.txt .venv/venv.stamp
	@echo "Installing Gramian and its development tools into .venv (once)"
	@$(PIP) -e '.[dev]'
	@touch $@ .venv/core.stamp

demo: .venv/core.stamp  ## every method on known data: reference numbers, certificates, a gallery in demo/
	@.venv/bin/gramian demo --out demo --force

test: lint pytest examples  ## lint, type check, tests, doctests and the examples in the documents

# torch and Triton are pinned here: the constraints are for what every user gets, and a range would fetch gigabytes.
.venv/all.stamp: .venv/dev.stamp
	@$(PIP) torch==2.13.0 triton==3.6.0
	@touch $@

test-all: .venv/all.stamp lint examples docs  ## the same with torch, Triton, PostgreSQL, the site and a browser, which must all be there
	GRAMIAN_REQUIRE_BROWSER=1 GRAMIAN_REQUIRE_POSTGRESQL=1 GRAMIAN_REQUIRE_SITE=1 GRAMIAN_REQUIRE_TRITON=1 \
		OPENBLAS_NUM_THREADS=$(BLAS) $(PY) -m pytest -q -n $(JOBS)

LOWEST := .venv-lowest/bin/python
.venv-lowest/stamp: pyproject.toml constraints-lowest.txt
	@$(PYTHON) -m venv --clear .venv-lowest
	@echo "Installing the lowest versions that Gramian allows into .venv-lowest (once)"
	@$(LOWEST) -m pip install -qq --disable-pip-version-check -c constraints-lowest.txt -e '.[arrays,report,tables,test]'
	@touch $@

test-lowest: .venv-lowest/stamp  ## the tests with the lowest versions that pyproject.toml allows
	OPENBLAS_NUM_THREADS=$(BLAS) $(LOWEST) -m pytest -q -n $(JOBS)

# A failure is repeated by the seed printed: make attack SEED=... CASES=...
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
CASES ?= 10000
ATTACK = GRAMIAN_ATTACK_SEED=$(1) GRAMIAN_ATTACK_CASES=$(CASES) HYPOTHESIS_PROFILE=attack \
	OPENBLAS_NUM_THREADS=$(BLAS) $(PY) -m pytest -q -n $(JOBS) --hypothesis-seed=$(1)

attack: .venv/dev.stamp  ## hours: hostile files, signals and random problems, and new examples for every property
	@seed=$(SEED); echo "Seed $$seed, $(CASES) cases of each kind; again: make attack SEED=$$seed CASES=$(CASES)"; \
	$(call ATTACK,$$seed) tests/attack; attacked=$$?; \
	$(call ATTACK,$$seed) -m hypothesis tests --ignore tests/attack; explored=$$?; \
	echo "Seed $$seed: the attack ended with $$attacked, new examples with $$explored"; \
	test $$attacked -eq 0 && test $$explored -eq 0

.venv/mutate.stamp: .venv/dev.stamp
	@$(PIP) -e '.[dev,mutate]'
	@touch $@

# MODULE=gramian.pca.rank tries one module, SAMPLE=50 so many changes of each.
mutate: .venv/mutate.stamp  ## hours: small wrong changes where bounds, paths, statistics and outputs are computed
	$(PY) tools/mutate.py $(if $(MODULE),--module $(MODULE)) $(if $(SAMPLE),--sample $(SAMPLE))

pytest: .venv/dev.stamp
	OPENBLAS_NUM_THREADS=$(BLAS) $(PY) -m pytest -q -n $(JOBS)

PROSE := README.md CONTRIBUTING.md SECURITY.md docs paper bench/README.md

lint: .venv/dev.stamp  ## ruff check, ruff format --check, mypy --strict, spelling and prose
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/codespell $(PROSE) CHANGELOG.md src tools bench tests
	$(PY) tools/check_prose.py $(PROSE)

bench: .venv/dev.stamp  ## each workload against scikit-learn, ratios and peak memory
	$(PY) -m bench

.venv/docs.stamp: .venv/dev.stamp
	@$(PIP) -e '.[dev,docs]'
	@touch $@

docs: .venv/docs.stamp  ## build the site into docs/_build/html; every warning is an error
	OPENBLAS_NUM_THREADS=$(BLAS) $(PY) tools/build_site.py

paper: .venv/dev.stamp  ## build paper/paper.pdf, its figures from bench/results
	$(PY) tools/build_paper.py

# TO is any folder that a web server shows: the pages need nothing but files.
publish: docs  ## build the site and copy it: make publish TO=host:/var/www/gramian (rsync) or TO=/a/folder
	@test -n "$(TO)" || { echo "Say where to: make publish TO=FOLDER_OR_HOST:FOLDER"; exit 1; }
	rsync -a --delete docs/_build/html/ "$(TO)/"

examples: .venv/dev.stamp  ## run every example in the documents and check their links
	$(PY) tools/check_docs.py README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs bench

clean:  ## remove what the other targets made, .venv included
	rm -rf .venv .venv-lowest demo build dist docs/_build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
