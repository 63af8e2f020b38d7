"""Doubt that can be looked up is due to whoever has the account's credential; to everyone else it does not exist, nor is it left to do."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action, WaitReason
from coatcheck.core.operation import OperationId
from coatcheck.queue.leases import Message, Release
from store.ground import ACCOUNT, Ground

MINE = {"genace": ACCOUNT}


def in_doubt(ground: Ground, key: str, *, looked_up: bool = True) -> OperationId:
    operation_id = ground.enqueue(key)
    doubt = ev.Doubted(dispatch_id=ground.mark(operation_id), cause="closed", looked_up=looked_up)
    assert ground.happen(operation_id, doubt).applied
    return operation_id


def claim(ground: Ground, lookups: Mapping[str, str]) -> list[Message]:
    return ground.run(ground.leases.claim([], doubts=10, doubt_lease_s=30, lookups=lookups))


def test_doubt_is_due_soon_where_it_can_be_looked_up_and_a_persons_where_not(
    database: postgres.Database, ground: Ground
) -> None:
    asked, parked = in_doubt(ground, "asked"), in_doubt(ground, "parked", looked_up=False)
    names = ("action", "wait_reason", "park_reason", "wait_count")
    assert ground.one("outbox", asked, *names) == dict(zip(names, ("reconcile", "lookup", None, 1), strict=True))
    assert ground.one("outbox", parked, *names) == dict(zip(names, ("reconcile", None, "uncertain", 0), strict=True))
    assert claim(ground, MINE) == []
    database.move_time(2)
    (message,) = claim(ground, MINE)
    assert (message.operation_id, message.action, message.waited.reason) == (asked, Action.RECONCILE, "lookup")


@pytest.mark.parametrize("lookups", [{}, {"other": ACCOUNT}, {"genace": "other"}], ids=str)
def test_only_who_has_provider_and_account_takes_a_lookup(
    database: postgres.Database, ground: Ground, lookups: Mapping[str, str]
) -> None:
    in_doubt(ground, "k")
    database.move_time(2)
    assert claim(ground, lookups) == []
    assert len(claim(ground, {**lookups, **MINE})) == 1


def test_the_end_of_a_lease_is_anybodys_even_where_doubt_is_looked_up(
    database: postgres.Database, ground: Ground
) -> None:
    operation_id = ground.enqueue("k")
    ground.mark(operation_id)
    database.move_time(91)
    (message,) = claim(ground, {})
    assert message.operation_id == operation_id
    assert ground.happen(operation_id, ev.LeaseEnded(looked_up=True)).applied
    assert ground.one("outbox", operation_id, "wait_reason") == {"wait_reason": "lookup"}


def test_a_lookup_is_left_to_do_for_the_roles_that_reconcile_only(ground: Ground) -> None:
    in_doubt(ground, "k")

    def left(*actions: Action) -> int:
        return ground.run(ground.leases.left(actions, ["genace"], [ACCOUNT])).left_count

    assert (left(Action.DISPATCH, Action.OBSERVE), left(Action.RECONCILE)) == (0, 1)


def test_lookups_in_a_row_are_counted_from_the_first(database: postgres.Database, ground: Ground) -> None:
    operation_id = in_doubt(ground, "k")
    before = ground.one("outbox", operation_id)
    for count in (1, 2):
        database.move_time(90)
        (message,) = claim(ground, MINE)
        assert message.waited.count == count
        again = Release(message=replace(message), delay_s=5, reason=WaitReason.LOOKUP)
        assert ground.run(ground.leases.release([again])) == [True]
    after = ground.one("outbox", operation_id)
    assert (after["wait_count"], after["wait_since_at"]) == (3, before["wait_since_at"])
