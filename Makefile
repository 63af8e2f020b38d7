# Everything sets itself up; nothing is done twice. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help demo test lab mutants check test-system pooler matrix docs catalogue bench-peers bench-baseline lock wheel clean

BIN := .venv/bin
# Many tests wait for processes and leases: one more than the cores keeps these busy.
JOBS ?= 3
# Whoever is done takes of what is left to the others: neighbours in a file are long together, as the seeds are.
PYTEST := python -m pytest -n $(JOBS) --dist worksteal
# What says something new about another version of PostgreSQL, and what a pooler could spoil: SQL and locks, guarded writes and leases, crashes,
# enqueues on borrowed connections, and one worker on top.
ON_15 := $(addprefix tests/store/test_,$(addsuffix .py,statements schema roles mark conclude snapshot deliver decide history failover \
	deadlocks plans allowances settlement committer_on_a_server whereabouts budgets)) tests/queue tests/enqueue \
	$(addprefix tests/faults/test_,$(addsuffix .py,database_outages restored)) tests/cli/test_worker.py
POOLED := tests/store tests/queue tests/enqueue tests/reconcile tests/operating tests/faults/test_kills.py tests/cli/test_worker.py
# What takes its time: every byte cut, servers of their own, real waits. Run it after a change to what it watches, and before a release.
LAB := tests/store/test_cut_commits.py tests/store/test_unconfirmed_commits.py tests/store/test_allowance_races.py \
	tests/store/test_migrations_killed.py tests/store/test_migrations_under_load.py tests/faults/test_spool.py \
	tests/faults/test_unknown_saves.py tests/faults/test_restored.py tests/faults/test_side_by_side.py \
	tests/operating/test_messages.py tests/store/test_budget_races.py tests/store/test_reaching.py \
	tests/faults/test_after_an_outage.py tests/faults/test_database_outages.py tests/faults/test_surprises.py \
	tests/workers/test_failing.py tests/demo/test_vanished.py tests/cli/test_worker_without_database.py \
	tests/failover/test_unconfirmed.py tests/failover/test_divided.py tests/faults/test_full_disk.py \
	tests/faults/test_injected_errors.py tests/contract_store/test_contract_divergences.py tests/simulation/test_plants.py \
	tests/measuring/test_every.py tests/devdb/test_kills.py tests/devdb/test_life.py tests/bounds/test_held_looks.py \
	tests/bounds/test_statements.py \
	tests/faults/test_unanswered.py tests/delivery/test_delivery_crashes.py tests/peers/test_trial.py tests/measuring/test_command.py \
	tests/cli/test_endings.py tests/cli/test_allowance.py tests/cli/test_audit.py tests/test_figures.py
# What goes with every change only so far, and in the laboratory as far as it takes to be believed.
FURTHER := tests/model tests/stateful tests/contract_store tests/simulation tests/mutants tests/failover tests/queue/test_claim.py \
	tests/provider/test_wire_sweep.py $(addprefix tests/faults/test_,$(addsuffix .py,kills kill_pairs kills_at_random halts enqueue_kills \
	command_kills cut_replies unknown_marks injected_errors)) tests/store/test_held_snapshot.py
FIGURES ?= docs/lab.json
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
export PYTHON

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## the whole story on an embedded PostgreSQL and a simulated service, then its account
	@scripts/set-up demo
	@$(BIN)/coatcheck demo

test: ## every test that needs nothing but Python and little time
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) -m "not system" $(addprefix --ignore=,$(LAB))

lab: ## the laboratory: what takes its time, and all else as far as it takes to be believed, or a PART of it; figures go to docs/lab.json
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --lab --figures $(FIGURES) -m "not system" $(or $(PART),$(sort $(LAB) $(FURTHER)))

mutants: ## take the product's promises out one by one, and see each missed by a test
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --lab tests/mutants

bench-peers: ## the same workflow on coatcheck, pgqueuer, oban-py and DBOS, each in an environment of its own: minutes, on a quiet machine
	@scripts/set-up dev
	@$(BIN)/python -m bench.peers

check: ## lint, format, types, import directions
	@scripts/set-up dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test-system: ## the database tests again, on Debian's PostgreSQL 15 and through PgBouncer; what is missing is fetched or named
	@scripts/postgresql-15
	@scripts/pgbouncer
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --pg 15 --pooler $(ON_15)
	@$(BIN)/$(PYTEST) --pg 15 --unpooled $(ON_15)

pooler: ## all tests of the store, queue, enqueues and decisions through PgBouncer in transaction mode, on the newest PostgreSQL
	@scripts/pgbouncer
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --pooler $(POOLED) $(addprefix --ignore=,$(LAB))
	@$(BIN)/$(PYTEST) tests/faults/test_pgbouncer.py

matrix: ## make test on each Python that is here, of 3.11 to 3.14
	@scripts/matrix -n $(JOBS) -q -m "not system"

docs: ## write the pages anew that are made: states, late truth, settings from code, the laboratory from its figures
	@scripts/set-up dev
	@cd tests && ../$(BIN)/python -m docs.states_page > ../docs/states.md
	@cd tests && ../$(BIN)/python -m docs.late_truth_page > ../docs/late-truth.md
	@cd tests && ../$(BIN)/python -m docs.lab_page > ../docs/lab.md
	@$(BIN)/python -m coatcheck.config.page > docs/settings.md

catalogue: ## write anew what the migrations make, object by object: after a migration was added
	@scripts/set-up dev
	@cd tests && ../$(BIN)/python -m store.catalogue_file > ../src/coatcheck/sql/catalogue.tsv

bench-baseline: ## write anew what one operation costs, in statements, rows and log: after a change that is worth more
	@scripts/set-up dev
	@cd tests && ../$(BIN)/python -m counters.baseline > ../bench/baseline.json.new && mv ../bench/baseline.json.new ../bench/baseline.json

lock: ## make both locks anew from pyproject.toml
	@scripts/set-up dev
	@$(COMPILE) --upgrade --extra demo --group build pyproject.toml --output-file requirements/demo.lock
	@$(COMPILE) --upgrade --extra all --extra testing --group dev --constraint requirements/demo.lock pyproject.toml \
		--output-file requirements/dev.lock

wheel: ## build dist/coatcheck-….whl
	@scripts/set-up dev
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist

clean: ## delete all that the other targets made, with the databases of tests and demo
	@scripts/remove-databases
	@rm -rf .venv .venv-* .coatcheck .postgres .pgbouncer .bench build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
