"""Budgets as they are set and read, and a database whose time stands still, so that a rate is exact to the request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import sql

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, OperationId
from coatcheck.seams import NO_FAULTS
from coatcheck.store.budgets import Budget, change_budget
from coatcheck.store.door import Saved
from store.ground import ACCOUNT, Ground

MISCOUNTED: LiteralString = """
select budget.account, budget.in_flight_count, flights.number
from coatcheck.accounts as budget
cross join lateral (
  select count(*) as number from coatcheck.operations
  where account = budget.account and coatcheck.is_in_flight(phase, render_state)) as flights
where budget.max_in_flight is not null and budget.in_flight_count <> flights.number"""
"""Accounts whose count is not what is in flight, as of one instant."""
STOPPED: LiteralString = """
create or replace function coatcheck.due_now() returns timestamptz language sql stable parallel safe
    as $$ select timestamptz 'epoch' + interval '60 y' + pg_catalog.make_interval(secs => {at}) $$;
create or replace function coatcheck.lease_now() returns timestamptz language sql volatile parallel safe
    as $$ select timestamptz 'epoch' + interval '60 y' + pg_catalog.make_interval(secs => {at}) $$;
"""


@dataclass(kw_only=True)
class StillClock:
    """What a database takes for now, until it is moved."""

    database: postgres.Database
    at: float = 0.0

    def move(self, seconds: float) -> None:
        """Go on by `seconds` and stand still again."""
        self.at = round(self.at + seconds, 6)
        with self.database.connect() as connection:
            connection.execute(sql.SQL(STOPPED).format(at=sql.Literal(self.at)))


def stopped(database: postgres.Database) -> StillClock:
    """Time stands still from here on."""
    clock = StillClock(database=database)
    clock.move(0)
    return clock


def budget(ground: Ground, change: Budget, name: str = ACCOUNT) -> None:
    """Set it as `providers set` does."""
    ground.run(change_budget(ground.database.url, name, change, faults=NO_FAULTS))


def account(ground: Ground, name: str = ACCOUNT) -> dict[str, Any]:
    """The account's row."""
    (row,) = ground.sql("select * from coatcheck.accounts where account = %s", name)
    return row


def flights(ground: Ground, name: str = ACCOUNT) -> int:
    """How many the account counts in flight; the count is true."""
    assert ground.sql(MISCOUNTED) == []
    return int(account(ground, name)["in_flight_count"])


def another(ground: Ground, name: str, of_account: str) -> None:
    """One more provider, of the same account or of another."""
    ground.sql(
        "insert into coatcheck.providers (name, account, kind, default_estimate) values (%s, %s, 'genace', 2)",
        name,
        of_account,
    )


def marked(ground: Ground, operation_ids: Sequence[OperationId], of_account: str = ACCOUNT) -> list[Saved]:
    """Try to mark operations for an account in one batch, in this order."""
    return ground.save(
        *(
            ground.step(each, ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=of_account))
            for each in operation_ids
        )
    )
