"""What is over loses what was only needed to carry it out, and keeps for ever what money and repeatability rest on.

Removed are the specification, the first bytes of replies, the sources of outputs, and the history of an operation that nobody intervened in.
Kept are the operation with its key and hash, its dispatches with their money, whose the remote jobs are, where the outputs lie, and the entry
`retired` that says who removed what and when. So the same key goes on meaning the same operation, and no report of charges changes.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from coatcheck.core.operation import TenantId
from coatcheck.seams import Faults, Point
from coatcheck.store.db import Database, Plan
from coatcheck.store.statements import statement

PAGE: Final = 1_000
"""Specifications that one statement reads: a transaction as short as any other of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What may go: operations that are over and were last changed at least `days` days of 24 hours ago; of one tenant, where one is named.

    `actor` and `reason` are kept with each.
    """

    days: int
    tenant_id: TenantId | None
    actor: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """What a page came to.

    `read_count` operations, of the tenant if one is named, were old enough by their ids and still whole; what of them was not retired stays,
    as something is open.
    """

    read_count: int
    retired_count: int
    entry_count: int
    specification_bytes: int


async def retire(
    database: Database, rule: Rule, *, faults: Faults, dry_run: bool = False, page: int = PAGE
) -> AsyncIterator[Retired]:
    """Page after page, oldest first, each a transaction of its own: whatever ends it early, what is done is done. `dry_run` only counts.

    Example: `async for part in retire(database, rule, faults=seams.faults): …`. Raises what `Database.fetch` raises; running it again is
    always safe.
    """
    own = {} if dry_run else {"actor": rule.actor, "reason": rule.reason}
    text = statement("store", "count_retirable") if dry_run else statement("store", "retire")
    faults.reached(Point.C1_AUTHORISED)
    after = UUID(int=0)
    while True:
        parameters = {"after": after, "days": rule.days, "tenant_id": rule.tenant_id, "size": page, **own}
        faults.reached(Point.C2_COMMAND_COMMIT_SENT)
        (row,) = await database.fetch(text, parameters, plan=Plan.FRESH)
        faults.reached(Point.C3_APPLIED)
        last, page_count = row.pop("last_id"), row.pop("page_count")
        yield Retired(**row)
        if page_count < page:
            return
        after = last
