"""What all workers together may ask of an account: in flight, per second, and how soon again. Kept in its row, counted under its lock.

Dispatches are counted by their marks and looks by the claims that lease them. What is in flight is counted from the instant it has a limit:
the count begins while nobody can write a dispatch, as an allowance does.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from coatcheck.core.operation import OperationId
from coatcheck.errors import NotFound
from coatcheck.seams import Faults
from coatcheck.store.db import Database
from coatcheck.store.limiting import alone, changing
from coatcheck.store.statements import statement

FAILED_LOOKS: Final = 10
"""So many looks in a row that failed, at all jobs of an account together, pause its observation."""
FIRST_PROBE_S: Final = 5.0
"""After so long such a pause is tried with one look; each that fails doubles it."""
LAST_PROBE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Stands for what is not changed."""


KEPT: Final = Kept()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A change of what an account may be asked for; None lifts a limit, `KEPT` leaves it as it is.

    `max_in_flight` counts renders at the service, `dispatches_per_s` and `looks_per_s` are rates, `look_floor_s` is the least time between
    two looks at one job, `doubt_limit` how many dispatches in a row may end in doubt before the account pauses.
    """

    max_in_flight: int | Kept | None = KEPT
    dispatches_per_s: float | Kept | None = KEPT
    looks_per_s: float | Kept | None = KEPT
    look_floor_s: float | Kept | None = KEPT
    doubt_limit: int | Kept | None = KEPT
    default_estimate: Decimal | Kept | None = KEPT
    unit: str | None = None

    @property
    def changes(self) -> bool:
        """Whether anything is changed at all."""
        return self != Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class LookReport:
    """How a look ended, for its account: `failure` in a word of ours, None where the service answered; `shut_s`: it asked for patience.

    `is_made`: False where it turned out that there was nothing to ask; a pause that it was to try is tried with the next one.
    """

    operation_id: OperationId
    account: str
    leased_at: datetime
    failure: str | None
    shut_s: float | None = None
    is_made: bool = True


async def change_budget(url: str, name: str, budget: Budget, *, faults: Faults) -> None:
    """Change what the provider's account may be asked for, in one transaction; what waits for a budget of dispatches is due at once.

        await change_budget(url, "genace", Budget(max_in_flight=8), faults=NO_FAULTS)

    Raises `NotFound` for an unknown name, `Unavailable` where nothing changed, and `CommitUnknown` where nobody saw whether it did.
    """
    wish = _wish(name, budget)
    async with changing(url, "budget", shown_by="coatcheck providers list", faults=faults) as connection:
        if wish["sets_max_in_flight"]:
            await alone(connection)
        changed = await connection.execute(statement("store", "change_provider"), wish)
        await connection.execute(statement("store", "change_budget"), wish)
        if wish["sets_max_in_flight"] or wish["sets_dispatches_per_s"]:
            await connection.execute(statement("store", "wake_budgeted"), wish)
    if not changed.rowcount:
        message = f"no provider named {name!r} is known"
        raise NotFound(
            message, next="`coatcheck providers list` shows the names; a worker makes its configured ones known."
        )


async def report_looks(database: Database, batch: Sequence[LookReport]) -> list[None]:
    """Count looks that failed in a row at their accounts, pause what does not answer, and end that pause where one was answered."""
    parameters = {
        "account": [report.account for report in batch],
        "leased_at": [report.leased_at for report in batch],
        "failure": [report.failure for report in batch],
        "shut_s": [report.shut_s for report in batch],
        "is_made": [report.is_made for report in batch],
        "limit": FAILED_LOOKS,
        "first_s": FIRST_PROBE_S,
        "last_s": LAST_PROBE_S,
    }
    await database.fetch(statement("store", "report_looks"), parameters)
    return [None for _ in batch]


def _wish(name: str, budget: Budget) -> dict[str, object]:
    wish: dict[str, object] = {"name": name}
    for field, value in asdict(budget).items():
        kept = getattr(budget, field) is KEPT
        wish[field] = None if kept else value
        wish[f"sets_{field}"] = not kept
    return wish
