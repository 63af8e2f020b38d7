"""What the tests of the audit stand on: a world in which everything has happened that may happen, and the audit as a list."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TypedDict

import psycopg
from psycopg import sql

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId, RenderState
from coatcheck.store.audit import CHECKS, CHUNK, FIRST, Finding, audit
from store.ground import Ground, look


class _By(TypedDict):
    actor: str
    reason: str


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BY: _By = {"actor": "ada", "reason": "because"}
TENANT = "t1"
Story = Callable[[Ground, OperationId], object]


@dataclass(frozen=True, kw_only=True)
class World:
    """A database whose operations are known by what became of them."""

    database: postgres.Database
    ids: dict[str, OperationId]

    @contextmanager
    def copy(self) -> Iterator["World"]:
        """The same world in a database of its own."""
        name = f"{self.database.name}_copy"
        with psycopg.connect(self.database.server.url("postgres"), autocommit=True) as admin:
            made = sql.Identifier(name)
            admin.execute(sql.SQL("create database {} template {}").format(made, sql.Identifier(self.database.name)))
            try:
                url = self.database.server.url(name)
                yield World(database=postgres.Database(name=name, url=url, server=self.database.server), ids=self.ids)
            finally:
                admin.execute(sql.SQL("drop database {} with (force)").format(made))


def audited(
    database: postgres.Database,
    *checks: str,
    after: OperationId = FIRST,
    chunk: int = CHUNK,
) -> list[Finding]:
    """Every finding of an audit from beginning to end."""

    async def gathered() -> list[Finding]:
        chosen = frozenset(checks) or frozenset(CHECKS)
        return [
            each
            async for part in audit(database.url, checks=chosen, after=after, chunk=chunk)
            for each in part.findings
        ]

    return asyncio.run(gathered())


def populate(database: postgres.Database) -> World:
    """Let everything happen that may happen, to an operation each; the ground gives the tenant its allowance and the account its limit."""
    with Ground(database) as ground:
        names = [name for each in (_SENT, _DECIDED, _RENDERED) for name in each]
        ids = {name: ground.enqueue(name, estimate="5") for name in ["prepared", *names]}
        for stories in (_SENT, _DECIDED, _RENDERED):
            for name, story in stories.items():
                story(ground, ids[name])
    return World(database=database, ids=ids)


def _doubt(ground: Ground, operation_id: OperationId) -> ev.Doubted:
    event = ev.Doubted(dispatch_id=ground.mark(operation_id), cause="no_reply")
    assert ground.happen(operation_id, event).applied
    return event


def _throttle_then_accept(ground: Ground, operation_id: OperationId) -> None:
    event = ev.Throttled(dispatch_id=ground.mark(operation_id), retry_after_s=0, delay_s=0)
    assert ground.happen(operation_id, event).applied
    ground.accept(operation_id)


def _reject(ground: Ground, operation_id: OperationId) -> None:
    assert ground.happen(operation_id, ev.Rejected(dispatch_id=ground.mark(operation_id), status=422)).applied


def _sweep(ground: Ground, operation_id: OperationId) -> None:
    ground.mark(operation_id)
    assert ground.happen(operation_id, ev.LeaseEnded()).applied


def _end_doubt(event: ev.Event) -> Story:
    def story(ground: Ground, operation_id: OperationId) -> None:
        _doubt(ground, operation_id)
        assert ground.happen(operation_id, event).applied

    return story


def _redispatch(ground: Ground, operation_id: OperationId) -> None:
    """The first dispatch's id arrives after all, when another is current: an orphan."""
    first = _doubt(ground, operation_id).dispatch_id
    assert ground.happen(operation_id, ev.Redispatch(**BY, quiescent_at=LONG_AGO)).applied
    ground.accept(operation_id)
    ground.happen(operation_id, ev.Accepted(dispatch_id=first, remote_job_id=RemoteJobId(f"orphan-{operation_id}")))


def _vanish(ground: Ground, operation_id: OperationId) -> None:
    """A failover lost mark and dispatch; the reply wrote the dispatch again."""
    dispatch_id = ground.mark(operation_id)
    step = ground.step(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId("job-vanished")))
    marked = ground.operation(operation_id)
    ground.sql("delete from coatcheck.dispatches where dispatch_id = %s", dispatch_id)
    ground.sql("delete from coatcheck.history where operation_id = %s and revision = 1", operation_id)
    ground.sql("update coatcheck.allowances set held = held - 5")
    ground.sql("update coatcheck.accounts set in_flight_count = in_flight_count - 1")
    ground.sql(
        "update coatcheck.operations set phase = 'prepared', revision = 0, dispatch_id = null, dispatch_count = 0, account = null"
        " where operation_id = %s",
        operation_id,
    )
    ground.sql("update coatcheck.outbox set action = 'dispatch', account = null where operation_id = %s", operation_id)
    assert ground.save(step, marked=marked)[0].applied


def _render(ground: Ground, operation_id: OperationId) -> None:
    assert ground.happen(operation_id, look(ground.accept(operation_id), RenderState.RENDERING)).applied


def _fail(ground: Ground, operation_id: OperationId) -> None:
    assert ground.happen(operation_id, look(ground.accept(operation_id), RenderState.FAILED, charged=2)).applied


def _lose_and_write_off(ground: Ground, operation_id: OperationId) -> None:
    ground.accept(operation_id)
    assert ground.happen(operation_id, ev.NotFound(grace_s=0)).applied
    assert ground.happen(operation_id, ev.WriteOff(**BY)).applied


def _deliver(ground: Ground, operation_id: OperationId) -> None:
    ground.succeed(operation_id, outputs=2)
    for index in range(2):
        uri = f"file:///sink/{sha256(TENANT.encode()).hexdigest()[:32]}/op/{index}-{'ab' * 32}.png"
        event = ev.OutputStored(index=index, uri=uri, sha256="ab" * 32, bytes=7, sniffed_type="image/png")
        assert ground.happen(operation_id, event).applied


def _fail_delivery(ground: Ground, operation_id: OperationId) -> None:
    ground.succeed(operation_id)
    assert ground.happen(operation_id, ev.OutputFailed(index=0, cause="gone")).applied


_SENT: Mapping[str, Story] = {
    "dispatching": lambda ground, operation_id: ground.mark(operation_id),
    "swept": _sweep,
    "uncertain": _doubt,
    "throttled": _throttle_then_accept,
    "rejected": _reject,
    "vanished": _vanish,
    "cancelled": lambda ground, operation_id: ground.happen(operation_id, ev.Cancel(**BY)),
}
_DECIDED: Mapping[str, Story] = {
    "adopted": _end_doubt(ev.Adopt(**BY, remote_job_id=RemoteJobId("job-adopted"))),
    "proven": _end_doubt(ev.ProveAbsent(**BY, quiescent_at=LONG_AGO)),
    "redispatched": _redispatch,
    "written_off": _end_doubt(ev.WriteOff(**BY)),
    "released": _end_doubt(ev.WriteOff(**BY, released=True)),
}
_RENDERED: Mapping[str, Story] = {
    "rendering": _render,
    "failed": _fail,
    "lost": _lose_and_write_off,
    "delivered": _deliver,
    "undelivered": _fail_delivery,
}
