"""Every class of fault that a run may meet, and the mix of one seed: each class on or off, with a rate of its own.

Runs in which few classes act often find what runs in which all act a little never do; so the seed first decides which there are.
"""

import enum
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final


class Trouble(enum.StrEnum):
    """The classes."""

    REFUSED = "connection refused"
    SILENCE = "connection unanswered"
    UNKNOWN_NAME = "name unknown"
    CUT_REQUEST = "request cut"
    CUT_REPLY = "reply cut"
    STALL_REQUEST = "request stalled"
    STALL_REPLY = "reply stalled"
    SLOW_NETWORK = "slow network"
    CREATE = "create struck at the service"
    LOOK = "look struck at the service"
    OUTPUT = "output struck at the service"
    LIST = "list struck at the service"
    COURSE = "render without success"
    SERVICE_AWAY = "service away"
    DATABASE_LOST_BEFORE = "connection lost before the statement's effect"
    DATABASE_LOST_AFTER = "connection lost after the statement's effect"
    DATABASE_LATE = "statement carried out after its connection broke"
    DATABASE_AGAIN = "serialisation, deadlock or lock"
    DATABASE_SHUT = "database shut down during a statement"
    DATABASE_SLOW = "slow statement"
    DATABASE_AWAY = "database away"
    KILL_AT_POINT = "killed at a point"
    STOP_AT_POINT = "stopped at a point"
    RAISE_AT_POINT = "surprised at a point"
    DRAIN_AT_POINT = "drained at a point"
    HALT_AT_POINT = "halted at a point"
    KILL = "killed at an instant"
    STOP = "stopped at an instant"
    DRAIN = "drained at an instant"
    DISK_FULL = "disk refuses"
    DISK_SLOW = "slow disk"
    CLOCK_WRONG = "wall clock wrong"
    ASKED_AGAIN = "enqueued again"
    CANCELLED = "cancel asked for"
    DECIDED = "decided by a person"


RATES: Final[Mapping[Trouble, tuple[float, float]]] = MappingProxyType(
    {
        # of each connection
        Trouble.REFUSED: (0.02, 0.3),
        Trouble.SILENCE: (0.02, 0.15),
        Trouble.UNKNOWN_NAME: (0.02, 0.15),
        Trouble.CUT_REQUEST: (0.05, 0.35),
        Trouble.CUT_REPLY: (0.05, 0.35),
        Trouble.STALL_REQUEST: (0.05, 0.25),
        Trouble.STALL_REPLY: (0.05, 0.25),
        Trouble.SLOW_NETWORK: (0.1, 0.9),
        # of each request, and of each job
        Trouble.CREATE: (0.1, 0.6),
        Trouble.LOOK: (0.1, 0.5),
        Trouble.OUTPUT: (0.1, 0.5),
        Trouble.LIST: (0.1, 0.4),
        Trouble.COURSE: (0.1, 0.6),
        # of each statement
        Trouble.DATABASE_LOST_BEFORE: (0.005, 0.04),
        Trouble.DATABASE_LOST_AFTER: (0.005, 0.04),
        Trouble.DATABASE_LATE: (0.005, 0.03),
        Trouble.DATABASE_AGAIN: (0.005, 0.05),
        Trouble.DATABASE_SHUT: (0.005, 0.03),
        Trouble.DATABASE_SLOW: (0.01, 0.1),
        # of each point that is reached
        Trouble.KILL_AT_POINT: (0.003, 0.02),
        Trouble.STOP_AT_POINT: (0.002, 0.01),
        Trouble.RAISE_AT_POINT: (0.003, 0.02),
        Trouble.DRAIN_AT_POINT: (0.002, 0.01),
        Trouble.HALT_AT_POINT: (0.002, 0.01),
        # of each second
        Trouble.SERVICE_AWAY: (0.01, 0.04),
        Trouble.DATABASE_AWAY: (0.01, 0.05),
        Trouble.KILL: (0.02, 0.12),
        Trouble.STOP: (0.01, 0.06),
        Trouble.DRAIN: (0.01, 0.05),
        Trouble.CANCELLED: (0.02, 0.2),
        Trouble.DECIDED: (0.1, 0.6),
        # of each piece of work for a disk
        Trouble.DISK_FULL: (0.02, 0.2),
        Trouble.DISK_SLOW: (0.05, 0.5),
        # of each life of a worker, and of each operation
        Trouble.CLOCK_WRONG: (0.3, 1.0),
        Trouble.ASKED_AGAIN: (0.1, 0.5),
    }
)
"""The least and the greatest rate of each class that is on."""


class Mix:
    """The rates of one run; all are 0 from `heal` on."""

    def __init__(self, chance: random.Random) -> None:
        share = chance.uniform(0.1, 0.7)
        # both numbers are drawn for every class, so that a new class changes nothing of the others
        drawn = {each: (chance.random() < share, chance.uniform(*RATES[each])) for each in Trouble}
        self._rates = {each: rate if is_on else 0.0 for each, (is_on, rate) in drawn.items()}
        self.is_healed = False

    @classmethod
    def only(cls, **rates: float) -> "Mix":
        """A mix of a test's own, as `Mix.only(KILL=0.1)`."""
        made = cls(random.Random(0))
        made._rates = {each: rates.get(each.name, 0.0) for each in Trouble}
        return made

    def rate(self, trouble: Trouble) -> float:
        """How often it strikes now."""
        return 0.0 if self.is_healed else self._rates[trouble]

    def drawn(self, number: float, among: Sequence[Trouble]) -> Trouble | None:
        """Which of these strikes, if any does, by one number that was drawn between 0 and 1."""
        if not self.is_healed:
            for trouble in among:
                number -= self._rates[trouble]
                if number < 0:
                    return trouble
        return None

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self.is_healed = True

    @property
    def told(self) -> str:
        """The classes that are on, with their rates."""
        return ", ".join(f"{each.value} {rate:.3f}" for each, rate in self._rates.items() if rate) or "none"
