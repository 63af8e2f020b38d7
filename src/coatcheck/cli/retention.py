"""`retention run`: remove what was only needed to carry operations out that are over. Page by page, so it may be ended and run again at any time."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from coatcheck.cli.opening import database
from coatcheck.cli.options import Actor, AsJson, Tenant, actor_of, given, utf8
from coatcheck.cli.output import say, write_object
from coatcheck.core.operation import TenantId
from coatcheck.errors import CommitUnknown, Refused, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.retention import Retired, Rule, retire

PROGRESS_S = 5.0
"""How often somebody who waits is told."""
MOST_DAYS = 36_500
_AGAIN = "run it again: it goes on with what is left"


def run(
    *,
    days: Annotated[
        int | None,
        Parameter(
            allow_leading_hyphen=True,
            help="What was last changed at least so many days ago; without it, COATCHECK_RETENTION_DAYS.",
        ),
    ] = None,
    tenant: Tenant = None,
    dry_run: Annotated[bool, Parameter(negative="", help="Only say what would be removed.")] = False,
    reason: Annotated[str | None, Parameter(help="Why; kept with each operation.")] = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Remove specifications, replies, sources and undisputed history of what is over. Operations, charges, owners and outputs stay."""
    why = None if reason is None else given("--reason", reason)
    whose = None if tenant is None else TenantId(utf8("--tenant", tenant))
    chosen = None if days is None else _days(days)
    who, tour = actor_of(actor), _Tour(dry_run=dry_run, as_json=as_json)

    async def work() -> None:
        async with database() as (opened, settings):
            rule = Rule(days=_either(chosen, settings.retention_days), tenant_id=whose, actor=who, reason=why)
            async for part in retire(opened, rule, faults=Seams.real().faults, dry_run=dry_run):
                tour.add(part)

    try:
        asyncio.run(work())
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{tour.told}; {_AGAIN}")
        raise
    except (CommitUnknown, Unavailable) as error:
        raise Unavailable(error.message, next=f"{tour.told} so far; {_AGAIN}") from None
    tour.end()


@dataclass(kw_only=True)
class _Tour:
    """One run as it is told."""

    dry_run: bool
    as_json: bool

    def __post_init__(self) -> None:
        self._clock = Seams.real().clock
        self._told_s = self._clock.boottime()
        self._read = self._retired = self._entries = self._bytes = 0

    def add(self, part: Retired) -> None:
        """Count a page, and tell somebody who has waited for a while."""
        self._read += part.read_count
        self._retired += part.retired_count
        self._entries += part.entry_count
        self._bytes += part.specification_bytes
        if not self.as_json and self._clock.boottime() - self._told_s >= PROGRESS_S:
            self._told_s = self._clock.boottime()
            say(self.told)

    @property
    def told(self) -> str:
        """What was done till now."""
        done = "could be retired" if self.dry_run else "retired"
        return f"{self._retired} operations {done}, {self._read - self._retired} older ones kept"

    def end(self) -> None:
        """Say what came of it."""
        if self.as_json:
            write_object(
                {
                    "retired": self._retired,
                    "kept": self._read - self._retired,
                    "history_entries": self._entries,
                    "specification_bytes": self._bytes,
                    "dry_run": self.dry_run,
                }
            )
        else:
            say(self.told)


def _days(days: int) -> int:
    if not 0 <= days <= MOST_DAYS:
        raise Refused(
            f"--days: expected a whole number from 0 to {MOST_DAYS}, got {days}", next="0 is all that is over"
        )
    return days


def _either(given_days: int | None, kept_days: int | None) -> int:
    found = kept_days if given_days is None else given_days
    if found is None:
        raise Refused(
            "expected how long to keep what is over, got neither --days nor COATCHECK_RETENTION_DAYS",
            next="add --days 90, or set COATCHECK_RETENTION_DAYS; --dry-run says what would be removed",
        )
    return found
