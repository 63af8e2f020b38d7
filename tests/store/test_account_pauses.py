"""What replies say of an account: a refused credential pauses it, and 403s count in a row."""

import pytest

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import OperationId, RemoteJobId
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
