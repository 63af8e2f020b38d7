"""One claimer per process: it takes what is due in batches, within the room that each role has, and loads what a claim could not tell of it.

Idle, it asks once a second at most; a notification, a known instant, an own save that made something due, or a place that was wanted wakes
it earlier. A claim that found company is followed by a short rest, so that the next one finds more, and a worker that is full does not
claim for every place that falls free. After a lone message it does not rest, nor within one tenant's backlog, which it takes in portions.

A notification cuts the rest short where one tenant alone has work. While several do, it is answered with a small claim for tenants that have
nothing in hand, and the rest goes on: a place is kept for them, and a crowd that came along would make them wait.
"""

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import inf

import psycopg

from coatcheck.core.actions import Action
from coatcheck.errors import CoatcheckError
from coatcheck.queue.leases import NOWHERE, Leases, Message, Wanted
from coatcheck.queue.turns import Turns
from coatcheck.seams import Point, Seams
from coatcheck.store.db import Database
from coatcheck.store.subjects import load_subjects
from coatcheck.workers.desk import Work
from coatcheck.workers.outages import Outages
from coatcheck.workers.pace import Pace
from coatcheck.workers.seclusion import Seclusion

POLL_S = 1.0
"""How long an idle worker waits between two looks at the outbox."""
DOUBTS = 100
"""Ended dispatches taken at a time."""
DOUBT_LEASE_S = 30.0
REST_S = 0.05
"""After a claim that found company, unless more of one tenant's backlog follows."""
_REST_SHARE = 3.0
"""On a slow machine the rest is this many times as long as the claim took."""
AT_ONCE = 100
"""A portion: of a kind and provider a claim takes no more where one tenant alone has work, and where more is due the next follows at once.
While these begin, those are being leased; all at once would keep busy first the processor and then the database, never both."""
ROOM_S = 0.1
"""How long a worker that cannot take all that is due lets places fall free before it claims for a few of them."""
_ROOM_SHARE = 4
_RESERVE_SHARE = 8
"""One place in so many is kept for tenants that have nothing in hand, so that nobody's backlog fills a worker,"""
_RESERVE = 8
"""and at most so many."""
_SOON_S = 0.01
"""The least time between a claim that a budget stopped and the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many actions of a kind may be in hand at once, for how long each is leased, and for which providers (name to account)."""

    places: int
    lease_s: float
    accounts: Mapping[str, str]

    @property
    def reserve(self) -> int:
        """How many of the places only tenants get that have nothing in hand."""
        return min(_RESERVE, self.places // _RESERVE_SHARE)


class Lessor:
    """Claims for one worker. `in_hand` counts the actions that run, `lookups` names where doubt may be looked up (name to account)."""

    def __init__(
        self,
        leases: Leases,
        database: Database,
        capacities: Mapping[Action, Capacity],
        seams: Seams,
        *,
        lookups: Mapping[str, str] = NOWHERE,
    ) -> None:
        self._leases = leases
        self._database = database
        self._capacities = capacities
        self._lookups = lookups
        self._seams = seams
        self._news = asyncio.Event()
        self._due: list[float] = []
        self._opens_at = inf
        self._cut: set[Action] = set()
        """Kinds of which the claim under way asks for a portion, though it has room for more."""
        self._crowded: set[Action] = set(capacities)
        self._freed = asyncio.Event()
        self._heard = asyncio.Event()
        self._heeds_at = self._rested_at = 0.0
        self._turns = {action: deque(capacity.accounts.items()) for action, capacity in capacities.items()}
        self._asked: Counter[Action] = Counter()
        self._seclusion = Seclusion(seams.clock)
        self._outages = Outages()
        self._tenants = Turns()
        self._pace = Pace()
        self.in_hand: Counter[Action] = Counter()

    def wake(self, delay_s: float = 0.0) -> None:
        """Something becomes due in `delay_s` seconds."""
        due_at = self._seams.clock.boottime() + delay_s
        if not self._due or due_at < self._due[0]:
            self._news.set()
        heapq.heappush(self._due, due_at)

    def hear(self) -> None:
        """Somebody made something due elsewhere."""
        self._heard.set()
        self._freed.set()
        self.wake()

    def done(self, message: Message) -> None:
        """A place is free again; that is news where there was none to spare, and where nothing is in hand any more."""
        action = message.action
        self.in_hand[action] -= 1
        self._tenants.give_back(action, message.tenant_id)
        self._seclusion.ended(message)
        self._freed.set()
        if action in self._crowded or not self.in_hand.total():
            self.wake()

    async def claim(self) -> list[Work]:
        """Lease what is due and there is room for, with what it is about as it stands; nothing beside what has to be alone."""
        began = self._seams.clock.boottime()
        while self._due and self._due[0] <= began:
            heapq.heappop(self._due)
        self._heard.clear()
        # what the claim before said of budgets is used up, also where none follows now
        self._opens_at = inf
        if not self._seclusion.may_claim(self.in_hand) and not await self._is_released():
            return []
        has_company = self._pace.has_company(began)
        early = began < self._rested_at and has_company
        self._cut.clear()
        wanted = self._newcomers() if early else self._wanted(has_company=has_company)
        messages = await self._leased(wanted, began, doubts=0 if early else DOUBTS)
        found = await self._loaded(messages)
        for work in found:
            self.in_hand[work.message.action] += 1
            self._tenants.take(work.message.action, work.message.tenant_id)
        self._seclusion.claimed([work.message for work in found], self.in_hand)
        ended = self._seams.clock.boottime()
        self._pace.met(ended, frozenset(message.tenant_id for message in messages))
        opens_in_s = self._tenants.opens_in_s
        self._opens_at = inf if opens_in_s is None else ended + max(_SOON_S, opens_in_s)
        if early:
            # the rest goes on
            self._heeds_at = min(self._rested_at, ended + min(REST_S, ended - began))
            self.wake(max(0.0, self._rested_at - ended))
        else:
            self._crowded = self._without_room(wanted, messages)
            self._learn(messages, began, ended)
        return found

    def _learn(self, messages: Sequence[Message], began: float, ended: float) -> None:
        """How much the next claim begins, and when. The next portion of a backlog and a small claim for who is heard of may follow at once, others only after as long as it took."""
        is_cut = not self._cut.isdisjoint(self._crowded)
        begun = Counter(message.action for message in messages)
        # a portion does not tell how much might have been begun
        shares = [1.0] if is_cut else [begun[action] / each.places for action, each in self._capacities.items()]
        self._pace.learn(ended, took_s=ended - began, rows=len(messages), begun=max(shares, default=0.0))
        has_company = self._pace.has_company(ended)
        rest_s = 0.0 if is_cut and not has_company else max(REST_S, (ended - began) * _REST_SHARE)
        self._rested_at = ended + rest_s if len(messages) > 1 else 0.0
        heeds_at = 0.0 if has_company else ended + min(REST_S, ended - began)
        self._heeds_at = min(self._rested_at, heeds_at)

    async def _is_released(self) -> bool:
        """Whether the suspect for which hands are being emptied went to another worker."""
        if not self._seclusion.wants_to_know or await self._leases.has_suspects(self._everything()):
            return False
        self._seclusion.forget()
        return self._seclusion.may_claim(self.in_hand)

    def _everything(self) -> list[Wanted]:
        """Every kind of message that could be taken here, room or none."""
        return [
            Wanted(action=action, provider=provider, account=account, room=0, lease_s=each.lease_s)
            for action, each in self._capacities.items()
            for provider, account in each.accounts.items()
        ]

    async def _leased(self, wanted: Sequence[Wanted], began: float, *, doubts: int) -> list[Message]:
        self._seams.faults.reached(Point.X3_CLAIM_COMMIT_SENT)
        try:
            found = await self._leases.claim(
                wanted,
                doubts=doubts,
                doubt_lease_s=DOUBT_LEASE_S,
                lookups=self._lookups,
                is_free=self._seclusion.is_free(self.in_hand),
                away_s=self._outages.away_s(began),
                turns=self._tenants,
            )
        except (psycopg.Error, CoatcheckError):
            self._outages.failed()
            raise
        self._outages.reached(began)
        self._seams.faults.reached(Point.X1_CLAIMED, len(found))
        return found

    async def _loaded(self, messages: Sequence[Message]) -> list[Work]:
        """With what each is about, also of those whose claim did not tell: of large claims, of long texts, and of what somebody changed meanwhile."""
        untold = [(message.slot, message.action) for message in messages if message.subject is None]
        loaded = await load_subjects(self._database, untold) if untold else {}
        return [
            Work(
                message=message,
                operation=subject.operation,
                specification_text=subject.specification_text,
                output=subject.output,
                quiescent_at=subject.quiescent_at,
            )
            for message in messages
            if (subject := message.subject or loaded.get(message.slot)) is not None
        ]

    async def wait(self) -> None:
        """Until something may be due: woken, a known instant, or the poll interval; then for the rest of the rest."""
        now = self._seams.clock.boottime()
        poll_at = min(self._opens_at, now + POLL_S * self._seams.jitter.between(0.9, 1.1))
        while (until := min(poll_at, self._due[0]) if self._due else poll_at) > now:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(until - now):
                    await self._news.wait()
            now = self._seams.clock.boottime()
        await self._rest(now)
        with suppress(TimeoutError):
            async with asyncio.timeout(ROOM_S):
                while self._is_tight() and not self._heard.is_set():
                    self._freed.clear()
                    await self._freed.wait()

    async def _rest(self, now: float) -> None:
        """The rest of the rest, all of it where nothing is heard."""
        if self._heeds_at > now:
            await self._seams.sleep(self._heeds_at - now)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rested_at - max(now, self._heeds_at)):
                await self._heard.wait()

    def _is_tight(self) -> bool:
        """Whether more is due than there was room for, and neither a portion of it has room by now nor each such kind a quarter of its places."""
        free = {
            action: each.places - each.reserve - self.in_hand[action]
            for action, each in self._capacities.items()
            if action in self._crowded
        }
        return max(free.values(), default=AT_ONCE) < AT_ONCE and any(
            left < max(1, self._capacities[action].places // _ROOM_SHARE) for action, left in free.items()
        )

    def _without_room(self, wanted: Sequence[Wanted], messages: Sequence[Message]) -> set[Action]:
        """Actions of which there may be more due than there was room for. Where room is left all the same, the next claim is due now."""
        taken = Counter((message.action, message.provider) for message in messages)
        filled = {
            want.action for want in wanted if taken[want.action, want.provider] >= max(1, want.room - want.reserve)
        }
        kept = {want.action for want in wanted if want.room <= want.reserve}
        full = {
            action for action, each in self._capacities.items() if self.in_hand[action] >= each.places - each.reserve
        }
        if (filled | self._passed_over(wanted)) - full - kept:
            self.wake()
        return filled | full | kept

    def _passed_over(self, wanted: Sequence[Wanted]) -> set[Action]:
        """Actions of which not every provider had its turn yet, there being fewer free places than providers."""
        self._asked.update(want.action for want in wanted)
        for action, turns in self._turns.items():
            if self._asked[action] >= len(turns):
                self._asked[action] = 0
        return {action for action, count in self._asked.items() if count}

    def _newcomers(self) -> list[Wanted]:
        """What is heard of during a rest: the first messages of tenants that have nothing in hand, who wait for no crowd. Nobody's turn is over with it."""
        wanted = []
        for action, capacity in self._capacities.items():
            turns = self._turns[action]
            free = capacity.places - self.in_hand[action]
            room = min(max(1, free // len(turns)) if turns else 0, max(1, capacity.reserve))
            wanted += [
                Wanted(action=action, provider=name, account=account, room=room, lease_s=capacity.lease_s, reserve=room)
                for name, account in islice(turns, max(0, free))
            ]
        return wanted

    def _wanted(self, *, has_company: bool) -> list[Wanted]:
        """An equal share for each provider; where there are not places enough they take turns, so that none waits for another's backlog."""
        wanted = []
        for action, capacity in self._capacities.items():
            turns = self._turns[action]
            free = capacity.places - self.in_hand[action]
            share = max(1, free // len(turns)) if turns else 0
            if share > AT_ONCE and not has_company:
                share = AT_ONCE
                self._cut.add(action)
            reserve = min(share, capacity.reserve // len(turns)) if turns else 0
            # a busy process begins less, but the first message of who has nothing in hand always
            reserve = max(reserve, share - self._pace.starts(capacity.places))
            for _ in range(min(len(turns), free)):
                provider, account = turns[0]
                turns.rotate(-1)
                wanted.append(
                    Wanted(
                        action=action,
                        provider=provider,
                        account=account,
                        room=share,
                        lease_s=capacity.lease_s,
                        reserve=reserve,
                    )
                )
        return wanted
