"""What may be in hand together. A message whose leases kept ending without a word may have killed its workers: it is handled alone.

So of its neighbours none spends a lease with it any more, and all end; only what really kills goes on counting until it is parked. All of
this is bounded: a suspect that has been in hand for some seconds without harm is company like any other, and suspects and everything else
take turns, so that many that were in hand of two workers which were killed do not hold up the rest.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from coatcheck.core.actions import Action
from coatcheck.queue.leases import Message
from coatcheck.seams import Clock

ALONE_S: Final = 10.0
"""How long nothing else is leased beside a suspect."""
TURN_S: Final = 30.0
"""How long suspects may follow each other, and how long everything else may afterwards."""
DELIVERIES_S: Final = 10.0
"""How long deliveries, which last as long as outputs are large, are waited for before a suspect comes to them."""
ASK_EVERY_S: Final = 1.0
"""How often it is asked whether another worker was faster: not all have to empty their hands for one message."""
DRAIN_S: Final = 120.0
"""How long anything is waited for: more than a lease of what is short."""


class Seclusion:
    """Says when a worker may claim, and whether it may be given a suspect. `in_hand` counts its actions that run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alone: Message | None = None
        self._alone_until = 0.0
        self._draining_since: float | None = None
        self._turn_since: float | None = None
        self._open_until = 0.0
        self._asked_at = 0.0

    def may_claim(self, in_hand: Mapping[Action, int]) -> bool:
        """Whether anything at all may be leased now."""
        now = self._now
        if self._alone is not None and now < self._alone_until:
            return False
        if self._draining_since is not None and now - self._draining_since >= DRAIN_S:
            self._draining_since, self._open_until = None, now + TURN_S
        return self._draining_since is None or self.is_free(in_hand)

    def is_free(self, in_hand: Mapping[Action, int]) -> bool:
        """Whether a suspect would be alone, or with deliveries that were waited for long enough."""
        if self._now < self._open_until:
            return False
        count = sum(in_hand.values())
        waited = self._draining_since is not None and self._now - self._draining_since >= DELIVERIES_S
        return count == 0 or (waited and count == in_hand.get(Action.DELIVER, 0))

    @property
    def wants_to_know(self) -> bool:
        """Whether hands are being emptied, and it was not asked for a second whether the suspect is still there."""
        if self._draining_since is None or self._now - self._asked_at < ASK_EVERY_S:
            return False
        self._asked_at = self._now
        return True

    def forget(self) -> None:
        """No suspect is there any more: another worker has it."""
        self._draining_since = None

    def claimed(self, messages: Sequence[Message], in_hand: Counter[Action]) -> None:
        """Learn from a claim, which is in hand already."""
        suspect = next((message for message in messages if message.is_suspect), None)
        if suspect is not None:
            self._seclude(suspect)
        elif any(message.has_suspects for message in messages) and self._now >= self._open_until:
            self._draining_since = self._now if self._draining_since is None else self._draining_since
        else:
            self._draining_since = self._turn_since = None
            if not in_hand.total():
                # nothing else is due, so nothing else needs its turn
                self._open_until = 0.0

    def ended(self, message: Message) -> None:
        """A message is out of hand."""
        if self._alone is not None and self._alone.slot == message.slot:
            self._alone = None

    @property
    def _now(self) -> float:
        return self._clock.boottime()

    def _seclude(self, suspect: Message) -> None:
        now = self._now
        self._alone, self._alone_until = suspect, now + ALONE_S
        self._draining_since = None
        self._turn_since = now if self._turn_since is None else self._turn_since
        if now - self._turn_since >= TURN_S:
            self._turn_since, self._open_until = None, now + ALONE_S + TURN_S
