"""Retention takes what nobody needs of what is over, and nothing that money, repeatability or a person's decision rests on."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString, cast

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.identity import parse_operation_id
from coatcheck.core.machine import RULES
from coatcheck.core.operation import OperationId, RenderState, TenantId
from coatcheck.core.steps import Refused
from coatcheck.seams import NO_FAULTS
from coatcheck.store.charges import By, report_charges
from coatcheck.store.door import Status
from coatcheck.store.retention import Retired, Rule, retire
from coatcheck.store.statements import statement
from store.audited import World, audited, populate
from store.ground import Ground, look, stored

OPEN = """
    select kept.operation_id from coatcheck.operations as kept
    where kept.phase in ('prepared', 'dispatching', 'uncertain')
      or (kept.phase in ('accepted', 'submission_failed') and kept.final_at is null)
      or exists (select from coatcheck.outbox as owed where owed.operation_id = kept.operation_id)"""
WHOLE = """
    select kept.operation_id,
      (select asked.specification_text from coatcheck.specifications as asked where asked.operation_id = kept.operation_id) as asked,
      (select array_agg(entry.event order by entry.revision) from coatcheck.history as entry where entry.operation_id = kept.operation_id)
        as events,
      (select array_agg(sent.reply order by sent.number) from coatcheck.dispatches as sent where sent.operation_id = kept.operation_id)
        as replies,
      (select array_agg(made.source order by made.output_index) from coatcheck.deliveries as made
        where made.operation_id = kept.operation_id) as sources
    from coatcheck.operations as kept"""
MONEY = """
    select dispatch_id, operation_id, number, authorisation, outcome, remote_job_id, held, charged, basis, settled_at
    from coatcheck.dispatches order by dispatch_id"""
FOR_EVER = """
    select operation_id, tenant_id, operation_key, specification_hash, phase, render_state, delivery_state, remote_job_id, created_at
    from coatcheck.operations order by operation_id"""
DECIDED = (
    ev.Cancel,
    ev.Adopt,
    ev.ProveAbsent,
    ev.Redispatch,
    ev.RequestRedispatch,
    ev.WriteOff,
    ev.Reobserve,
    ev.Redeliver,
    ev.Resume,
    ev.Note,
)
PERSONS = {
    "orphan_resolved",
    *(rule.name for each in DECIDED for rule in RULES if rule.kind is each.kind and not isinstance(rule.do, Refused)),
}
"""Entries of what a person decided: with an actor and a reason."""


@pytest.fixture
def world(database: postgres.Database) -> World:
    """Everything that may happen has happened, to an operation each; made anew, as a pooler lets no database be copied."""
    return populate(database)


def rule(days: int = 0, tenant_id: str | None = None) -> Rule:
    tenant = None if tenant_id is None else TenantId(tenant_id)
    return Rule(days=days, tenant_id=tenant, actor="ada", reason="the promised ninety days")


def retired(ground: Ground, asked: Rule, *, dry_run: bool = False, page: int = 1000) -> list[Retired]:
    async def gathered() -> list[Retired]:
        return [each async for each in retire(ground.line, asked, faults=NO_FAULTS, dry_run=dry_run, page=page)]

    return ground.run(gathered())


def sums(parts: Sequence[Retired]) -> list[int]:
    names = ("read_count", "retired_count", "entry_count", "specification_bytes")
    return [sum(getattr(each, name) for each in parts) for name in names]


def whole(ground: Ground) -> dict[OperationId, dict[str, Any]]:
    return {row.pop("operation_id"): row for row in ground.sql(WHOLE)}


def delivered(ground: Ground, key: str, **fields: object) -> OperationId:
    operation_id = ground.enqueue(key, **fields)
    ground.succeed(operation_id)
    assert ground.happen(operation_id, stored()).applied
    return operation_id


def rejected(ground: Ground, key: str) -> OperationId:
    operation_id = ground.enqueue(key)
    assert ground.happen(operation_id, ev.Rejected(dispatch_id=ground.mark(operation_id), status=422)).applied
    return operation_id


def test_of_all_that_may_have_happened_only_what_is_over_goes_and_the_audit_finds_nothing_missing(world: World) -> None:
    with Ground(world.database) as ground:
        before, is_open = whole(ground), {row["operation_id"] for row in ground.sql(OPEN)}
        money, for_ever = ground.sql(MONEY), ground.sql(FOR_EVER)
        read, taken, _, _ = sums(retired(ground, rule()))
        after = whole(ground)
        assert read == len(before)
        gone = {each for each, row in after.items() if row["asked"] is None}
        assert (len(gone), bool(gone & is_open)) == (taken, False)
        assert {each: after[each] for each in before.keys() - gone} == {
            each: before[each] for each in before.keys() - gone
        }
        assert {name for name, each in world.ids.items() if each in gone} == {
            *("rejected", "cancelled", "written_off", "released", "failed", "lost", "delivered"),
        }
        assert (ground.sql(MONEY), ground.sql(FOR_EVER)) == (money, for_ever)
        for each in gone:
            assert not any(after[each]["replies"] or ())
            assert not any(after[each]["sources"] or ())
            assert after[each]["events"][-1] == "retired"
    assert audited(world.database) == []


def test_what_a_person_decided_or_what_went_wrong_keeps_its_whole_history(world: World) -> None:
    with Ground(world.database) as ground:
        before = whole(ground)
        wrong = {row["operation_id"] for row in ground.sql("select operation_id from coatcheck.incidents")}
        retired(ground, rule())
        after = whole(ground)
        gone = {each for each, row in after.items() if row["asked"] is None}
        kept = {each for each in gone if each in wrong or PERSONS & set(before[each]["events"])}
        assert kept
        assert gone - kept
        for each in kept:
            assert after[each]["events"] == [*before[each]["events"], "retired"]
        for each in gone - kept:
            assert after[each]["events"] == ["retired"]


@pytest.mark.parametrize("event", sorted(PERSONS))
def test_whatever_a_person_may_decide_is_an_entry_that_retention_knows(event: str) -> None:
    # by their names: a class with slots is made twice
    assert {each.__name__ for each in DECIDED} == {each.__name__ for each in ev.Decided.__subclasses__()}
    assert f"'{event}'" in statement("store", "retire")


def test_who_cancelled_and_who_had_it_looked_at_again_is_told_for_ever(ground: Ground) -> None:
    cancelled, looked_at = ground.enqueue("k1"), ground.enqueue("k2")
    assert ground.happen(cancelled, ev.Cancel(actor="ada", reason="the customer left")).applied
    job = ground.accept(looked_at)
    assert ground.happen(looked_at, ev.NotFound(grace_s=0)).applied
    assert ground.happen(looked_at, ev.Reobserve(actor="ada", reason="the customer left")).applied
    assert ground.happen(looked_at, look(job, RenderState.FAILED, charged=2)).applied
    assert sums(retired(ground, rule()))[:3] == [2, 2, 0]
    for operation_id, event in ((cancelled, "cancelled"), (looked_at, "reobserve_requested")):
        told = [row for row in ground.all("history", operation_id) if row["event"] == event]
        assert [(row["actor"], row["reason"]) for row in told] == [("ada", "the customer left")]


def test_a_dry_run_tells_what_a_run_then_does_whatever_the_size_of_a_page_and_a_second_run_does_nothing(
    world: World,
) -> None:
    with Ground(world.database) as ground:
        before = whole(ground)
        told = retired(ground, rule(), dry_run=True)
        assert whole(ground) == before
        done = retired(ground, rule(), page=3)
        assert len(done) > 3
        read, taken, entries, size = sums(done)
        assert [read, taken, 0, size] == sums(told)
        assert entries > taken
        after = whole(ground)
        assert sums(retired(ground, rule(), page=3)) == [read - taken, 0, 0, 0]
        assert whole(ground) == after


def test_reports_of_charges_and_the_meaning_of_keys_stay(ground: Ground) -> None:
    operation_id = delivered(ground, "k1", estimate="5")
    before = ground.run(report_charges(ground.line, by=By.TENANT))
    assert sums(retired(ground, rule()))[1] == 1
    assert ground.run(report_charges(ground.line, by=By.TENANT)) == before
    for text, result in (('{"p":1}', "existing"), ('{"p":2}', "key_reused")):
        request = {"v": 1, "tenant_id": "t1", "operation_key": "k1", "provider": "genace", "specification_text": text}
        (row,) = ground.sql("select coatcheck.enqueue_v1(%s::text::jsonb) as answer", json.dumps(request))
        assert row["answer"]["result"] == result
        assert cast("OperationId", parse_operation_id(row["answer"]["operation_id"])) == operation_id


def test_days_count_from_the_last_change_by_the_databases_clock(ground: Ground) -> None:
    operation_id = delivered(ground, "k1")
    day_s = 86_400.0
    ground.database.move_time(day_s * 1.5)
    assert sums(retired(ground, rule(2))) == [0, 0, 0, 0]
    assert ground.happen(operation_id, ev.Note(actor="ada", reason="asked about")).applied
    ground.database.move_time(day_s)
    # old by its id, and somebody was here yesterday
    assert sums(retired(ground, rule(2)))[:2] == [1, 0]
    ground.database.move_time(day_s * 1.5)
    assert sums(retired(ground, rule(2)))[:2] == [1, 1]


def test_a_period_that_reaches_behind_the_first_instant_of_an_id_finds_nothing_old_enough(ground: Ground) -> None:
    rejected(ground, "k1")
    for dry_run in (True, False):
        assert sums(retired(ground, rule(36_500), dry_run=dry_run)) == [0, 0, 0, 0]


def test_one_tenants_operations_can_be_taken_alone(ground: Ground) -> None:
    of_t1, of_t2 = delivered(ground, "k1"), delivered(ground, "k1", tenant_id="t2")
    assert sums(retired(ground, rule(tenant_id="t2")))[:2] == [1, 1]
    # a page full of others' operations is not the end
    assert sums(retired(ground, rule(tenant_id="t2"), page=1))[:2] == [0, 0]
    assert sums(retired(ground, rule(tenant_id="t3"), page=1))[:2] == [0, 0]
    after = whole(ground)
    assert (after[of_t1]["asked"], after[of_t2]["asked"]) == ('{"p":1}', None)


def test_the_entry_says_who_removed_what_and_why(ground: Ground) -> None:
    operation_id = delivered(ground, "k1")
    was = ground.operation(operation_id)
    retired(ground, rule())
    (entry,) = ground.all("history", operation_id)
    assert (entry["event"], entry["actor"], entry["reason"]) == ("retired", "ada", "the promised ninety days")
    assert entry["revision"] == was.revision + 1 == ground.operation(operation_id).revision


OPEN_ENDS: Mapping[str, LiteralString] = {
    "money is held": "update coatcheck.dispatches set settled_at = null, charged = null, basis = null where operation_id = %s",
    "a dispatch was displaced": "update coatcheck.dispatches set displaced = true where operation_id = %s",
    "a paid job is nobody's": "update coatcheck.remote_jobs set role = 'orphan' where operation_id = %s",
    "the render is not final": "update coatcheck.operations set render_state = 'rendering', final_at = null where operation_id = %s",
    "something is parked": "insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at, parked_at,"
    " park_reason) values (%s, 1, 'deliver', 'genace', 'genace', 4, now(), now(), 'failed')",
}
"""What alone keeps an operation whole that is over otherwise."""


@pytest.mark.parametrize("open_end", OPEN_ENDS)
def test_each_open_end_alone_keeps_an_operation_whole(database: postgres.Database, open_end: str) -> None:
    with Ground(database) as ground:
        open_one, other = delivered(ground, "k1", estimate="5"), delivered(ground, "k2", estimate="5")
        ground.sql(OPEN_ENDS[open_end], open_one)
        assert sums(retired(ground, rule()))[:2] == [2, 1]
        after = whole(ground)
    assert (after[open_one]["asked"], after[other]["asked"]) == ('{"p":1}', None)


def test_what_somebody_is_writing_is_left_for_the_next_run(ground: Ground) -> None:
    first, second = rejected(ground, "k1"), rejected(ground, "k2")
    with psycopg.connect(ground.database.url_beside or ground.database.url) as other:
        other.execute("select from coatcheck.operations where operation_id = %s for no key update", [first])
        assert sums(retired(ground, rule()))[:2] == [2, 1]
        other.rollback()
    assert {each for each, row in whole(ground).items() if row["asked"] is None} == {second}
    assert sums(retired(ground, rule()))[:2] == [1, 1]


def test_a_reply_that_comes_after_all_is_written_down_as_ever(ground: Ground) -> None:
    operation_id = ground.enqueue("k1")
    dispatch_id = ground.mark(operation_id)
    assert ground.happen(operation_id, ev.Rejected(dispatch_id=dispatch_id, status=422)).applied
    retired(ground, rule())
    late = ev.Doubted(dispatch_id=dispatch_id, cause="no_reply")
    assert ground.happen(operation_id, late).status is Status.EVIDENCE
    assert [row["event"] for row in ground.all("history", operation_id)] == ["retired", "late_doubted"]
    assert audited(ground.database) == []


SAID = """
    with changed as (
      update coatcheck.operations set revision = revision + 1 where operation_id = %s
      returning operation_id, revision, phase, render_state, delivery_state)
    insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state, to_render_state,
      from_delivery_state, to_delivery_state)
    select operation_id, revision, 'retired', 'eve', now(), phase, phase, render_state, render_state, delivery_state, delivery_state
    from changed"""


@pytest.mark.parametrize("name", ["prepared", "dispatching", "uncertain", "rendering"])
def test_the_entry_excuses_no_specification_that_is_missing_of_what_is_open(world: World, name: str) -> None:
    with Ground(world.database) as ground:
        ground.sql(SAID, world.ids[name])
        ground.sql("delete from coatcheck.specifications where operation_id = %s", world.ids[name])
    assert {(each.kind, each.operation_id) for each in audited(world.database)} == {
        ("specification_missing", world.ids[name])
    }


def test_the_entry_excuses_no_history_that_is_missing_after_it_or_was_left_beside_it(world: World) -> None:
    delivered_one, rejected_one = world.ids["delivered"], world.ids["rejected"]
    with Ground(world.database) as ground:
        retired(ground, rule())
        assert ground.happen(delivered_one, ev.Note(actor="ada", reason="asked about")).applied
        assert audited(world.database) == []
        ground.sql("delete from coatcheck.history where operation_id = %s and event = 'noted'", delivered_one)
        ground.sql(
            "insert into coatcheck.history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)"
            " values (%s, 0, 'generation_requested', 'eve', now(), 'prepared', 'none', 'not_started')",
            rejected_one,
        )
    found = {(each.kind, each.operation_id) for each in audited(world.database, "S7")}
    assert ("revision_missing", delivered_one) in found
    assert ("revision_missing", rejected_one) in found
