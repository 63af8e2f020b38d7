"""What the design says of every order in which a reply, the sweep, a person's decision and a second reply can come: a small oracle.

It shares nothing with `core.machine`: it is written from the sentences about late truth, so that the two can disagree. `ORDERS` are all
orders that mean something; `docs/late-truth.md` is printed from it.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product

HELD = 5
"""What each dispatch holds; the service's own figure plays no part here."""


class Happening(enum.StrEnum):
    """What can come after the first mark. A job's number is its dispatch's, 9 is a job that no reply named."""

    SWEEP = "the lease ends"
    REPLY = "reply: job 1"
    AGAIN = "reply: job 1, once more"
    OTHERWISE = "reply: job 8, of the same POST"
    REJECTED = "reply: rejected"
    UNSENT = "proof: not sent"
    DOUBTED = "reply: unusable"
    ADOPT = "adopt job 1"
    ADOPT_OTHER = "adopt job 9"
    PROVE_ABSENT = "prove absent"
    REDISPATCH = "redispatch"
    WRITE_OFF = "write off"
    WRITE_OFF_RELEASED = "write off, released"
    CANCEL = "cancel"
    MARK = "next mark"
    SECOND = "second reply: job 2"
    OTHERS = "another operation gets job 1"


REPLIES = (Happening.REPLY, Happening.REJECTED, Happening.UNSENT, Happening.DOUBTED)
DECISIONS = (
    Happening.ADOPT,
    Happening.ADOPT_OTHER,
    Happening.PROVE_ABSENT,
    Happening.REDISPATCH,
    Happening.WRITE_OFF,
    Happening.WRITE_OFF_RELEASED,
    Happening.CANCEL,
)
_JOBS = {Happening.REPLY: 1, Happening.AGAIN: 1, Happening.OTHERWISE: 8, Happening.SECOND: 2}
_ADOPTED = {Happening.ADOPT: 1, Happening.ADOPT_OTHER: 9}
_OPEN = ("dispatching", "uncertain")


@dataclass(slots=True)
class Dispatch:
    """One POST's row: `knows` 0 nothing, 1 that nothing was created, 2 an id, the first of which is `named`. `charged` None: still held."""

    knows: int = 0
    charged: int | None = None
    named: int | None = None


@dataclass(slots=True)
class Story:
    """An operation after its first mark. `tell` answers whether the happening meant anything.

    `is_others`: another operation has job 1. `was_disputed`: a reply named it all the same; `is_disputed`: and nobody decided since.
    """

    phase: str = "dispatching"
    job: int | None = None
    orphans: set[int] = field(default_factory=set)
    cancel_requested: bool = False
    dispatches: list[Dispatch] = field(default_factory=lambda: [Dispatch()])
    is_others: bool = False
    was_disputed: bool = False
    is_disputed: bool = False

    def tell(self, happening: Happening) -> bool:
        """Let it happen."""
        match happening:
            case Happening.SWEEP:
                return self._move("uncertain") if self.phase == "dispatching" else False
            case Happening.MARK | Happening.OTHERS | Happening.CANCEL:
                steps = {Happening.MARK: self._mark, Happening.OTHERS: self._lose, Happening.CANCEL: self._cancel}
                return steps[happening]()
            case Happening.ADOPT | Happening.ADOPT_OTHER:
                return self._adopt(_ADOPTED[happening])
            case Happening.PROVE_ABSENT | Happening.REDISPATCH | Happening.WRITE_OFF | Happening.WRITE_OFF_RELEASED:
                return self._decide(happening)
            case _:
                return self._reply(happening)

    def _move(self, phase: str) -> bool:
        self.phase = phase
        return True

    def _mark(self) -> bool:
        if self.phase != "prepared" or self.cancel_requested:
            return False
        self.dispatches.append(Dispatch())
        return self._move("dispatching")

    def _cancel(self) -> bool:
        if self.phase == "prepared":
            return self._move("cancelled")
        self.cancel_requested |= self.phase in (*_OPEN, "accepted")
        return self.phase in (*_OPEN, "accepted")

    def _lose(self) -> bool:
        """Whoever has a job first keeps it."""
        is_free = not self.is_others and self.job != 1 and 1 not in self.orphans
        self.is_others |= is_free
        return is_free

    def _adopt(self, job: int) -> bool:
        if self.phase != "uncertain" or (job == 1 and self.is_others):
            return False
        last = self.dispatches[-1]
        self.orphans.discard(job)
        self.job, last.knows, last.named = job, 2, last.named or job
        self.is_disputed = False
        return self._move("accepted")

    def _decide(self, happening: Happening) -> bool:
        rejected_and_wanted = self.phase == "rejected" and happening is Happening.REDISPATCH
        if self.phase != "uncertain" and not rejected_and_wanted:
            return False
        last = self.dispatches[-1]
        self.is_disputed = False
        spent = happening in (Happening.REDISPATCH, Happening.WRITE_OFF)
        if last.charged is None:
            last.charged = HELD if spent else 0
        if happening is Happening.PROVE_ABSENT:
            last.knows = max(last.knows, 1)
        again = happening in (Happening.PROVE_ABSENT, Happening.REDISPATCH)
        self.cancel_requested &= not again
        return self._move("prepared" if again else "abandoned")

    def _reply(self, happening: Happening) -> bool:
        if happening is Happening.SECOND and len(self.dispatches) < 2:
            return False
        dispatch = self.dispatches[1 if happening is Happening.SECOND else 0]
        is_current = dispatch is self.dispatches[-1]
        if happening in _JOBS:
            self._named(_JOBS[happening], dispatch, is_current=is_current)
        elif happening is Happening.DOUBTED:
            self._move("uncertain" if is_current and self.phase == "dispatching" else self.phase)
        else:
            self._nothing(happening, dispatch, is_current=is_current)
        return True

    def _named(self, job: int, dispatch: Dispatch, *, is_current: bool) -> None:
        """A paid id concludes what it can, and is an orphan where it cannot; what another operation has is neither, and leads into doubt."""
        concludes = is_current and self.phase in (*_OPEN, "prepared")
        is_disputed = job == 1 and self.is_others
        is_news = dispatch.knows < 2
        dispatch.knows, dispatch.named = 2, dispatch.named or job
        if is_disputed:
            self.was_disputed = True
            self.is_disputed |= dispatch.named == 1
        elif not concludes and job != self.job:
            self.orphans.add(job)
        if concludes:
            self._move("uncertain" if is_disputed else "accepted")
            self.job = None if is_disputed else job
            dispatch.charged = None
        elif is_news:
            dispatch.charged = dispatch.charged or HELD

    def _nothing(self, happening: Happening, dispatch: Dispatch, *, is_current: bool) -> None:
        """Proof that nothing was created: it costs nothing, whatever was decided, and concludes what is open."""
        if dispatch.knows:
            return
        dispatch.knows, dispatch.charged = 1, 0
        if is_current and self.phase in _OPEN:
            returned = "cancelled" if self.cancel_requested else "prepared"
            self._move("rejected" if happening is Happening.REJECTED else returned)

    def end(self) -> str:
        """The end state in words."""
        words = [self.phase]
        if self.job is not None:
            words.append(f"job {self.job}")
        words += [f"orphan {job}" for job in sorted(self.orphans)]
        words += ["disputed"] if self.was_disputed else []
        held = HELD * sum(dispatch.charged is None for dispatch in self.dispatches)
        charged = sum(dispatch.charged or 0 for dispatch in self.dispatches)
        return ", ".join([*words, f"held {held}", f"charged {charged}"])


Order = tuple[Happening, ...]


def told(order: Order) -> tuple[Order, Story]:
    """The happenings of an order that meant something, and the story's end."""
    story = Story()
    return tuple(happening for happening in order if story.tell(happening)), story


@cache
def orders(reply: Happening, decision: Happening) -> tuple[Order, ...]:
    """Every order of a reply, the sweep, a decision and a second reply that means something: of the next POST, or of the same one.

    And of a reply whose job another operation got, before or after.
    """
    seconds: tuple[Order, ...] = (
        (Happening.MARK, Happening.SECOND),
        (Happening.AGAIN,),
        (Happening.OTHERWISE,),
        *(
            [(Happening.OTHERS,), (Happening.OTHERS, Happening.MARK), (Happening.OTHERS, Happening.AGAIN)]
            if reply is Happening.REPLY
            else []
        ),
    )
    sets: Iterator[Order] = ((reply, Happening.SWEEP, decision, *more) for more in seconds)
    every = (told(order)[0] for chosen in sets for order in permutations(chosen))
    return tuple(sorted(set(every), key=lambda order: [list(Happening).index(each) for each in order]))


PAIRS = tuple(product(REPLIES, DECISIONS))
