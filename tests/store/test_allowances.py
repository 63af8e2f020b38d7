"""What a tenant may spend: never more is held than fits, what does not fit waits, and a limit counts from its commit on."""

from decimal import Decimal

import pytest
from psycopg import sql

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import OperationId, RemoteJobId, RenderState
from coatcheck.errors import Unavailable
from coatcheck.seams import NO_FAULTS
from coatcheck.store import allowances, limiting
from coatcheck.store.allowances import Allowance, list_allowances, set_allowance
from coatcheck.store.door import Status
from store.ground import Ground, look
from store.replies import replies
from store.spending import limit, marks, purse

APPLIED, WAITS = Status.APPLIED, Status.ALLOWANCE


def statuses(ground: Ground, operation_ids: list[OperationId]) -> list[Status]:
    return [saved.status for saved in marks(ground, operation_ids)]


def waiting(ground: Ground) -> list[OperationId]:
    rows = ground.sql("select operation_id from coatcheck.outbox where wait_reason = 'allowance' order by operation_id")
    return [row["operation_id"] for row in rows]


def listed(ground: Ground, **of: str) -> list[Allowance]:
    async def read() -> list[Allowance]:
        return [each async for each in list_allowances(ground.line, **of)]

    return ground.run(read())


@pytest.mark.parametrize("batch", [True, False], ids=["in one batch", "one by one"])
def test_a_limit_of_ten_lets_two_of_three_out_at_five_each(ground: Ground, batch: bool) -> None:
    limit(ground, 10)
    operation_ids = ground.enqueue_many(3, estimate="5")
    tried = (
        statuses(ground, operation_ids)
        if batch
        else [status for each in operation_ids for status in statuses(ground, [each])]
    )
    assert tried == [APPLIED, APPLIED, WAITS]
    assert purse(ground) == (10, 0)
    assert waiting(ground) == operation_ids[2:]
    assert ground.operation(operation_ids[2]).revision == 0
    assert ground.claim(Action.DISPATCH) == []


def test_a_limit_is_reached_to_the_last_digit_and_not_passed(ground: Ground) -> None:
    limit(ground, "0.3")
    assert statuses(ground, ground.enqueue_many(4, estimate="0.1")) == [APPLIED, APPLIED, APPLIED, WAITS]
    assert purse(ground) == (Decimal("0.3"), 0)


def test_what_is_charged_counts_against_the_limit_and_what_is_released_does_not(ground: Ground) -> None:
    limit(ground, 10)
    paid, refused, third = ground.enqueue_many(3, estimate="5")
    ground.happen(paid, look(ground.accept(paid), RenderState.FAILED, charged=4))
    assert purse(ground) == (0, 4)
    ground.happen(refused, replies(ground.mark(refused))["rejected"])
    assert purse(ground) == (0, 4)
    assert statuses(ground, [third]) == [APPLIED]
    assert statuses(ground, [ground.enqueue("k", estimate="2")]) == [WAITS]


def test_a_hold_is_kept_through_dispatching_and_uncertain_until_the_render_is_final(ground: Ground) -> None:
    limit(ground, 5)
    operation_id, other = ground.enqueue_many(2, estimate="5")
    dispatch_id = ground.mark(operation_id)
    for event in (ev.LeaseEnded(), replies(dispatch_id)["accepted"]):
        assert purse(ground) == (5, 0)
        assert statuses(ground, [other]) == [WAITS]
        assert ground.happen(operation_id, event).applied
    ground.happen(operation_id, look(job_of(ground, operation_id), RenderState.RENDERING, charged=1))
    assert purse(ground) == (5, 0)
    ground.happen(operation_id, look(job_of(ground, operation_id), RenderState.SUCCEEDED, outputs=1, charged=0))
    assert purse(ground) == (0, 0)
    assert statuses(ground, [other]) == [APPLIED]


def job_of(ground: Ground, operation_id: OperationId) -> RemoteJobId:
    job = ground.operation(operation_id).remote_job_id
    assert job is not None
    return job


def test_a_top_up_makes_what_waits_due_at_once_with_the_oldest_first(ground: Ground) -> None:
    limit(ground, 0)
    operation_ids = [ground.enqueue("large", estimate="8"), *ground.enqueue_many(3, estimate="2")]
    for each in reversed(operation_ids):
        assert statuses(ground, [each]) == [WAITS]
    assert limit(ground, 8).waiting == 0
    rows = ground.sql("select wait_reason, wait_since_at, wait_count, leased_by from coatcheck.outbox")
    assert {tuple(row.values()) for row in rows} == {(None, None, 0, None)}
    for expected in operation_ids:
        (message,) = ground.claim(Action.DISPATCH, 1)
        assert message.operation_id == expected
    assert statuses(ground, operation_ids) == [APPLIED, WAITS, WAITS, WAITS]


def test_in_a_batch_nothing_small_passes_what_is_large(ground: Ground) -> None:
    limit(ground, 5)
    large = ground.enqueue("large", estimate="8")
    small = ground.enqueue("small", estimate="2")
    assert statuses(ground, [large, small]) == [WAITS, WAITS]
    limit(ground, 8)
    assert statuses(ground, [large, small]) == [APPLIED, WAITS]


def test_a_top_up_wakes_only_the_tenant_and_the_unit_and_nothing_that_is_leased(ground: Ground) -> None:
    other = {"tenant_id": "t2", "estimate": "1"}
    for tenant in ("t1", "t2"):
        limit(ground, 0, tenant=tenant)
        limit(ground, 0, tenant=tenant, unit="tokens")
    mine, leased = ground.enqueue("k1", estimate="1"), ground.enqueue("k2", estimate="1")
    rest = [ground.enqueue("k3", estimate="1", unit="tokens"), ground.enqueue("k4", **other)]
    assert statuses(ground, [mine, leased, *rest]) == [WAITS] * 4
    ground.sql(
        "update coatcheck.outbox set leased_by = 'w', leased_at = now(), visible_at = now() + interval '9 s' where operation_id = %s",
        leased,
    )
    limit(ground, 5)
    assert waiting(ground) == sorted([leased, *rest])
    assert [message.operation_id for message in ground.claim(Action.DISPATCH)] == [mine]


def test_units_of_a_tenant_and_tenants_are_apart(ground: Ground) -> None:
    limit(ground, 5)
    limit(ground, 5, unit="tokens")
    limit(ground, 5, tenant="t2")
    wishes = [("t1", "credits"), ("t1", "tokens"), ("t2", "credits"), ("t3", "credits")]
    operation_ids = [
        ground.enqueue(f"{unit}{number}", estimate="5", tenant_id=tenant, unit=unit)
        for tenant, unit in wishes
        for number in range(2)
    ]
    assert statuses(ground, operation_ids) == [APPLIED, WAITS, APPLIED, WAITS, APPLIED, WAITS, APPLIED, APPLIED]
    assert purse(ground) == purse(ground, unit="tokens") == purse(ground, tenant="t2") == (5, 0)


def test_without_a_limit_it_is_counted_all_the_same(ground: Ground) -> None:
    assert limit(ground, None).left is None
    assert statuses(ground, ground.enqueue_many(3, estimate="900000")) == [APPLIED] * 3
    assert purse(ground) == (2_700_000, 0)
    lifted = limit(ground, 10)
    assert [lifted.held, lifted.left] == [2_700_000, 10 - 2_700_000]
    assert statuses(ground, [ground.enqueue("k", estimate="0")]) == [WAITS]
    assert limit(ground, None).limit is None
    assert waiting(ground) == []


def test_a_limit_below_what_is_held_lets_nothing_new_be_held_until_it_fits(ground: Ground) -> None:
    limit(ground, 10)
    first, second, third = ground.enqueue_many(3, estimate="5")
    assert statuses(ground, [first, second]) == [APPLIED, APPLIED]
    assert limit(ground, 5).left == -5
    assert statuses(ground, [third]) == [WAITS]
    for operation_id, then in ((first, WAITS), (second, APPLIED)):
        dispatch_id = ground.operation(operation_id).dispatch_id
        assert dispatch_id is not None
        ground.happen(operation_id, replies(dispatch_id)["not_sent"])
        assert statuses(ground, [third]) == [then]


def test_what_has_no_amount_waits_where_there_is_a_limit_and_takes_the_providers_estimate_later(ground: Ground) -> None:
    ground.sql("update coatcheck.providers set default_estimate = null")
    operation_id = ground.enqueue("k")
    limit(ground, 10)
    assert statuses(ground, [operation_id]) == [WAITS]
    ground.sql("update coatcheck.providers set default_estimate = 3, unit = 'tokens'")
    assert statuses(ground, [operation_id]) == [WAITS]
    ground.sql("update coatcheck.providers set unit = 'credits'")
    assert statuses(ground, [operation_id]) == [APPLIED]
    assert purse(ground) == (3, 0)


def test_an_allowance_begins_with_what_its_tenant_holds_and_paid(ground: Ground) -> None:
    ground.sql("delete from coatcheck.allowances")
    held, paid, freed, other = ground.enqueue_many(4, estimate="5")
    foreign = ground.enqueue("of t2", tenant_id="t2", estimate="5")
    assert statuses(ground, [held, foreign]) == [APPLIED, APPLIED]
    ground.happen(paid, look(ground.accept(paid), RenderState.FAILED, charged=3))
    ground.happen(freed, replies(ground.mark(freed))["throttled"])
    found = limit(ground, 10)
    assert [found.held, found.charged, found.left, found.set_by] == [5, 3, 2, "ada"]
    assert statuses(ground, [other]) == [WAITS]


def test_allowances_are_listed_by_tenant_and_unit_over_pages(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowances, "PAGE", 2)
    for number in range(3):
        limit(ground, number, tenant=f"t{number}", unit="tokens")
    limit(ground, 0)
    assert statuses(ground, [ground.enqueue("k", estimate="1")]) == [WAITS]
    names = [(each.tenant_id, each.unit) for each in listed(ground)]
    assert names == [("t0", "tokens"), ("t1", "credits"), ("t1", "tokens"), ("t2", "tokens")]
    assert [each.waiting for each in listed(ground)] == [0, 1, 0, 0]
    assert [each.unit for each in listed(ground, tenant_id="t1")] == ["credits", "tokens"]
    assert [each.tenant_id for each in listed(ground, unit="credits")] == ["t1"]
    assert listed(ground, tenant_id="t9") == []


def test_a_first_limit_gives_up_where_a_writer_does_not_end_and_changes_nothing(
    database: postgres.Database, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiting, "LOCK_WAIT_S", 0.1)
    with database.connect() as other, other.transaction():
        other.execute("lock table coatcheck.dispatches in row exclusive mode")
        with pytest.raises(Unavailable, match=r"within 0\.1 s"):
            limit(ground, 10, tenant="t2")
        assert limit(ground, 10).limit == 10
    assert [each.tenant_id for each in listed(ground)] == ["t1"]


def test_the_role_of_workers_may_set_a_first_limit(ground: Ground) -> None:
    role = f"worker_{ground.database.name}"
    ground.connection.execute(sql.SQL("create role {} login in role coatcheck_worker").format(sql.Identifier(role)))
    url = ground.database.url.replace("//postgres@", f"//{role}@")
    found = ground.run(
        set_allowance(url, tenant_id="t2", unit="credits", limit=Decimal(1), actor="ada", faults=NO_FAULTS)
    )
    assert found.limit == 1
