# Everything sets itself up; nothing is done twice. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help demo test lab mutants check test-system pooler matrix docs catalogue bench-baseline lock wheel clean

BIN := .venv/bin
# Many tests wait for processes and leases: one more than the cores keeps these busy.
JOBS ?= 3
PYTEST := python -m pytest -n $(JOBS)
# What says something new about another version of PostgreSQL: its SQL, its locks, its crashes, and one worker on top.
ON_15 := $(addprefix tests/store/test_,$(addsuffix .py,statements schema roles mark conclude snapshot deliver decide history failover \
	deadlocks plans allowances settlement committer_on_a_server)) tests/queue tests/enqueue \
	tests/faults/test_database_outages.py tests/faults/test_restored.py tests/store/test_whereabouts.py tests/store/test_budgets.py \
	tests/cli/test_worker.py
# What a pooler could spoil: guarded writes and leases, enqueues on borrowed connections, decisions, and workers that are killed.
POOLED := $(addprefix tests/,$(addsuffix .py,$(addprefix store/test_,mark conclude snapshot deliver decide failover resolution replaying \
	committer_on_a_server deadlocks) $(addprefix queue/test_,claim leases lookups renewal) \
	$(addprefix enqueue/test_,borrowed_transactions foreign_habits) \
	$(addprefix reconcile/test_,deciding unseen_commits) operating/test_cancelling faults/test_kills cli/test_worker))
# What takes its time: every byte cut, servers of their own, real waits. Run it after a change to what it watches, and before a release.
LAB := tests/store/test_cut_commits.py tests/store/test_unconfirmed_commits.py tests/store/test_allowance_races.py \
	tests/store/test_migrations_killed.py tests/store/test_migrations_under_load.py tests/faults/test_spool.py \
	tests/faults/test_unknown_saves.py tests/faults/test_restored.py tests/faults/test_side_by_side.py \
	tests/operating/test_messages.py tests/store/test_budget_races.py tests/store/test_reaching.py \
	tests/faults/test_after_an_outage.py tests/faults/test_database_outages.py tests/faults/test_surprises.py \
	tests/workers/test_failing.py tests/demo/test_vanished.py tests/cli/test_worker_without_database.py \
	tests/failover/test_unconfirmed.py tests/failover/test_divided.py tests/faults/test_full_disk.py \
	tests/faults/test_injected_errors.py tests/contract_store/test_contract_divergences.py tests/simulation/test_plants.py \
	tests/measuring/test_every.py tests/devdb/test_kills.py tests/devdb/test_life.py tests/bounds/test_held_looks.py tests/bounds/test_statements.py \
	tests/faults/test_unanswered.py tests/delivery/test_delivery_crashes.py
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

lab: ## the laboratory: what takes its time, and all else as far as it takes to be believed; its figures go to docs/lab.json
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --lab --figures $(FIGURES) -m "not system" $(sort $(LAB) $(FURTHER))

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

test-system: ## the database tests again, on Debian's PostgreSQL 15; root installs it, others are told the package
	@scripts/postgresql-15
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --pg 15 $(ON_15)

pooler: ## a broad part of the tests through PgBouncer in transaction mode, which is fetched where the machine has none
	@scripts/pgbouncer
	@scripts/set-up dev
	@$(BIN)/$(PYTEST) --pooler $(POOLED)
	@$(BIN)/$(PYTEST) tests/faults/test_pgbouncer.py

matrix: ## make test on each Python that is here, of 3.11 to 3.14
	@scripts/matrix -n $(JOBS) -q -m "not system"

docs: ## write the pages anew that are made from code: states, late truth, settings
	@scripts/set-up dev
	@cd tests && ../$(BIN)/python -m docs.states_page > ../docs/states.md
	@cd tests && ../$(BIN)/python -m docs.late_truth_page > ../docs/late-truth.md
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
