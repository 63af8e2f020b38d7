"""A report of charges: its rows are exactly the dispatches that it is about, whatever became of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId, RenderState
from coatcheck.store.charges import By, Charges, report_charges
from store.ground import Ground, look
from store.replies import accepted, replies
from store.spending import BY, LONG_AGO, Spender

FIGURES = [each.name for each in fields(Charges) if each.name not in ("name", "unit")]
TOTALS = """
    select count(*) as dispatch_count, coalesce(sum(charged), 0) as charged,
      coalesce(sum(charged) filter (where basis = 'service'), 0) as charged_by_service,
      coalesce(sum(charged) filter (where basis = 'assumed'), 0) as charged_as_assumed,
      coalesce(sum(held) filter (where settled_at is null), 0) as held
    from coatcheck.dispatches"""


def report(ground: Ground, by: By = By.TENANT, **period: datetime) -> Sequence[Charges]:
    return ground.run(report_charges(ground.line, by=by, **period))


def told(row: Charges, *names: str) -> list[object]:
    return [getattr(row, name) for name in names]


def settled(
    ground: Ground, key: str, *, tenant: str = "t1", charged: int | None = None, refunded: int = 0
) -> OperationId:
    """An operation that held 5 and is final."""
    operation_id = ground.enqueue(key, tenant_id=tenant, estimate="5")
    snapshot = look(ground.accept(operation_id), RenderState.FAILED)
    figure = None if charged is None else ev.Credits(charged=Decimal(charged), refunded=Decimal(refunded))
    assert ground.happen(operation_id, replace(snapshot, credits=figure)).applied
    return operation_id


def test_a_row_tells_what_the_service_charged_what_is_assumed_and_what_came_back(ground: Ground) -> None:
    settled(ground, "k1", charged=7)
    settled(ground, "k2", charged=7, refunded=3)
    settled(ground, "k3", charged=2, refunded=9)
    settled(ground, "k4")
    (row,) = report(ground)
    assert told(row, "name", "unit", "dispatch_count") == ["t1", "credits", 4]
    assert told(row, "charged", "charged_by_service", "charged_as_assumed", "refunded") == [16, 11, 5, 5]
    assert told(row, "held", "uncertain_count", "orphan_count") == [0, 0, 0]


def test_what_is_in_doubt_is_the_part_of_the_held_that_a_person_decides(ground: Ground) -> None:
    sending, doubtful, accepted_one = (ground.enqueue(f"k{number}", estimate="5") for number in range(3))
    ground.mark(sending)
    ground.mark(doubtful)
    ground.happen(doubtful, ev.LeaseEnded())
    ground.accept(accepted_one)
    (row,) = report(ground)
    assert told(row, "held", "uncertain_count", "uncertain_held", "charged") == [15, 1, 5, 0]


def test_an_orphan_counts_with_its_cost_and_a_second_job_of_an_owner_without(ground: Ground) -> None:
    operation_id = ground.enqueue("k1", estimate="5")
    former = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.ProveAbsent(**BY, quiescent_at=LONG_AGO))
    ground.accept(operation_id)
    ground.happen(operation_id, accepted(former, RemoteJobId("late")))
    (row,) = report(ground)
    assert told(row, "dispatch_count", "orphan_count", "orphan_charged", "charged", "held") == [2, 1, 5, 5, 5]
    owner = settled(ground, "k2", charged=7)
    dispatch_id = ground.operation(owner).dispatch_id
    assert dispatch_id is not None
    ground.happen(owner, accepted(dispatch_id, RemoteJobId("second")))
    (row,) = report(ground)
    assert told(row, "orphan_count", "orphan_charged", "charged", "held") == [2, 5, 12, 5]


def test_rows_are_apart_by_tenant_or_provider_and_by_unit(ground: Ground) -> None:
    for number, (tenant, provider, unit) in enumerate(
        [("t1", "genace", "credits"), ("t1", "other", "tokens"), ("t2", "genace", "credits")]
    ):
        ground.mark(ground.enqueue(f"k{number}", tenant_id=tenant, provider=provider, unit=unit, estimate="1"))
    names = [(row.name, row.unit, int(row.held)) for row in report(ground)]
    assert names == [("t1", "credits", 1), ("t1", "tokens", 1), ("t2", "credits", 1)]
    providers = [(row.name, row.unit, int(row.held)) for row in report(ground, By.PROVIDER)]
    assert providers == [("genace", "credits", 2), ("other", "tokens", 1)]


def test_a_dispatch_belongs_to_the_period_of_its_mark_for_good(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate="5")
    job = ground.accept(operation_id)
    begun_at = datetime(2026, 3, 1, tzinfo=UTC)
    ground.sql("update coatcheck.dispatches set begun_at = %s", begun_at)
    ground.happen(operation_id, look(job, RenderState.FAILED, charged=3))
    day = timedelta(days=1)
    assert report(ground, begins_at=begun_at - day, ends_at=begun_at) == []
    (row,) = report(ground, begins_at=begun_at, ends_at=begun_at + day)
    assert row.charged == 3
    assert report(ground, begins_at=begun_at + day) == []


def test_a_report_of_nothing_has_no_rows(ground: Ground) -> None:
    ground.enqueue("k")
    assert report(ground) == []


@pytest.mark.breaks("nothing exists", "S4, S5", "S11", "a snapshot tells")
def test_a_dispatch_whose_operation_is_gone_is_counted_under_no_name(ground: Ground) -> None:
    operation_id = settled(ground, "k", charged=7)
    ground.sql("delete from coatcheck.operations where operation_id = %s", operation_id)
    (row,) = report(ground)
    assert told(row, "name", "charged") == [None, 7]


@pytest.mark.breaks("S2: one")
@pytest.mark.parametrize("by", By)
def test_the_rows_add_up_to_all_dispatches_after_random_lives(ground: Ground, by: By) -> None:
    operation_ids = [
        ground.enqueue(f"{tenant}{number}", tenant_id=tenant, unit=unit, estimate=f"{number}.{number}")
        for number in range(20)
        for tenant, unit in (("t1", "credits"), ("t2", "credits"), ("t3", "tokens"))
    ]
    spender = Spender(ground, 11, operation_ids)
    for _ in range(15):
        spender.round(20)
    rows = report(ground, by)
    totals = Counter[str]()
    for row in rows:
        assert row.charged == row.charged_by_service + row.charged_as_assumed
        assert row.uncertain_held <= row.held
        assert row.orphan_charged <= row.charged
        totals.update({name: getattr(row, name) for name in FIGURES})
    (expected,) = ground.sql(TOTALS)
    assert {name: totals[name] for name in expected} == expected
    assert min(totals.values()) > 0, totals
    orphans = ground.sql("select count(*) from coatcheck.remote_jobs where role = 'orphan'")
    assert totals["orphan_count"] == orphans[0]["count"]


def test_replies_that_created_nothing_count_and_cost_nothing(ground: Ground) -> None:
    for name in ("rejected", "throttled", "not_sent"):
        operation_id = ground.enqueue(name, estimate="5")
        ground.happen(operation_id, replies(ground.mark(operation_id))[name])
    (row,) = report(ground)
    assert told(row, "dispatch_count", "charged", "held") == [3, 0, 0]
