"""What was spent and is held, added up in one statement: the rows of a report together are exactly the dispatches that it is about.

A dispatch belongs to the period in which its mark was written. That instant never changes, so each dispatch is in one period for good,
and what the service says later corrects a period's sums and moves nothing to another.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from coatcheck.store.db import Database, Plan
from coatcheck.store.statements import statement


class By(enum.StrEnum):
    """What a report has a row for, beside the unit."""

    TENANT = "tenant"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """One row. `charged` is `charged_by_service` and `charged_as_assumed`; `refunded` is taken off in it already.

    `held` waits for its end, and `uncertain_held` is the part of it that a person has to decide. `orphan_charged` is the part of `charged`
    for dispatches whose remote jobs no operation took. `name` is the tenant or provider, None where the operation is gone.
    """

    name: str | None
    unit: str
    dispatch_count: int
    charged: Decimal
    charged_by_service: Decimal
    charged_as_assumed: Decimal
    refunded: Decimal
    held: Decimal
    uncertain_count: int
    uncertain_held: Decimal
    orphan_count: int
    orphan_charged: Decimal


async def report_charges(
    database: Database, *, by: By, begins_at: datetime | None = None, ends_at: datetime | None = None
) -> Sequence[Charges]:
    """The dispatches that were marked from `begins_at` on and before `ends_at`, added up by name and unit.

    rows = await report_charges(database, by=By.TENANT)
    """
    parameters = {"by": by, "begins_at": begins_at, "ends_at": ends_at}
    rows = await database.fetch(statement("store", "report_charges"), parameters, plan=Plan.FRESH)
    return [Charges(**row) for row in rows]
