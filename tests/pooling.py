"""`--pooler`: every test's `database.url` leads through one PgBouncer in transaction mode, which lends no session for longer than a transaction.

What the code under test and its callers open goes that way. The tests' own hand stays beside it: making databases, moving time, and
`database.connect()`, by which a test watches and holds things up. A test whose story is about a session of its own is left out, and why.
"""

from collections.abc import Iterator, Mapping

import pytest

import postgres
from coatcheck.devdb import DevPostgres
from faults.pooler import Pooler, pooled

SETTINGS = {
    "default_pool_size": "50",
    "max_client_conn": "400",
    "verbose": "0",
    # what callers ask for when they connect, and what a session of one's own would keep
    "ignore_startup_parameters": "options,extra_float_digits,default_transaction_isolation",
}
PREPARES = "asks for plans by statements that it prepares in SQL, and a session that is lent on has them already"
NAMES = "knows a session by its application's name or by its absence, and a pooler keeps sessions that nobody uses"
STARTS = "asks for an isolation level when it connects, and a pooler passes no such wish on"
HIDES = (
    "looks for the session that goes on with what a broken connection was sent, and a pooler hides which one that is"
)
ROLES = "takes a role for its session, and whoever is lent the session next has it, too"
REPLACES = "ends an idle session, and the pooler lends another: there is nothing to notice"
_STORE, _ENQUEUE = "tests/store/test_", "tests/enqueue/test_"
LEFT_OUT: Mapping[str, str] = {
    f"{_STORE}audit.py": "makes each world a copy of a database, to which nobody may be connected meanwhile, and a pooler is",
    f"{_STORE}plans.py": PREPARES,
    f"{_STORE}doubt_plans.py": PREPARES,
    f"{_STORE}generic_plans.py": PREPARES,
    "tests/queue/test_turns.py::test_tenants_with_only_looks_to_come_cost_a_claim_one_short_walk": PREPARES,
    "tests/queue/test_turns.py::test_a_backlog_does_not_make_a_claim_dearer": PREPARES,
    "tests/queue/test_turns.py::test_a_burst_that_no_statistics_tell_of_is_walked_by_index": PREPARES,
    f"{_STORE}committer_on_a_server.py::test_a_connection_that_is_cut_loses_nothing_and_marks_nothing_twice[marks-when it is": REPLACES,
    f"{_STORE}committer_on_a_server.py::test_no_transaction_of_ours_is_open_between_statements": NAMES,
    f"{_STORE}replaying.py::test_a_database_that_goes_away_in_the_middle_puts_the_rest_off": NAMES,
    f"{_STORE}resolution.py::test_a_session_that_has_not_begun_with_what_it_was_sent_is_outlasted": HIDES,
    f"{_ENQUEUE}borrowed_transactions.py::test_at_repeatable_read_the_loser_reruns": STARTS,
    f"{_ENQUEUE}borrowed_transactions.py::test_a_role_may_enqueue_once_it_has_the_applications_role": ROLES,
    f"{_ENQUEUE}enqueue_crashes.py": NAMES,
}
"""What is not run behind a pooler, by the beginning of its name, and why not."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pooler", action="store_true", help="lead every test to its database through PgBouncer in transaction mode"
    )
    parser.addoption("--unpooled", action="store_true", help="run only what --pooler leaves out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot be pooled, or all else."""
    pooled, unpooled = config.getoption("--pooler"), config.getoption("--unpooled")
    if not pooled and not unpooled:
        return
    out = [item for item in items if item.nodeid.startswith(tuple(LEFT_OUT)) is pooled]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def pooler(pytestconfig: pytest.Config, server: DevPostgres) -> Iterator[Pooler | None]:
    """The one before this run's server; None where tests reach it directly."""
    if not pytestconfig.getoption("--pooler"):
        yield None
        return
    own = postgres.Database(name="postgres", url=server.url("postgres"), server=server)
    with pooled(own, "transaction", **SETTINGS) as running:
        yield running
