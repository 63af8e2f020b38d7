"""The audit sees each violation that somebody plants, names it under its invariant, and says nothing of a world in which all is well."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql

import postgres
from coatcheck.core import events as ev
from coatcheck.core.consequences import SWEEP
from coatcheck.core.events import EventKind
from coatcheck.core.identity import operation_text
from coatcheck.core.machine import RULES
from coatcheck.core.operation import Phase, RenderState
from coatcheck.errors import Unavailable
from coatcheck.store.audit import CHECKS
from coatcheck.store.door import Status
from coatcheck.store.remedies import REMEDIES
from store.audited import BY, LONG_AGO, World, audited, populate
from store.ground import Ground, look
from store.plants import PLANTS, Plant
from store.test_statements import ROOT

FILES = {path.stem: path.read_text() for path in (ROOT / "audit").glob("*.sql")}
WALLS = re.findall(r"\('(S\d+)', '(index|check|trigger)', '(\w+)', '(\w+)', ", FILES["walls"])


@pytest.fixture(scope="module")
def populated(template: postgres.Template) -> Iterator[World]:
    """The world, made once; nobody writes to it any more."""
    with template.copy() as database:
        yield populate(database)


@pytest.fixture
def world(populated: World) -> Iterator[World]:
    """The world, of a test's own."""
    with populated.copy() as copied:
        yield copied


def test_nothing_is_found_where_everything_that_may_happen_has_happened(world: World) -> None:
    assert audited(world.database) == []


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.kind)
def test_a_planted_violation_is_found_by_its_check_and_by_no_other(world: World, plant: Plant) -> None:
    with Ground(world.database) as ground:
        ground.sql("set session_replication_role = replica")
        where = plant.do(ground, world.ids)
        found = audited(world.database)
        ground.sql("rollback")
    assert {each.check for each in found} == {plant.check}
    assert {each.kind for each in found} == {plant.kind, *plant.also}
    assert (where, plant.tenant_id) in {
        (each.operation_id, each.tenant_id) for each in found if each.kind == plant.kind
    }
    for each in found:
        assert (each.remedy, bool(each.detail)) == (REMEDIES[each.kind], True)


def test_a_job_that_two_operations_name_is_found_until_a_person_decided_or_noted_whose_it_is(world: World) -> None:
    with Ground(world.database) as ground:
        job = ground.operation(world.ids["delivered"]).remote_job_id
        assert job is not None
        for settles in (ev.Note(**BY), ev.WriteOff(**BY), ev.ProveAbsent(**BY, quiescent_at=LONG_AGO)):
            operation_id = ground.enqueue(f"disputed {settles.kind}", estimate="5")
            reply = ev.Accepted(dispatch_id=ground.mark(operation_id), remote_job_id=job)
            assert ground.happen(operation_id, reply).status is Status.OWNED
            (found,) = audited(world.database)
            assert (found.kind, found.operation_id, found.dispatch_id) == (
                "job_disputed",
                operation_id,
                reply.dispatch_id,
            )
            assert operation_text(world.ids["delivered"]) in found.detail
            assert ground.happen(operation_id, settles).applied
            assert audited(world.database) == []
            ground.happen(operation_id, reply)
            assert [each.kind for each in audited(world.database)] == ["job_disputed"]
            assert ground.happen(operation_id, ev.Note(**BY)).applied


def test_a_displaced_dispatch_without_a_job_is_found_until_a_person_noted_what_became_of_it(world: World) -> None:
    with Ground(world.database) as ground:
        operation_id = world.ids["throttled"]
        ground.sql(
            "update coatcheck.dispatches set outcome = 'uncertain', displaced = true, charged = 5, settled_at = now()"
            " where operation_id = %s and number = 1",
            operation_id,
        )
        ground.sql("update coatcheck.allowances set charged = charged + 5")
        assert [each.kind for each in audited(world.database)] == ["displaced"]
        assert ground.happen(operation_id, ev.Note(**BY)).applied
        assert audited(world.database) == []


def test_every_kind_of_finding_has_a_remedy_and_is_planted() -> None:
    written = {
        kind
        for text in FILES.values()
        for kind in re.findall(r"(?:select|then|else) '(\w+_\w+|unauthorised|displaced)'", text)
    }
    assert written | {"wall_missing"} == set(REMEDIES)
    assert {plant.kind for plant in PLANTS} | {"wall_missing"} == set(REMEDIES)
    assert {plant.check for plant in PLANTS} == set(CHECKS)
    assert {kind: text for kind, text in REMEDIES.items() if text.endswith(".") or "\n" in text} == {}


@pytest.mark.parametrize(("check", "kind", "table", "name"), WALLS)
def test_a_wall_that_is_gone_is_found(world: World, check: str, kind: str, table: str, name: str) -> None:
    with world.database.connect() as connection:
        removals = {
            "check": "alter table coatcheck.{table} drop constraint {name}",
            "index": "alter table coatcheck.{table} drop constraint {name}",
            "trigger": "alter table coatcheck.{table} disable trigger {name}",
        }
        text = "drop index coatcheck.{name}" if name.endswith("_idx") else removals[kind]
        connection.execute(sql.SQL(text).format(table=sql.Identifier(table), name=sql.Identifier(name)))
    found = audited(world.database)
    assert [(each.check, each.kind, each.operation_id) for each in found] == [(check, "wall_missing", None)]
    assert name in found[0].detail


def test_a_wall_of_other_columns_or_one_that_was_never_validated_is_none(world: World) -> None:
    with world.database.connect() as connection:
        connection.execute("drop index coatcheck.dispatches_authorisation_idx")
        connection.execute(
            "create unique index dispatches_authorisation_idx on coatcheck.dispatches (operation_id, authorisation, number)"
        )
        connection.execute("alter table coatcheck.operations drop constraint operations_tenant")
        connection.execute(
            "alter table coatcheck.operations add constraint operations_tenant check (tenant_id <> '') not valid"
        )
    assert [each.check for each in audited(world.database)] == ["S10", "S2"]


def test_chunks_of_any_size_find_the_same_and_an_audit_goes_on_where_it_is_told(world: World) -> None:
    with Ground(world.database) as ground:
        ground.sql("delete from coatcheck.outbox")
        ground.sql("delete from coatcheck.operations where operation_id = %s", world.ids["delivered"])
    whole = audited(world.database)
    assert len(whole) > 10
    assert all(sorted(map(str, audited(world.database, chunk=size))) == sorted(map(str, whole)) for size in (1, 2, 7))
    ids = sorted(world.ids.values())
    rest = audited(world.database, after=ids[5], chunk=3)
    assert sorted(map(str, rest)) == sorted(
        str(each) for each in whole if each.operation_id is None or each.operation_id > ids[5]
    )


def test_checks_that_were_not_chosen_are_not_made(world: World) -> None:
    with world.database.connect() as connection:
        connection.execute("delete from coatcheck.outbox")
        connection.execute("drop table coatcheck.deliveries")
    assert audited(world.database, "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S11") == []


def test_whatever_would_be_written_is_refused_by_the_server(world: World) -> None:
    """Even what a check calls: here a function that a check relies on was replaced by one that writes."""
    with world.database.connect() as connection:
        connection.execute(
            "create or replace function coatcheck.outcome_rank(outcome text) returns integer language plpgsql as"
            " $$ begin delete from coatcheck.history; return 0; end $$"
        )
    with pytest.raises(Unavailable, match="ReadOnlySqlTransaction"):
        audited(world.database)


def test_nothing_is_found_while_others_are_at_work(database: postgres.Database) -> None:
    """A save is one statement, and so is a check: neither sees half of the other."""

    def work() -> None:
        with Ground(database, "worker-2") as ground:
            for number in range(40):
                operation_id = ground.enqueue(f"busy{number}", estimate="1")
                ground.happen(operation_id, look(ground.accept(operation_id), RenderState.RENDERING))
                job = ground.operation(operation_id).remote_job_id
                assert job is not None
                ground.happen(operation_id, look(job, RenderState.SUCCEEDED, outputs=2, charged=2))
                ground.happen(operation_id, ev.OutputFailed(index=1, cause="gone"))

    rounds = 0
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        while not working.done():
            assert audited(database, chunk=10) == []
            rounds += 1
        working.result()
    assert rounds > 3
    assert audited(database) == []


def test_the_events_that_the_checks_name_are_those_of_the_table() -> None:
    """The statements name rules of the machine; a rule that gets another name or a companion shows here."""
    people = {EventKind.ADOPT, EventKind.PROVE_ABSENT, EventKind.REDISPATCH, EventKind.WRITE_OFF}
    replies: set[str] = set()
    decisions: set[str] = set()
    authorising: set[str] = set()
    for rule in RULES:
        if rule.phase in (Phase.DISPATCHING, Phase.UNCERTAIN) and rule.to not in (None, rule.phase, Phase.UNCERTAIN):
            (decisions if rule.kind in people else replies).add(rule.name)
        if rule.kind in (EventKind.PROVE_ABSENT, EventKind.REDISPATCH) and rule.to is Phase.PREPARED:
            authorising.add(rule.name)
    first, second = re.findall(r"event not in \(([^)]*)\)", FILES["s3_doubts"])
    assert (set(re.findall(r"\w+", first)), set(re.findall(r"\w+", second))) == (replies, decisions)
    (given,) = re.findall(r"entry\.event in \(([^)]*)\)", FILES["s2_authorisations"])
    assert set(re.findall(r"\w+", given)) == authorising
    assert f"actor = '{SWEEP}'" in FILES["s3_doubts"]


def test_an_audit_of_a_server_that_goes_away_is_unavailable(world: World) -> None:
    with world.database.connect() as connection:
        connection.execute(
            "create or replace function coatcheck.outcome_rank(outcome text) returns integer language plpgsql as"
            " $$ begin perform pg_terminate_backend(pg_backend_pid()); return 0; end $$"
        )
    with pytest.raises(Unavailable):
        audited(world.database)


def test_an_operation_whose_row_is_gone_is_found_in_every_table(world: World) -> None:
    with psycopg.connect(world.database.url, autocommit=True) as connection:
        connection.execute("delete from coatcheck.operations where operation_id = %s", [world.ids["undelivered"]])
    kinds = {each.kind for each in audited(world.database) if each.operation_id == world.ids["undelivered"]}
    assert kinds == {
        *(
            "dispatch_without_operation",
            "owner_without_operation",
            "history_without_operation",
            "lane_without_operation",
        ),
        *("output_without_operation", "snapshot_without_operation", "specification_without_operation"),
    }
