"""What replies say of an account: a refused credential pauses it, and 403s count in a row."""

import pytest

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import OperationId, RemoteJobId
from coatcheck.seams import NO_FAULTS
from coatcheck.store import pauses
from coatcheck.store.door import Save
from store.ground import Ground
from store.replies import accepted


def status(number: int) -> Exchange:
    return Exchange(stage=Stage.BODY_RECEIVED, status=number, bytes_sent=1)


def pause(ground: Ground) -> str | None:
    (row,) = ground.sql("select dispatch_pause_reason from coatcheck.providers where name = 'genace'")
    reason: str | None = row["dispatch_pause_reason"]
    return reason


def answered(ground: Ground, operation_id: OperationId, number: int) -> None:
    dispatch_id = ground.mark(operation_id)
    reply = (
        accepted(dispatch_id, RemoteJobId(f"j-{operation_id}"))
        if number == 201
        else ev.Rejected(dispatch_id=dispatch_id, status=number)
    )
    ground.happen(operation_id, reply, exchange=status(number))


@pytest.mark.parametrize(
    ("numbers", "paused"),
    [
        ([401], True),
        ([402], True),
        ([422, 400], False),
        ([403] * 4, False),
        ([403] * 5, True),
        ([403, 403, 403, 201, 403, 403], False),
        ([403, 403, 422, 403, 403, 403, 403, 403], True),
    ],
)
def test_a_refused_credential_pauses_the_account(ground: Ground, numbers: list[int], paused: bool) -> None:
    for operation_id, number in zip(ground.enqueue_many(len(numbers)), numbers, strict=True):
        answered(ground, operation_id, number)
    assert (pause(ground) is not None) == paused


@pytest.mark.parametrize(
    ("numbers", "paused"),
    [([403] * 5, True), ([403, 403, 201, 403, 403, 403], False), ([201, *[403] * 5], True), ([201, 401], True)],
)
def test_403s_in_a_row_are_counted_within_a_batch_in_its_order(
    ground: Ground, numbers: list[int], paused: bool
) -> None:
    saves = []
    for operation_id, number in zip(ground.enqueue_many(len(numbers)), numbers, strict=True):
        dispatch_id = ground.mark(operation_id)
        reply = (
            accepted(dispatch_id, RemoteJobId(f"j-{operation_id}"))
            if number == 201
            else ev.Rejected(dispatch_id=dispatch_id, status=number)
        )
        saves.append(ground.as_save(ground.step(operation_id, reply), status(number)))
    ground.write(saves)
    assert (pause(ground) is not None) == paused


def test_a_403_that_is_written_twice_counts_once(ground: Ground) -> None:
    """A save whose commit was not seen is written again."""
    for operation_id in ground.enqueue_many(3):
        step = ground.step(operation_id, ev.Rejected(dispatch_id=ground.mark(operation_id), status=403))
        for _ in range(2):
            ground.save(step, exchange=status(403))
    assert pause(ground) is None
    assert ground.sql("select forbidden_count from coatcheck.providers") == [{"forbidden_count": 3}]


DOUBT, UNSENT, THROTTLED, ACCEPTED = "doubt", "unsent", "throttled", "accepted"
SILENT = Exchange(stage=Stage.BODY_SENT, bytes_sent=1)
NOTHING = Exchange(stage=Stage.CONNECTING)


def doubts(ground: Ground) -> tuple[int, str | None]:
    (row,) = ground.sql("select doubt_count, dispatch_pause_reason from coatcheck.providers where name = 'genace'")
    return row["doubt_count"], row["dispatch_pause_reason"]


def ending(ground: Ground, operation_id: OperationId, word: str) -> Save:
    dispatch_id = ground.mark(operation_id)
    replies: dict[str, tuple[ev.Reply, Exchange]] = {
        DOUBT: (ev.Doubted(dispatch_id=dispatch_id, cause="closed"), SILENT),
        UNSENT: (ev.NotSent(dispatch_id=dispatch_id, cause="connection_refused"), NOTHING),
        THROTTLED: (ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None), status(429)),
        ACCEPTED: (accepted(dispatch_id, RemoteJobId(f"j-{operation_id}")), status(201)),
    }
    reply, exchange = replies[word]
    return ground.as_save(ground.step(operation_id, reply), exchange)


@pytest.mark.parametrize("batched", [False, True], ids=["one by one", "in a batch"])
@pytest.mark.parametrize(
    ("words", "count", "paused"),
    [
        ([DOUBT] * 3, 3, False),
        ([DOUBT] * 4, 4, True),
        ([DOUBT, UNSENT, DOUBT, UNSENT, DOUBT, DOUBT], 4, True),
        ([DOUBT] * 3 + [ACCEPTED] + [DOUBT] * 3, 3, False),
        ([DOUBT] * 3 + [THROTTLED, DOUBT], 1, False),
        ([UNSENT] * 9, 0, False),
    ],
)
def test_doubts_in_a_row_pause_the_account_and_what_was_never_sent_says_nothing(
    ground: Ground, words: list[str], count: int, paused: bool, batched: bool
) -> None:
    ground.sql("update coatcheck.providers set doubt_limit = 4")
    saves = [ending(ground, each, word) for each, word in zip(ground.enqueue_many(len(words)), words, strict=True)]
    for batch in [saves] if batched else [[save] for save in saves]:
        assert all(saved.applied for saved in ground.write(batch))
    reason = f"{count} dispatches in a row ended in doubt" if paused else None
    assert doubts(ground) == (count, reason)


def test_without_a_limit_no_number_of_doubts_pauses_anything_and_a_resumed_account_counts_anew(ground: Ground) -> None:
    ground.sql("update coatcheck.providers set doubt_limit = null")
    ground.write([ending(ground, each, DOUBT) for each in ground.enqueue_many(30)])
    assert doubts(ground) == (30, None)
    ground.run(pauses.resume(ground.line, "genace", reason="looked into it", actor="ada", faults=NO_FAULTS))
    assert doubts(ground) == (0, None)
