"""What the final account rests on: both books before and after the decisions, who owns each job, the allowances, and the audit's findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from coatcheck.core.operation import OperationId
from coatcheck.demo.evidence import Evidence
from coatcheck.demo.person import Verdict
from coatcheck.store.allowances import Allowance, list_allowances
from coatcheck.store.audit import Finding, audit
from coatcheck.store.db import Database
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """To which operation a remote job belongs, as the store has it, and whether as its `owner` or as an `orphan`."""

    remote_job_id: str
    operation_id: OperationId
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """All of it. `granted` is what each tenant was to have for its orders."""

    before: Evidence
    after: Evidence
    verdicts: tuple[Verdict, ...]
    owners: tuple[Owner, ...]
    granted: Mapping[str, Decimal]
    allowances: tuple[Allowance, ...]
    findings: tuple[Finding, ...]


async def closed(
    before: Evidence,
    after: Evidence,
    verdicts: Sequence[Verdict],
    *,
    granted: Mapping[str, Decimal],
    store: Database,
    url: str,
) -> Closing:
    """Read the rest, when nobody works any more."""
    owners = await store.fetch(statement("demo", "owners"))
    return Closing(
        before=before,
        after=after,
        verdicts=tuple(verdicts),
        owners=tuple(Owner(**row) for row in owners),
        granted=granted,
        allowances=tuple([each async for each in list_allowances(store)]),
        findings=tuple([finding async for part in audit(url) for finding in part.findings]),
    )
