"""What the tests of money stand on: allowances as they are read, and a spender to whose operations everything happens at random."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, OperationId, Phase, RemoteJobId, RenderState
from coatcheck.core.steps import ConcludeStep, DecideStep, MarkStep, SnapshotStep
from coatcheck.seams import NO_FAULTS
from coatcheck.store.allowances import Allowance, set_allowance
from coatcheck.store.door import Save, Saved
from coatcheck.store.operations import load
from store.ground import ACCOUNT, Ground, look

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BY = {"actor": "ada", "reason": "because"}


def limit(ground: Ground, amount: int | str | None, *, tenant: str = "t1", unit: str = "credits") -> Allowance:
    """Set a limit as `allowance set` does."""
    ceiling = None if amount is None else Decimal(amount)
    return ground.run(
        set_allowance(ground.database.url, tenant_id=tenant, unit=unit, limit=ceiling, actor="ada", faults=NO_FAULTS)
    )


def purse(ground: Ground, *, tenant: str = "t1", unit: str = "credits") -> tuple[object, object]:
    """What an allowance says is held and charged."""
    query = "select held, charged from coatcheck.allowances where tenant_id = %s and unit = %s"
    (row,) = ground.sql(query, tenant, unit)
    return row["held"], row["charged"]


def marks(ground: Ground, operation_ids: Sequence[OperationId]) -> list[Saved]:
    """Try to mark operations in one batch, in this order."""
    return ground.save(
        *(
            ground.step(each, ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT))
            for each in operation_ids
        )
    )


class Spender:
    """One session that lets happen whatever may happen to random operations, in batches of one kind."""

    def __init__(self, ground: Ground, number: int, operation_ids: Sequence[OperationId]) -> None:
        self.ground = ground
        self.chance = random.Random(number)
        self.operation_ids = operation_ids
        self.done: Counter[str] = Counter()

    def round(self, size: int = 8) -> None:
        """Something for each of a few operations."""
        chosen = self.chance.sample(self.operation_ids, size)
        operations = self.ground.run(load(self.ground.line, chosen))
        kinds: dict[type, list[Save]] = {}
        for operation in (operations[each] for each in chosen):
            step = advance(operation, self.event(operation), operation.read_at)
            if isinstance(step, MarkStep | ConcludeStep | SnapshotStep | DecideStep):
                kinds.setdefault(type(step), []).append(self.ground.as_save(step, marked=operation))
        for saves in kinds.values():
            self.done.update(saved.status for saved in self.ground.write(saves))

    def event(self, operation: Operation) -> ev.Event:
        """What might happen in this phase, and now and then a reply of a dispatch that is long past."""
        late = self.late(operation.operation_id) if self.chance.random() < 0.2 else []
        if late:
            return self.accepted(late[0])
        dispatch_id = operation.dispatch_id or DispatchId(self.ground.seams.ids.uuid7())
        doubted = ev.Doubted(dispatch_id=dispatch_id, cause="no_reply")
        back: list[ev.Event] = [
            ev.Throttled(dispatch_id=dispatch_id, retry_after_s=0),
            ev.NotSent(dispatch_id=dispatch_id, cause="refused"),
            ev.Rejected(dispatch_id=dispatch_id, status=422),
        ]
        decisions: list[ev.Event] = [
            ev.ProveAbsent(**BY, quiescent_at=LONG_AGO),
            ev.Redispatch(**BY, quiescent_at=LONG_AGO),
            ev.WriteOff(actor=BY["actor"], reason=BY["reason"], stalled=True, released=self.chance.random() < 0.5),
        ]
        match operation.phase:
            case Phase.PREPARED:
                return ev.Mark(dispatch_id=DispatchId(self.ground.seams.ids.uuid7()), account=ACCOUNT)
            case Phase.DISPATCHING:
                return self.chance.choice([*back, doubted, ev.LeaseEnded(), self.accepted(dispatch_id)])
            case Phase.UNCERTAIN:
                return self.chance.choice([*decisions, *decisions, self.accepted(dispatch_id)])
            case Phase.REJECTED:
                return decisions[1]
            case _:
                job = operation.remote_job_id or RemoteJobId("none")
                return self.chance.choice([decisions[2], self.looked(job), self.looked(job)])

    def accepted(self, dispatch_id: DispatchId) -> ev.Accepted:
        return ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId(f"job-of-{dispatch_id}"))

    def looked(self, job: RemoteJobId) -> ev.Snapshot:
        charged = self.chance.choice([None, Decimal("0.1"), Decimal(7)])
        unit = self.chance.choice([None, "credits", "tokens"])
        figures = None if charged is None else ev.Credits(charged=charged, refunded=charged / 2, unit=unit)
        return replace(look(job, RenderState.FAILED), credits=figures, waited=ev.Waited(reason="accounting"))

    def late(self, operation_id: OperationId) -> list[DispatchId]:
        """A dispatch of which nobody has proven that it created nothing."""
        query = "select dispatch_id from coatcheck.dispatches where operation_id = %s and outcome in ('uncertain', 'proven_absent')"
        return [row["dispatch_id"] for row in self.ground.sql(query, operation_id)][:1]


def differences(ground: Ground) -> list[dict[str, Any]]:
    """Allowances beside the sums over their tenants' dispatches, where the two differ, as of one instant."""
    return ground.sql("""
        select a.tenant_id, a.unit, a.held, a.charged, sums.held as held_now, sums.charged as charged_now
        from coatcheck.allowances as a
        cross join lateral (
          select coalesce(sum(d.held) filter (where d.settled_at is null), 0) as held, coalesce(sum(d.charged), 0) as charged
          from coatcheck.dispatches as d join coatcheck.operations as o using (operation_id)
          where o.tenant_id = a.tenant_id and d.unit = a.unit) as sums
        where (a.held, a.charged) is distinct from (sums.held, sums.charged)""")
