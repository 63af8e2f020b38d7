"""Violations as somebody who writes past the statements would leave them, one of each kind, and as little else as can be."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from coatcheck.core.operation import OperationId
from store.audited import TENANT
from store.ground import Ground

Ids = Mapping[str, OperationId]
NOBODY = OperationId(UUID(int=7))
"""The id of no operation."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A violation: what is written, and what must be found. `also` is what cannot be told apart from it."""

    check: str
    kind: str
    do: Callable[[Ground, Ids], OperationId | None]
    also: frozenset[str] = frozenset()
    tenant_id: str | None = TENANT


def written(
    check: str, kind: str, of: str, *texts: LiteralString, also: Sequence[str] = (), tenant_id: str | None = TENANT
) -> Plant:
    """Statements about one operation of the world, or about nobody's; `%(id)s` is its id."""

    def do(ground: Ground, ids: Ids) -> OperationId:
        operation_id = ids.get(of, NOBODY)
        for text in texts:
            ground.connection.execute(text, {"id": operation_id, **ids})
        return operation_id

    tenant_id = None if of == "nobody" else tenant_id
    return Plant(check=check, kind=kind, do=do, also=frozenset(also), tenant_id=tenant_id)


def _differ(ground: Ground, _ids: Ids) -> None:
    ground.sql("update coatcheck.allowances set held = held + 1")


def _miscount(ground: Ground, _ids: Ids) -> None:
    ground.sql("update coatcheck.accounts set in_flight_count = in_flight_count + 1")


def _stay_open(ground: Ground, _ids: Ids) -> None:
    ground.sql("set application_name = 'coatcheck stray'")
    ground.sql("begin")
    ground.sql("select from coatcheck.operations")
    ground.database.move_time(60)


_HISTORY = "update coatcheck.history set "
_OF_ID = " where operation_id = %(id)s"
_APPENDED = """
    insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state, to_render_state,
      from_delivery_state, to_delivery_state, dispatch_id)
    select operation_id, revision + 1, 'written', 'x', now(), phase, phase, """

PLANTS = (
    written("S1", "mark_missing", "delivered", _HISTORY + "dispatch_id = null" + _OF_ID + " and revision = 1"),
    written("S1", "marked_twice", "rendering", _HISTORY + "event = 'dispatch_marked'" + _OF_ID + " and revision = 3"),
    written(
        "S1",
        "instants_disordered",
        "failed",
        "update coatcheck.dispatches set ended_at = begun_at - interval '1 s'" + _OF_ID,
    ),
    written("S1", "dispatch_missing", "rejected", "delete from coatcheck.dispatches" + _OF_ID),
    written(
        "S1",
        "dispatch_without_operation",
        "nobody",
        """insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at,
             send_by_at, quiescent_at)
           values (gen_random_uuid(), %(id)s, 1, 1, 'x', 'genace', 'x', now(), now(), now())""",
        also=["mark_missing"],
    ),
    written(
        "S2",
        "spent_twice",
        "throttled",
        "drop index coatcheck.dispatches_authorisation_idx",
        "update coatcheck.dispatches set outcome = 'rejected'" + _OF_ID + " and number = 1",
        also=["wall_missing"],
    ),
    written(
        "S2",
        "displaced",
        "throttled",
        "update coatcheck.dispatches set outcome = 'rejected', displaced = true" + _OF_ID + " and number = 1",
    ),
    written("S2", "unauthorised", "delivered", "update coatcheck.dispatches set authorisation = 2" + _OF_ID),
    written(
        "S2", "authorisation_unexplained", "prepared", "update coatcheck.operations set authorisation = 2" + _OF_ID
    ),
    written("S3", "left_dispatching", "rejected", _HISTORY + "actor = 'sweep'" + _OF_ID + " and revision = 2"),
    written("S3", "left_uncertain", "adopted", _HISTORY + "event = 'time_passed'" + _OF_ID + " and event = 'adopted'"),
    written(
        "S3",
        "lease_end_unseen",
        "dispatching",
        "update coatcheck.outbox set parked_at = now(), park_reason = 'missing', leased_by = null, leased_at = null"
        + _OF_ID,
    ),
    written("S3", "open_left_behind", "rejected", "update coatcheck.dispatches set outcome = 'open'" + _OF_ID),
    written(
        "S4",
        "accepted_twice",
        "delivered",
        _HISTORY + "to_phase = 'uncertain'" + _OF_ID + " and revision = 3",
        _HISTORY + "from_phase = 'uncertain', event = 'generation_accepted'" + _OF_ID + " and revision = 4",
    ),
    written(
        "S4",
        "remote_id_lost",
        "lost",
        "update coatcheck.operations set remote_job_id = null" + _OF_ID,
        "delete from coatcheck.remote_jobs" + _OF_ID,
    ),
    written(
        "S4",
        "remote_id_unexplained",
        "written_off",
        "update coatcheck.operations set remote_job_id = 'stray'" + _OF_ID,
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) values ('genace', 'stray', %(id)s, 'owner', now())",
    ),
    written(
        "S4",
        "lane_of_another_job",
        "rendering",
        "update coatcheck.outbox set expected_remote_job_id = 'stray'" + _OF_ID,
    ),
    written(
        "S4", "snapshot_of_another_job", "delivered", "update coatcheck.snapshots set remote_job_id = 'stray'" + _OF_ID
    ),
    written("S5", "owner_missing", "delivered", "delete from coatcheck.remote_jobs" + _OF_ID),
    written(
        "S5",
        "owned_by_another",
        "delivered",
        "update coatcheck.remote_jobs set operation_id = %(prepared)s" + _OF_ID,
        also=["owner_differs"],
    ),
    written(
        "S5",
        "job_disputed",
        "rejected",
        "update coatcheck.dispatches set remote_job_id = (select o.remote_job_id from coatcheck.operations as o where o.operation_id = %(delivered)s)"
        + _OF_ID,
    ),
    written(
        "S5",
        "owner_differs",
        "prepared",
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) values ('genace', 'stray', %(id)s, 'owner', now())",
    ),
    written(
        "S5",
        "owner_without_operation",
        "nobody",
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) values ('genace', 'stray', %(id)s, 'owner', now())",
    ),
    written(
        "S6",
        "final_replaced",
        "failed",
        _APPENDED
        + "render_state, 'moderated', delivery_state, delivery_state, dispatch_id from coatcheck.operations"
        + _OF_ID,
        "update coatcheck.operations set revision = revision + 1, render_state = 'moderated'" + _OF_ID,
    ),
    written(
        "S6",
        "delivery_undone",
        "delivered",
        _APPENDED
        + "render_state, render_state, 'delivered', 'pending', dispatch_id from coatcheck.operations"
        + _OF_ID,
        "update coatcheck.operations set revision = revision + 1" + _OF_ID,
        _APPENDED
        + "render_state, render_state, 'pending', 'delivered', dispatch_id from coatcheck.operations"
        + _OF_ID,
        "update coatcheck.operations set revision = revision + 1" + _OF_ID,
    ),
    written("S7", "revision_missing", "rendering", "update coatcheck.operations set revision = revision + 1" + _OF_ID),
    written(
        "S7", "history_broken", "rendering", _HISTORY + "from_render_state = 'queued'" + _OF_ID + " and revision = 2"
    ),
    written("S7", "record_differs", "rendering", "update coatcheck.operations set render_state = 'queued'" + _OF_ID),
    written(
        "S7",
        "history_without_operation",
        "nobody",
        """insert into coatcheck.history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
           values (%(id)s, 0, 'generation_requested', 'x', now(), 'prepared', 'none', 'not_started')""",
    ),
    Plant(check="S8", kind="transaction_open", do=_stay_open, tenant_id=None),
    written(
        "S9",
        "dispatching_without_mark",
        "delivered",
        _HISTORY + "to_phase = 'cancelled'" + _OF_ID + " and revision = 0",
        _HISTORY + "from_phase = 'cancelled'" + _OF_ID + " and revision = 1",
    ),
    written(
        "S9", "marked_by_another_action", "delivered", _HISTORY + "action = 'observe'" + _OF_ID + " and revision = 1"
    ),
    written(
        "S9",
        "marked_by_another_role",
        "delivered",
        "insert into coatcheck.workers (incarnation, version, roles, started_at, seen_at) values ('looker', '1', '{observe}', now(), now())",
        _HISTORY + "actor = 'looker'" + _OF_ID + " and revision = 1",
    ),
    written(
        "S10",
        "tenant_unnamed",
        "prepared",
        "alter table coatcheck.operations drop constraint operations_tenant",
        "update coatcheck.operations set tenant_id = ''" + _OF_ID,
        also=["wall_missing"],
        tenant_id="",
    ),
    written(
        "S10",
        "key_twice",
        "prepared",
        "alter table coatcheck.operations drop constraint operations_key",
        "update coatcheck.operations set operation_key = 'delivered'" + _OF_ID,
        also=["wall_missing"],
    ),
    written(
        "S10",
        "output_elsewhere",
        "delivered",
        "update coatcheck.deliveries set uri = replace(uri, '/sink/', '/sink/0')" + _OF_ID + " and output_index = 1",
    ),
    written("S11", "amount_negative", "failed", "update coatcheck.dispatches set orphaned = charged + 1" + _OF_ID),
    written(
        "S11",
        "charge_for_nothing",
        "rejected",
        "update coatcheck.dispatches set charged = 3" + _OF_ID,
        "update coatcheck.allowances set charged = charged + 3",
    ),
    written(
        "S11",
        "hold_forgotten",
        "failed",
        "update coatcheck.dispatches set charged = null, basis = null, settled_at = null" + _OF_ID,
        "update coatcheck.allowances set charged = charged - 2, held = held + 5",
    ),
    Plant(check="S11", kind="allowance_differs", do=_differ),
    Plant(check="S11", kind="flights_differ", do=_miscount, tenant_id=None),
    written("S12", "course_missing", "rendering", "delete from coatcheck.outbox" + _OF_ID),
    written("S12", "course_misaimed", "uncertain", "update coatcheck.outbox set action = 'dispatch'" + _OF_ID),
    written(
        "S12",
        "lane_of_closed",
        "rejected",
        """insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at)
           values (%(id)s, 0, 'dispatch', 'genace', 'genace', 0, now())""",
    ),
    written("S12", "lane_elsewhere", "rendering", "update coatcheck.outbox set account = 'other'" + _OF_ID),
    written(
        "S12",
        "lane_without_operation",
        "nobody",
        """insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at)
           values (%(id)s, 0, 'dispatch', 'genace', 'genace', 0, now())""",
    ),
    written("S12", "output_lane_missing", "undelivered", "delete from coatcheck.outbox" + _OF_ID),
    written(
        "S12",
        "lane_without_output",
        "delivered",
        """insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at)
           values (%(id)s, 1, 'deliver', 'genace', 'genace', 0, now())""",
    ),
    written(
        "S12",
        "outputs_miscounted",
        "delivered",
        "update coatcheck.operations set output_count = 3, delivered_count = 3" + _OF_ID,
    ),
    written(
        "S12",
        "output_without_operation",
        "nobody",
        "insert into coatcheck.deliveries (operation_id, output_index, source, updated_at) values (%(id)s, 0, 'http://a', now())",
    ),
    written(
        "S12",
        "snapshot_without_operation",
        "nobody",
        "insert into coatcheck.snapshots (operation_id, remote_job_id, remote_status, seen_at) values (%(id)s, 'stray', 'x', now())",
    ),
    written("S12", "specification_missing", "prepared", "delete from coatcheck.specifications" + _OF_ID),
    written(
        "S12",
        "specification_differs",
        "prepared",
        "update coatcheck.specifications set specification_text = '{}'" + _OF_ID,
    ),
    written(
        "S12",
        "specification_without_operation",
        "nobody",
        "insert into coatcheck.specifications (operation_id, specification_text) values (%(id)s, '{}')",
    ),
)
