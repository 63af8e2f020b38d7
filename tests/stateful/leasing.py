"""Messages, which go to one worker at a time, and the world around: time that passes, pauses, limits."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from coatcheck.core.actions import Action, ParkReason
from coatcheck.queue.leases import Acknowledge, Message, Release, SetAside, Wanted
from coatcheck.store.pauses import pause, resume
from stateful import expected
from stateful.compared import PLACES, TENANTS, Compared
from stateful.hands import WORKERS
from stateful.reference import CLOSED, Lane
from store.ground import ACCOUNT

LATER_S = 2000.0
"""Longer than any lease and quiet time here, so that what ends and what does not is never a matter of the machine's speed."""


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
        due = {slot: lane.bad_leases for slot, lane in self._lanes() if self._may_be_due(lane.due_at, lane.parked)}
        assert got <= due.keys()
        sure = {
            (operation, number)
            for (operation, number), lane in self._lanes()
            if (operation, number) in due
            and lane.due_at is not None
            and lane.bad_leases == 0
            and (lane.action != "reconcile" or doubts)
        }
        assert sure <= got
        self.counts["claimed"] += len(messages)
        for message in messages:
            lane = self.books.records[message.operation_id].lanes[message.lane]
            token = self.books.take(lane, worker, expected.LEASE_S)
            self.leased.append(Leased(worker=worker, message=message, token=token))

    def _lanes(self) -> list[tuple[tuple[UUID, int], Lane]]:
        return [
            ((operation, number), lane)
            for operation, record in self.books.records.items()
            for number, lane in record.lanes.items()
        ]

    def _may_be_due(self, due_at: float | None, parked: str | None) -> bool:
        return parked is None and (due_at is None or due_at <= self.books.now)

    @precondition(lambda self: self.leased)
    @rule(place=PLACES, verb=st.sampled_from(["renew", "release", "put off", "park", "acknowledge"]))
    def end_a_lease(self, place: int, verb: str) -> None:
        """With a token that is still the message's, or with one that is not any more: then nothing changes."""
        leased = self.leased[-1 - place % len(self.leased)]
        operation, number = leased.message.operation_id, leased.message.lane
        lane = self.books.held_by(operation, number, leased.token)
        record = self.books.records[operation]
        if verb == "acknowledge" and lane is not None and record.phase not in CLOSED:
            verb = "release"  # no handler ends a message whose operation still needs it
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

    # -- the world around ----------------------------------------------------------------------------------------------

    @rule()
    def time_passes(self) -> None:
        """Every lease ends, every wait is over, and nothing of what was sent is under way any more."""
        self.hands.move_time(LATER_S)
        self.books.now += LATER_S

    @rule(paused=st.booleans())
    def pause(self, *, paused: bool) -> None:
        """A person stops the account's dispatches, or lets them go on."""
        change = pause if paused else resume
        self.hands.ann.run(change(self.hands.ann.line, ACCOUNT, reason="the books", actor="eve"))
        self.books.is_paused = paused

    @rule(tenant=st.sampled_from(TENANTS), limit=st.sampled_from([None, 3, 7]))
    def limit(self, tenant: str, limit: int | None) -> None:
        """A person limits what a tenant may spend."""
        self.hands.ann.sql("update coatcheck.allowances set ceiling = %s where tenant_id = %s", limit, tenant)
        self.books.limits[tenant] = None if limit is None else Decimal(limit)
