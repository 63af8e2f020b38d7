"""How the hot statements reach their rows: by the index that their third line names, with custom and with generic plans.

Plans are compared by shape and by pages touched, never by time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action, ParkReason
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId, RenderState
from coatcheck.core.steps import Boundary, Incident
from coatcheck.queue.leases import Acknowledge, Leases, Message, Release, SetAside, Wanted
from coatcheck.store.db import Database, Row
from coatcheck.store.db import Plan as Planned
from coatcheck.store.door import Door, Save
from coatcheck.store.incidents import Note, note
from coatcheck.store.operations import scan
from coatcheck.store.resolution import Traces
from coatcheck.store.statements import statement
from store.ground import ACCOUNT, Ground, look, stored
from store.test_statements import PARAMETER

BIG = {
    "operations",
    "outbox",
    "dispatches",
    "history",
    "specifications",
    "deliveries",
    "snapshots",
    "remote_jobs",
    "incidents",
    "allowances",
}
CROWD: Sequence[LiteralString] = (
    """insert into coatcheck.operations (operation_id, tenant_id, operation_key, provider, specification_hash, authorised_by, created_at,
         updated_at)
       select coatcheck.new_id(), case when n > 39997 then 'small' else 't' || n % 50 end, 'crowd' || n, 'genace', sha256('x'), 'crowd', now(), now()
       from generate_series(1, 40000) as n""",
    """insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at)
       select coatcheck.new_id(), 0, (array['dispatch', 'observe', 'reconcile'])[1 + n % 3], 'genace', 'genace', 0,
         coatcheck.lease_now() + interval '1 h' + make_interval(secs => n)
       from generate_series(1, 200000) as n""",
    """insert into coatcheck.specifications select operation_id, '{}' from coatcheck.operations where operation_key like 'crowd%'""",
    """insert into coatcheck.history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
       select operation_id, 0, 'generation_requested', 'crowd', now(), 'prepared', 'none', 'not_started' from coatcheck.operations
       where operation_key like 'crowd%'""",
    """insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at,
         send_by_at, quiescent_at)
       select coatcheck.new_id(), operation_id, 1, 1, 'crowd', 'genace', 'w', now(), now(), now() from coatcheck.operations
       where operation_key like 'crowd%'""",
    """insert into coatcheck.remote_jobs select 'genace', operation_id::text, operation_id, null, 'orphan', now()
       from coatcheck.operations where operation_key like 'crowd%'""",
    """insert into coatcheck.snapshots (operation_id, remote_job_id, remote_status, seen_at)
       select operation_id, 'j', 's', now() from coatcheck.operations where operation_key like 'crowd%'""",
    """insert into coatcheck.deliveries (operation_id, output_index, source, updated_at)
       select operation_id, 0, 's', now() from coatcheck.operations where operation_key like 'crowd%'""",
    """insert into coatcheck.incidents select operation_id, 'k', 'ours', 'd', 1, now(), now() from coatcheck.operations
       where operation_key like 'crowd%'""",
    """insert into coatcheck.allowances (tenant_id, unit, ceiling, set_by, updated_at)
       select 'purse' || n, 'credits', 1, 'crowd', now() from generate_series(1, 5000) as n""",
    "analyze",
)


class Recorded(Exception):
    """Carries what would have been sent."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        super().__init__()
        self.parameters = parameters


class Recorder(Database):
    """Takes the parameters of a statement down instead of running it."""

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Planned = Planned.AUTO
    ) -> Sequence[Row]:
        raise Recorded(parameters or {})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a plan scans: tables in whole, indexes by name; and how many pages it touched, where it was run."""

    scanned: set[str] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)
    nodes: list[str] = field(default_factory=list)
    pages: int = 0


def walked(node: dict[str, Any], plan: Plan) -> Plan:
    plan.nodes.append(node["Node Type"])
    if node["Node Type"] == "Seq Scan":
        plan.scanned.add(node["Relation Name"])
    if "Index Name" in node:
        plan.indexes.add(node["Index Name"])
    for below in node.get("Plans", ()):
        walked(below, plan)
    return plan


class Planner:
    """A database with many operations and messages, of which a few are of the worker's concern."""

    def __init__(self, ground: Ground, crowd: Sequence[LiteralString] = CROWD) -> None:
        self.ground = ground
        for query in crowd:
            ground.sql(query)
        self.recorder = Recorder("", seams=ground.seams, name="recorder")
        self.door = Door(self.recorder, ground.worker)
        self.leases = Leases(self.recorder, ground.worker)

    def steps(self, name: str) -> list[Save]:
        """Saves of one kind, for operations that stand where such a save finds them."""
        saves = []
        for number in range(5):
            operation_id = self.ground.enqueue(f"{name}{number}")
            saves.append(self.ground.as_save(self.ground.step(operation_id, self.event(name, operation_id))))
        return saves

    def event(self, name: str, operation_id: OperationId) -> ev.Event:
        match name:
            case "mark":
                return ev.Mark(dispatch_id=DispatchId(self.ground.seams.ids.uuid7()), account=ACCOUNT)
            case "conclude":
                job = RemoteJobId(f"new-{operation_id}")
                return ev.Accepted(dispatch_id=self.ground.mark(operation_id), remote_job_id=job)
            case "snapshot":
                return look(self.ground.accept(operation_id), RenderState.SUCCEEDED, outputs=2)
            case "deliver":
                self.ground.succeed(operation_id)
                return stored(0)
            case _:
                self.ground.mark(operation_id)
                return ev.LeaseEnded()

    def messages(self) -> list[Message]:
        """Five leases of the worker's own."""
        for number in range(5):
            self.ground.enqueue(f"lease{number}")
        return self.ground.claim(Action.DISPATCH, 5)

    def recorded(self, work: Any) -> Mapping[str, Any]:
        try:
            self.ground.run(work)
        except Recorded as recorded:
            return recorded.parameters
        raise AssertionError("nothing was sent")

    def plan(self, room: str, name: str, parameters: Mapping[str, Any], *, generic: bool, run: bool = False) -> Plan:
        """The plan of a statement, as `explain` tells it; with `run`, it is carried out and undone."""
        numbers: dict[str, int] = {}
        text = statement(room, name).replace("%%", "%")
        body = PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}{found[2] or ''}", text)
        with psycopg.connect(self.ground.database.url) as connection:
            connection.execute(f"set plan_cache_mode = force_{'generic' if generic else 'custom'}_plan".encode())
            if generic and name == "claim":
                # as its session is told
                connection.execute(statement("store", "plan_for_any").encode(), {"pid": connection.info.backend_pid})
            connection.execute(f"prepare probe as {body}".encode())
            found = connection.execute("select parameter_types::text[] from pg_prepared_statements").fetchone()
            assert found is not None
            values = [
                sql.SQL("{}::{}").format(parameters[each], sql.SQL(kind))
                for each, kind in zip(numbers, found[0], strict=True)
            ]
            how = sql.SQL("explain (format json{}) execute probe({})").format(
                sql.SQL(", analyze, buffers" if run else ""), sql.SQL(", ").join(values)
            )
            row = connection.execute(how).fetchone()
            connection.rollback()
        assert row is not None
        top = row[0][0]["Plan"]
        return walked(top, Plan(pages=top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0)))


@pytest.fixture(scope="module")
def planner(template: postgres.Template) -> Iterator[Planner]:
    with template.copy() as database, Ground(database) as ground:
        yield Planner(ground)


@pytest.fixture(params=[False, True], ids=["custom", "generic"])
def generic(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def claim(planner: Planner) -> Mapping[str, Any]:
    wanted = [
        Wanted(action=action, provider="genace", account=ACCOUNT, room=100, lease_s=30)
        for action in (Action.DISPATCH, Action.OBSERVE)
    ]
    return planner.recorded(planner.leases.claim(wanted, doubts=100, doubt_lease_s=30))


def test_a_claim_with_nothing_due_touches_a_handful_of_pages(planner: Planner, generic: bool) -> None:
    planner.ground.sql("delete from coatcheck.outbox where visible_at < now() + interval '30 min'")
    planner.ground.sql("vacuum coatcheck.outbox")
    plan = planner.plan("queue", "claim", claim(planner), generic=generic, run=True)
    assert plan.scanned.isdisjoint(BIG)
    assert {"outbox_turn_idx", "outbox_due_idx", "outbox_doubt_idx", "outbox_suspect_idx"} <= plan.indexes
    assert plan.pages < 80


def test_a_claim_finds_and_updates_its_rows_by_index(planner: Planner, generic: bool) -> None:
    plan = planner.plan("queue", "claim", claim(planner), generic=generic)
    queues = {"outbox_turn_idx", "outbox_due_idx", "outbox_deadline_idx", "outbox_doubt_idx", "outbox_suspect_idx"}
    about = {"operations_pkey", "specifications_pkey", "deliveries_pkey", "dispatches_pkey"}
    assert plan.indexes - {"accounts_pkey"} == {*queues, *about, "outbox_pkey"}
    # accounts are as many as a team has contracts
    assert plan.scanned <= {"accounts"}


@pytest.mark.parametrize("name", ["mark", "conclude", "snapshot", "deliver", "decide"])
def test_a_save_reaches_its_operations_by_their_key(planner: Planner, name: str, generic: bool) -> None:
    parameters = planner.recorded(getattr(planner.door, name)(planner.steps(name)))
    plan = planner.plan("store", name, parameters, generic=generic)
    assert plan.scanned.isdisjoint(BIG)
    assert {"operations_pkey", "outbox_pkey"} <= plan.indexes
    assert ("allowances_pkey" in plan.indexes) is (name != "deliver")
    planner.ground.sql("delete from coatcheck.operations where operation_key like %s", f"{name}%")


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("change_allowance", {"allowances_pkey"}),
        ("open_allowance", {"operations_key", "dispatches_number"}),
        ("list_allowances", {"allowances_pkey", "operations_key", "outbox_pkey"}),
        ("wake_allowance", {"operations_key", "outbox_pkey"}),
    ],
)
def test_an_allowance_is_found_by_its_tenant(planner: Planner, name: str, indexes: set[str]) -> None:
    """What waits is looked for among all messages, which are those of unfinished operations only."""
    place = {"tenant_id": "small", "unit": "credits", "after_tenant": "", "after_unit": "", "size": 10}
    planner.ground.sql(
        "update coatcheck.outbox set wait_reason = 'allowance' where action = 'dispatch' and lease_token % 99 = 0"
    )
    planner.ground.sql("analyze coatcheck.outbox")
    values = {**place, "ceiling": 5, "actor": "ada"}
    needed = {found for found, _ in PARAMETER.findall(statement("store", name))}
    plan = planner.plan("store", name, {each: values[each] for each in needed}, generic=False)
    # two indexes begin with the tenant
    assert {found.replace("operations_tenant_idx", "operations_key") for found in plan.indexes} == indexes
    assert plan.scanned <= {"outbox"}


@pytest.mark.parametrize(
    ("kind", "lookup", "indexes"),
    [
        ("mark", "marks", {"operations_pkey", "dispatches_number"}),
        ("conclude", "conclusions", {"operations_pkey", "history_pkey"}),
        ("snapshot", "snapshots", {"operations_pkey", "history_pkey"}),
        ("deliver", "deliveries", {"operations_pkey", "deliveries_pkey"}),
        ("decide", "decisions", {"operations_pkey", "history_pkey"}),
    ],
)
def test_what_a_step_left_behind_is_found_by_key(
    planner: Planner, kind: str, lookup: str, indexes: set[str], generic: bool
) -> None:
    resolution = Traces(planner.recorder, planner.ground.worker)
    parameters = planner.recorded(getattr(resolution, lookup)(planner.steps(kind)))
    plan = planner.plan("store", "resolve", parameters, generic=generic)
    assert plan.scanned.isdisjoint(BIG)
    assert indexes <= plan.indexes
    planner.ground.sql("delete from coatcheck.operations where operation_key like %s", f"{kind}%")


@pytest.mark.parametrize("name", ["renew", "release", "acknowledge", "park"])
def test_the_end_of_a_lease_reaches_its_rows_by_their_key(planner: Planner, name: str, generic: bool) -> None:
    messages = planner.messages()
    batches: dict[str, list[Any]] = {
        "renew": messages,
        "release": [Release(message=message, delay_s=1) for message in messages],
        "acknowledge": [Acknowledge(message=message) for message in messages],
        "park": [SetAside(message=message, reason=ParkReason.LEASE_COUNT) for message in messages],
    }
    parameters = planner.recorded(getattr(planner.leases, name)(batches[name]))
    plan = planner.plan("queue", name, parameters, generic=generic)
    assert plan.scanned == set()
    assert plan.indexes == {"outbox_pkey"}
    planner.ground.sql("delete from coatcheck.operations where operation_key like 'lease%%'")


READS: Sequence[tuple[str, dict[str, Any], set[str]]] = (
    ("find", {"tenant_id": "t1"}, {"operations_pkey"}),
    ("find", {"tenant_id": None}, {"operations_pkey"}),
    ("load", {}, {"operations_pkey"}),
    ("load_deliveries", {}, {"deliveries_pkey"}),
    ("show_dispatches", {}, {"dispatches_number", "remote_jobs_pkey"}),
    ("show_history", {}, {"history_pkey"}),
    ("show_incidents", {}, {"incidents_pkey"}),
    ("show_messages", {}, {"outbox_pkey"}),
    ("load_message", {"lane": 0}, {"outbox_pkey", "operations_pkey", "deliveries_pkey", "dispatches_pkey"}),
    ("find_resting_outputs", {}, {"deliveries_pkey", "outbox_pkey"}),
)


@pytest.mark.parametrize(
    ("name", "parameters", "indexes"), READS, ids=lambda value: value if isinstance(value, str) else None
)
def test_a_read_uses_its_index(
    planner: Planner, name: str, parameters: dict[str, Any], indexes: set[str], generic: bool
) -> None:
    (row,) = planner.ground.sql(
        "select operation_id from coatcheck.operations order by operation_id offset 20000 limit 1"
    )
    one = row["operation_id"]
    values = {**parameters, "operation_id": [one] if name in ("load", "load_deliveries") else one}
    plan = planner.plan("store", name, values, generic=generic)
    # a message is told with its account, and of those there are few
    few = {"providers", "accounts"} if name == "show_messages" else set()
    assert plan.indexes - {"accounts_pkey", "providers_pkey"} == indexes
    assert plan.scanned <= few


@pytest.mark.parametrize("phase", [None, "prepared"])
@pytest.mark.parametrize(("name", "tenant_id"), [("list", None), ("list_of_tenant", "t1"), ("list_of_tenant", "small")])
def test_a_page_of_a_list_touches_few_rows_beside_its_own(
    planner: Planner, name: str, tenant_id: str | None, phase: str | None
) -> None:
    """A tenant of three operations among forty thousand, and one among fifty alike: no walk over the others' rows."""
    values = {"tenant_id": tenant_id, "phase": phase, "after": UUID(int=0), "size": 10}
    plan = planner.plan("store", name, values, generic=False, run=True)
    assert plan.scanned == set()
    assert plan.pages < 40


def test_pages_of_a_list_are_planned_for_their_own_tenant(planner: Planner) -> None:
    """A prepared statement may settle on a plan for the average tenant, which walks all the others' rows for a small one."""

    async def read() -> Sequence[Row]:
        database = Database(planner.ground.database.url, seams=planner.ground.seams, name="reader")
        for _ in range(8):
            assert [found async for found in scan(database, tenant_id="t1", phase=None, limit=2)]
        listed = "select statement from pg_prepared_statements where statement like '%limit%'"
        prepared = await database.fetch(listed, plan=Planned.FRESH)
        await database.close()
        return prepared

    assert planner.ground.run(read()) == []


def test_incidents_are_counted_without_a_search(planner: Planner, generic: bool) -> None:
    operation_id = planner.ground.enqueue(f"incident-{generic}")
    incident = Incident(kind="k", boundary=Boundary.OURS, detail="d")
    parameters = planner.recorded(note(planner.recorder, [Note(operation_id=operation_id, incident=incident)]))
    assert planner.plan("store", "note_incidents", parameters, generic=generic).scanned == set()


def test_enqueue_never_walks_the_rows_of_its_tenant(ground: Ground) -> None:
    """Not even in a session that settled on its plan before PostgreSQL knew anything of the table (measured: 3 ms at 5,000)."""
    ground.sql("alter table coatcheck.operations set (autovacuum_enabled = false)")
    for number in range(60):
        ground.enqueue(f"k{number}")
    ground.sql("select pg_stat_force_next_flush()")
    rows = ground.sql(
        "select indexrelname as name, idx_scan as scans from pg_stat_user_indexes where relname = 'operations'"
    )
    scans = {row["name"]: row["scans"] for row in rows}
    assert (scans["operations_tenant_idx"], scans["operations_key"]) == (0, 120)


@pytest.mark.parametrize(
    ("name", "place", "index"),
    [
        ("list_messages", {"after_lane": -1, "action": None, "provider": None, "wait_reason": None}, "outbox_pkey"),
        ("list_parked", {"after_lane": -1, "park_reason": "lease_count"}, "outbox_parked_idx"),
        ("list_parked", {"after_lane": -1, "park_reason": None}, "outbox_parked_idx"),
        ("list_incidents", {"after_kind": "", "kind": None, "tenant_id": None, "since": None}, "incidents_pkey"),
    ],
)
def test_a_page_for_the_person_on_call_touches_few_rows_beside_its_own(
    planner: Planner, name: str, place: dict[str, Any], index: str
) -> None:
    planner.ground.sql(
        "update coatcheck.outbox set parked_at = now(), park_reason = 'lease_count' where lease_token % 5000 = 7 and parked_at is null and leased_by is null"
    )
    planner.ground.sql("analyze coatcheck.outbox")
    values = {**place, "after": UUID(int=0), "size": 100}
    plan = planner.plan("store", name, values, generic=False, run=True)
    assert index in plan.indexes
    assert plan.scanned.isdisjoint(BIG)
    assert plan.pages < 1500
