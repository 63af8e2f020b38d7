"""Messages, which go to one worker at a time: tokens that are held, and tokens that were lost."""

from dataclasses import dataclass
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from coatcheck.core.actions import Action, ParkReason
from coatcheck.queue.leases import Acknowledge, Message, Release, SetAside, Wanted
from stateful import expected
from stateful.compared import LATER_S, PLACES, Compared
from stateful.hands import WORKERS
from stateful.reference import CLOSED, Lane
from store.ground import ACCOUNT

SUSPECT = 2
"""After so many leases in a row that ended without a word a message is leased alone."""


@dataclass(frozen=True, kw_only=True)
class Leased:
    """A message that somebody holds or held."""

    worker: str
    message: Message
    token: int


class Leasing(Compared):
    """See the module. Messages are kept, so that their tokens come back when they are stale."""

    def __init__(self) -> None:
        super().__init__()
        self.leased: list[Leased] = []

    @precondition(lambda self: self.books.records)
    @rule(worker=st.sampled_from(WORKERS), doubts=st.sampled_from([0, 10]))
    def claim(self, worker: str, doubts: int) -> None:
        """S12: whatever is due goes to one worker, and nothing else does."""
        wanted = [
            Wanted(action=action, provider=ACCOUNT, account=ACCOUNT, room=50, lease_s=expected.LEASE_S)
            for action in (Action.DISPATCH, Action.OBSERVE, Action.DELIVER)
        ]
        ground = self.hands.grounds[worker]
        messages = ground.run(ground.leases.claim(wanted, doubts=doubts, doubt_lease_s=expected.LEASE_S))
        got = {message.slot for message in messages}
        assert len(got) == len(messages)
        assert got <= self._due().keys()
        assert self._surely_due(doubts) <= got
        self.counts["claimed"] += len(messages)
        for message in messages:
            lane = self.books.records[message.operation_id].lanes[message.lane]
            token = self.books.take(lane, worker, expected.LEASE_S)
            self.leased.append(Leased(worker=worker, message=message, token=token))

    def _due(self) -> dict[tuple[UUID, int], Lane]:
        """What may be due: of what waits for leave to dispatch, nobody here knows for how long."""
        return {
            (operation, number): lane
            for operation, record in self.books.records.items()
            for number, lane in record.lanes.items()
            if lane.parked is None and (lane.due_at is None or lane.due_at <= self.books.now)
        }

    def _surely_due(self, doubts: int) -> set[tuple[UUID, int]]:
        """What a claim must bring; one message whose leases ended badly twice goes alone, and then it brings nothing else."""
        due = self._due()
        if any(lane.bad_leases >= SUSPECT for lane in due.values()):
            return set()
        return {
            slot for slot, lane in due.items() if lane.due_at is not None and (doubts or lane.action != "reconcile")
        }

    @precondition(lambda self: self.leased)
    @rule(place=PLACES, verb=st.sampled_from(["renew", "release", "put off", "park", "acknowledge"]))
    def end_a_lease(self, place: int, verb: str) -> None:
        """With a token that is still the message's, or with one that is not any more: then nothing changes."""
        leased = self.leased[-1 - place % len(self.leased)]
        operation, number = leased.message.operation_id, leased.message.lane
        lane = self.books.held_by(operation, number, leased.token)
        record = self.books.records[operation]
        needed = record.phase not in CLOSED if verb == "acknowledge" else record.phase == "dispatching"
        if verb in ("acknowledge", "park") and lane is not None and needed:
            verb = "release"  # no handler does that to a message whose operation needs it
        ended = self._ended(leased, verb)
        assert ended == (lane is not None), (verb, ended)
        self.counts[f"{verb} {'held' if ended else 'lost'}"] += 1
        if lane is None:
            return
        match verb:
            case "renew":
                lane.due_at = self.books.now + expected.LEASE_S
            case "park":
                lane.parked, lane.holder = "lease_count", None
            case "acknowledge":
                del record.lanes[number]
            case _:
                lane.holder, lane.bad_leases = None, 0
                lane.due_at = self.books.now + (LATER_S / 2 if verb == "put off" else 0)

    def _ended(self, leased: Leased, verb: str) -> bool:
        ground, message = self.hands.grounds[leased.worker], leased.message
        match verb:
            case "renew":
                return message.slot in ground.run(ground.leases.renew([message]))
            case "park":
                return ground.run(ground.leases.park([SetAside(message=message, reason=ParkReason.LEASE_COUNT)]))[0]
            case "acknowledge":
                return ground.run(ground.leases.acknowledge([Acknowledge(message=message)]))[0]
            case _:
                delay_s = LATER_S / 2 if verb == "put off" else 0.0
                return ground.run(ground.leases.release([Release(message=message, delay_s=delay_s)]))[0]
