"""Faults of the product, planted on purpose: each breaks one promise, and the runs must find it. What is not found here is not watched.

with PLANTS["the end of a lease sends again"]():
    outcome = play(7)
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from unittest import mock

from coatcheck.app.reconciling import choosing
from coatcheck.core import events as ev
from coatcheck.core.actions import Action, Aim
from coatcheck.core.machine import advance
from coatcheck.core.operation import Operation, Phase
from coatcheck.core.steps import DecideStep, Refusal, Step
from coatcheck.provider import line, wire
from coatcheck.provider.progress import Progress
from coatcheck.store.door import MarkSave, Saved, Status
from coatcheck.store.resolution import Traces
from coatcheck.workers import dispatch
from coatcheck.workers.desk import Desk
from coatcheck.workers.replaying import Replayer
from memory.statements import EFFECTS
from memory.tables import Row, Tables

Plant = Callable[[], contextlib.AbstractContextManager[object]]
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


def sends_again() -> contextlib.AbstractContextManager[object]:
    """A POST without a reply is sent once more, as SDKs do."""
    original = wire.post

    async def post(request: Any, *, progress: Progress, **given: Any) -> Any:
        exchange = await original(request, progress=progress, **given)
        if exchange.complete or not exchange.bytes_sent:
            return exchange
        return await original(request, progress=Progress(given["seams"].clock), **given)

    return mock.patch.object(dispatch, "post", post)


def sends_unseen() -> contextlib.AbstractContextManager[object]:
    """A mark whose commit nobody saw counts as committed."""

    async def marks(_: Traces, batch: Sequence[MarkSave]) -> list[Saved]:
        return [Saved(status=Status.APPLIED, revision=save.step.revision + 1) for save in batch]

    return mock.patch.object(Traces, "marks", marks)


def sends_after_lease() -> contextlib.AbstractContextManager[object]:
    """The end of a lease leads back to prepared, as in queues of repeatable work."""

    def advanced(operation: Operation, event: ev.Event, now: datetime) -> Step | Refusal:
        step = advance(operation, event, now)
        if not isinstance(event, ev.LeaseEnded) or not isinstance(step, DecideStep):
            return step
        return replace(step, phase=Phase.PREPARED, lanes=(Aim(lane=0, action=Action.DISPATCH),))

    return mock.patch("coatcheck.workers.reconcile.advance", advanced)


def ignores_quiescence() -> contextlib.AbstractContextManager[object]:
    """A person's proof of absence is taken although something may still arrive."""

    def event_of(*given: Any, **named: Any) -> Any:
        event = choosing.event_of(*given, **named)
        return replace(event, quiescent_at=_LONG_AGO) if isinstance(event, ev.ProveAbsent | ev.Redispatch) else event

    return mock.patch("coatcheck.app.reconciling.operator.event_of", event_of)


def drops_orphans() -> contextlib.AbstractContextManager[object]:
    """An id that comes late is forgotten where another dispatch is current."""

    def spoiled(tables: Tables) -> None:
        for row in tables.remote_jobs:
            if row["role"] == "orphan":
                tables.remote_jobs.drop((row["account"], row["remote_job_id"]))
                for each in tables.dispatches.of(row["operation_id"]):
                    if each["remote_job_id"] == row["remote_job_id"]:
                        tables.dispatches.change(each["dispatch_id"], remote_job_id=None, outcome="proven_absent")

    return _after("store/conclude", spoiled)


def forgets_the_revision() -> contextlib.AbstractContextManager[object]:
    """What a look changed is saved whatever the operation has become since, final states included."""

    def unguarded(tables: Tables, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        known = [tables.operations.get(each) for each in parameters["operation_id"]]
        revisions = [row["revision"] if row else 0 for row in known]
        for row in known:
            if row is not None and row["final_at"] is not None:
                tables.operations.change(row["operation_id"], render_state="rendering", final_at=None)
        return {**parameters, "revision": revisions}

    return _before("store/snapshot", unguarded)


def leaves_the_spool() -> contextlib.AbstractContextManager[object]:
    """Replies that dead workers left on the disk are nobody's."""

    async def replay(_: Replayer) -> None:
        """Nothing."""

    return mock.patch.object(Replayer, "replay", replay)


def sends_late() -> contextlib.AbstractContextManager[object]:
    """The clock is not asked before the send, and the kernel is not told when to give up."""

    @contextlib.contextmanager
    def both() -> Iterator[None]:
        def wide(*, send_by: float, limit_s: float) -> wire.SendWindow:
            return wire.SendWindow(send_by=send_by + 1_000, limit_s=limit_s)

        with (
            mock.patch.object(dispatch, "SendWindow", wide),
            mock.patch.object(line.Line, "expire", return_value=None),
        ):
            yield

    return both()


def drops_the_lane() -> contextlib.AbstractContextManager[object]:
    """What is to be looked at again later is acknowledged instead."""

    async def release(desk: Desk, message: Any, *_: Any, **__: Any) -> None:
        await desk.acknowledge(message)

    return mock.patch.object(Desk, "release", release)


def settles_nothing() -> contextlib.AbstractContextManager[object]:
    """Of a POST that created nothing the money is kept."""

    def spoiled(tables: Tables) -> None:
        for row in tables.dispatches:
            if row["outcome"] in ("rejected", "throttled", "not_sent") and row["charged"] == 0:
                tables.dispatches.change(row["dispatch_id"], charged=row["held"])

    return _after("store/conclude", spoiled)


def delivers_twice() -> contextlib.AbstractContextManager[object]:
    """A delivered output goes back to pending when its operation is looked at again."""

    def spoiled(tables: Tables) -> None:
        for row in tables.deliveries:
            if row["state"] == "delivered" and row["output_index"] == 0:
                tables.deliveries.change((row["operation_id"], 0), state="pending", uri=None, sha256=None, bytes=None)

    return _after("store/snapshot", spoiled)


def _after(name: str, spoiled: Callable[[Tables], None]) -> contextlib.AbstractContextManager[object]:
    original = EFFECTS[name]

    def effect(tables: Tables, parameters: Mapping[str, Any]) -> list[Row]:
        rows = original(tables, parameters)
        spoiled(tables)
        return rows

    return mock.patch.dict(EFFECTS, {name: effect})


def _before(
    name: str, changed: Callable[[Tables, Mapping[str, Any]], Mapping[str, Any]]
) -> contextlib.AbstractContextManager[object]:
    original = EFFECTS[name]

    def effect(tables: Tables, parameters: Mapping[str, Any]) -> list[Row]:
        return original(tables, changed(tables, parameters))

    return mock.patch.dict(EFFECTS, {name: effect})


_WILD: Final[Mapping[str, float]] = {}
"""Whatever mix the seed draws."""
PLANTS: Final[Mapping[str, tuple[Plant, str, Mapping[str, float]]]] = {
    "a POST without a reply is sent again": (sends_again, "S1", _WILD),
    "a mark that nobody saw is sent": (sends_unseen, "S1", {"DATABASE_LOST_BEFORE": 0.1, "DATABASE_LOST_AFTER": 0.1}),
    "the end of a lease leads back to prepared": (sends_after_lease, "S3", _WILD),
    "quiescence is not waited for": (
        ignores_quiescence,
        "S2",
        {"CREATE": 0.2, "DECIDED": 1.0},
    ),
    "late ids are forgotten": (drops_orphans, "were created", {"STOP_AT_POINT": 0.015, "DECIDED": 1.0}),
    "revisions do not guard": (forgets_the_revision, "S7", _WILD),
    "the spool is not replayed": (leaves_the_spool, "nobody saved", _WILD),
    "the clock is not asked before a send": (sends_late, "S1", {"STOP_AT_POINT": 0.015}),
    "lanes are dropped": (drops_the_lane, "S12", _WILD),
    "what created nothing costs something": (settles_nothing, "S11", _WILD),
    "what is delivered is delivered again": (delivers_twice, "wrong", _WILD),
}
"""Each with the promise that the finding names, and the mix that brings it out; empty: the seed's own."""
