"""A claim says what it leased is about, unless that is gone or older than the message: then it is read once more."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import OperationId
from coatcheck.queue.leases import (
    ANSWER_LIMIT_BYTES,
    ROW_BYTES,
    TEXT_LIMIT_BYTES,
    TOLD_LIMIT,
    Leases,
    Message,
    Release,
    Wanted,
)
from coatcheck.seams import Seams
from coatcheck.store.budgets import Budget
from coatcheck.store.db import Database
from coatcheck.store.statements import statement
from coatcheck.store.subjects import Subject, load_subjects
from coatcheck.workers.lessor import Capacity, Lessor
from store.budgeting import budget
from store.ground import ACCOUNT, Ground
from waiting import until

NOTHING = Exchange(stage=Stage.BODY_SENT, bytes_sent=100, failure="closed")


def prepared(ground: Ground) -> OperationId:
    return ground.enqueue("k", specification_text='{"a":1}')


def accepted(ground: Ground) -> OperationId:
    operation_id = prepared(ground)
    ground.accept(operation_id)
    return operation_id


def succeeded(ground: Ground) -> OperationId:
    operation_id = prepared(ground)
    ground.succeed(operation_id)
    return operation_id


def in_doubt(ground: Ground) -> OperationId:
    """Sent, and never heard of."""
    operation_id = prepared(ground)
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.Doubted(dispatch_id=dispatch_id, cause="closed", looked_up=True), NOTHING)
    return operation_id


SCENES = {
    Action.DISPATCH: prepared,
    Action.OBSERVE: accepted,
    Action.DELIVER: succeeded,
    Action.RECONCILE: in_doubt,
}


def claimed(database: postgres.Database, ground: Ground, action: Action) -> Message:
    database.move_time(600)
    lookups = {"genace": ACCOUNT} if action is Action.RECONCILE else {}
    (message,) = (
        ground.run(ground.leases.claim([], doubts=10, doubt_lease_s=30, lookups=lookups))
        if lookups
        else ground.claim(action)
    )
    assert message.action is action
    return message


def loaded(ground: Ground, message: Message) -> Subject:
    return ground.run(load_subjects(ground.line, [(message.slot, message.action)]))[message.slot]


def at_the_same_time(subject: Subject | None, as_of: Subject) -> Subject | None:
    return subject and replace(subject, operation=replace(subject.operation, read_at=as_of.operation.read_at))


@pytest.mark.parametrize("action", SCENES)
def test_a_claim_tells_what_it_would_be_asked_next(database: postgres.Database, ground: Ground, action: Action) -> None:
    operation_id = SCENES[action](ground)
    message = claimed(database, ground, action)
    read = loaded(ground, message)
    assert message.operation_id == operation_id
    assert at_the_same_time(message.subject, read) == read
    assert (read.specification_text, read.output is not None, read.quiescent_at is not None) == (
        '{"a":1}' if action is Action.DISPATCH else None,
        action is Action.DELIVER,
        action is Action.RECONCILE,
    )


@pytest.mark.parametrize("action", [Action.DISPATCH, Action.OBSERVE, Action.DELIVER])
def test_an_operation_older_than_its_message_is_read_once_more(
    database: postgres.Database, ground: Ground, action: Action
) -> None:
    """A row that was changed between a claim's snapshot and its lock is leased as it is now; everything else is as it was."""
    SCENES[action](ground)
    ground.sql("update coatcheck.outbox set expected_revision = expected_revision + 1")
    database.move_time(600)
    lessor = lessor_of(ground, action)
    (work,) = ground.run(lessor.claim())
    assert work.message.subject is None
    assert work.operation.revision == work.message.expected_revision - 1
    assert (work.specification_text is not None, work.output is not None) == (
        action is Action.DISPATCH,
        action is Action.DELIVER,
    )


def test_a_message_whose_operation_moved_on_has_it_as_it_is(database: postgres.Database, ground: Ground) -> None:
    """The handler sees that the message is older, and decides from the operation."""
    accepted(ground)
    ground.sql("update coatcheck.outbox set expected_revision = expected_revision - 1")
    message = claimed(database, ground, Action.OBSERVE)
    assert message.subject is not None
    assert message.subject.operation.revision == message.expected_revision + 1


def test_a_message_whose_operation_is_gone_is_nobodys_work(database: postgres.Database, ground: Ground) -> None:
    prepared(ground)
    ground.sql("truncate coatcheck.operations, coatcheck.specifications, coatcheck.history")
    assert ground.run(lessor_of(ground, Action.DISPATCH).claim()) == []
    database.move_time(600)
    (message,) = ground.claim(Action.DISPATCH)
    assert message.subject is None
    ground.sql("truncate coatcheck.outbox")


def test_who_waits_in_its_claim_while_the_row_changes_is_not_told_what_was_before(
    database: postgres.Database, ground: Ground
) -> None:
    """The row is leased as it is, with the new revision; the operation was read when the claim began."""
    budget(ground, Budget(looks_per_s=1000))
    accepted(ground)
    database.move_time(600)
    with Ground(database, worker="other") as other, ThreadPoolExecutor(1) as thread:
        with database.connect() as holder, holder.transaction():
            holder.execute("select from coatcheck.accounts for update")
            claiming = thread.submit(other.claim, Action.OBSERVE)
            until(lambda: ground.lock_waiters() > 0)
            holder.execute("update coatcheck.operations set revision = revision + 1")
            holder.execute("update coatcheck.outbox set expected_revision = expected_revision + 1")
        (message,) = claiming.result(10)
    assert (message.expected_revision, message.subject) == (3, None)
    ground.sql("update coatcheck.operations set revision = revision - 1")
    ground.sql("update coatcheck.outbox set expected_revision = expected_revision - 1")


@pytest.mark.parametrize("length", [TEXT_LIMIT_BYTES, TEXT_LIMIT_BYTES + 1])
def test_a_long_text_does_not_come_with_the_claim(ground: Ground, length: int) -> None:
    """A claim holds its locks until its answer is on its way, and a text may be a megabyte. Bytes count, not characters."""
    text = '{"a":"' + "é" * ((length - 8) // 2) + "e" * (length % 2) + '"}'
    assert len(text.encode()) == length
    ground.enqueue("k", specification_text=text)
    (work,) = ground.run(lessor_of(ground, Action.DISPATCH).claim())
    assert (work.message.subject is None) == (length > TEXT_LIMIT_BYTES)
    assert work.specification_text == text


@pytest.mark.parametrize("length", [TEXT_LIMIT_BYTES, TEXT_LIMIT_BYTES + 1])
def test_nor_does_an_output_with_a_long_source(database: postgres.Database, ground: Ground, length: int) -> None:
    """A signed URL may have four thousand characters."""
    succeeded(ground)
    ground.sql("update coatcheck.deliveries set source = rpad('http://a/', %s, 'x')", length)
    database.move_time(600)
    (work,) = ground.run(lessor_of(ground, Action.DELIVER).claim())
    assert (work.message.subject is None) == (length > TEXT_LIMIT_BYTES)
    assert work.output is not None
    assert len(work.output.source) == length


def test_a_large_claim_tells_of_its_first_messages_and_the_worker_asks_for_the_rest(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coatcheck.workers.lessor.AT_ONCE", 2 * TOLD_LIMIT)
    ground.enqueue_many(TOLD_LIMIT + 7)
    wanted = Capacity(places=2 * TOLD_LIMIT, lease_s=45, accounts={ACCOUNT: ACCOUNT})
    messages = ground.claim(Action.DISPATCH, wanted.places)
    assert sum(message.subject is None for message in messages) == 7
    ground.run(ground.leases.release([Release(message=message, delay_s=0) for message in messages]))
    lessor = Lessor(Leases(ground.line, "w"), ground.line, {Action.DISPATCH: wanted}, Seams.real())
    works = ground.run(lessor.claim())
    assert {work.message.slot for work in works} == {message.slot for message in messages}
    assert all(work.specification_text is not None for work in works)


@pytest.mark.parametrize("beyond", [0, 1])
def test_many_texts_share_the_answer(ground: Ground, beyond: int) -> None:
    """It has to fit into what a local socket takes without a reader."""
    share = ANSWER_LIMIT_BYTES // TOLD_LIMIT - ROW_BYTES - 2 * len("t1genace") - len("k100")
    text = '{"a":"' + "e" * (share + beyond - 8) + '"}'
    assert len(text) == share + beyond
    for number in range(TOLD_LIMIT):
        ground.enqueue(f"k{100 + number}", specification_text=text)
    untold = [message for message in ground.claim(Action.DISPATCH, TOLD_LIMIT) if message.subject is None]
    assert len(untold) == TOLD_LIMIT * beyond


@pytest.mark.parametrize("job_bytes", [2, 40, 60, 500, 1024])
def test_names_take_their_part_of_the_answer(ground: Ground, job_bytes: int) -> None:
    """The operation says its tenant and its remote job id once more: where those are long, fewer are told. Bytes count, not characters."""
    rows, answer_bytes = looked_at(ground, tenant_id="t" * 75, remote_job_id="é" * (job_bytes // 2))
    told = sum(row["operation_id"] is not None for row in rows)
    names_bytes = 2 * (75 + len("genace") + len(ACCOUNT) + job_bytes)
    # of the ids k0 to k199 a few are shorter
    assert told == pytest.approx(
        min(TOLD_LIMIT, ANSWER_LIMIT_BYTES // (ROW_BYTES + names_bytes + len("k100processing") + 5 * 29)), abs=1
    )
    # a message itself is said in any case
    assert answer_bytes <= ANSWER_LIMIT_BYTES + (TOLD_LIMIT - told) * (ROW_BYTES + names_bytes // 2)
    if told < TOLD_LIMIT:
        assert answer_bytes > 0.8 * ANSWER_LIMIT_BYTES


def looked_at(ground: Ground, *, tenant_id: str, remote_job_id: str) -> tuple[list[dict[str, Any]], int]:
    """What a claim says of as many looks as it tells of, with all that an operation may have; and how many bytes that is."""
    ground.enqueue_many(TOLD_LIMIT, tenant_id=tenant_id)
    asked = Asked()
    wanted = Wanted(action=Action.OBSERVE, provider="genace", account=ACCOUNT, room=TOLD_LIMIT, lease_s=45)
    ground.run(Leases(cast("Database", asked), "w").claim([wanted], doubts=0, doubt_lease_s=30))
    # undone at the end: nobody ever marked these
    with ground.connection.transaction(force_rollback=True):
        ground.sql(
            """update coatcheck.operations set phase = 'accepted', account = %s, dispatch_id = coatcheck.new_id(), remote_job_id = %s,
              render_state = 'rendering', remote_status = 'processing', accepted_at = created_at, not_before_at = created_at,
              dispatch_by_at = created_at, observe_by_at = created_at, cancel_requested_at = created_at""",
            *(ACCOUNT, remote_job_id),
        )
        ground.sql(
            "update coatcheck.outbox set action = 'observe', account = %s, expected_remote_job_id = %s",
            *(ACCOUNT, remote_job_id),
        )
        cursor = ground.connection.execute(statement("queue", "claim").encode(), asked.parameters)
        rows = [row for row in cursor.fetchall() if row["message_operation_id"] is not None]
    assert len(rows) == TOLD_LIMIT
    result = cursor.pgresult
    assert result is not None
    places = [(row, column) for row in range(result.ntuples) for column in range(result.nfields)]
    # as the protocol frames them: seven bytes before each row, four before each value
    return rows, 7 * result.ntuples + sum(4 + len(result.get_value(*place) or b"") for place in places)


class Asked:
    """Stands where a database is asked, and keeps the parameters."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    async def fetch(self, _: str, parameters: dict[str, Any], **__: object) -> list[object]:
        self.parameters = parameters
        return []


def test_a_claim_alone_is_all_that_a_worker_asks(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.enqueue_many(3)

    async def load(*_: object) -> dict[object, object]:
        raise AssertionError("asked for what the claim had told")

    monkeypatch.setattr("coatcheck.workers.lessor.load_subjects", load)
    assert len(ground.run(lessor_of(ground, Action.DISPATCH).claim())) == 3


def test_what_a_message_is_about_is_not_shown_with_it(ground: Ground) -> None:
    """A specification never reaches a log, and a lease is compared by what makes it one."""
    ground.enqueue("k", specification_text='{"prompt":"secret"}')
    (message,) = ground.claim(Action.DISPATCH)
    assert message.subject is not None
    assert message.subject.specification_text == '{"prompt":"secret"}'
    assert "secret" not in repr(message)
    assert "subject" not in repr(message)
    assert replace(message, subject=None) == message


def lessor_of(ground: Ground, action: Action) -> Lessor:
    capacities = {action: Capacity(places=50, lease_s=45, accounts={ACCOUNT: ACCOUNT})}
    return Lessor(Leases(ground.line, "w"), ground.line, capacities, Seams.real())
