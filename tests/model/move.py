"""One thing that happened, and how workers and people behave: one flag for each habit, so that it can be broken."""

from typing import NamedTuple

from model.store import Guards, Saved
from model.table import Asked
from model.world import Owner, World


class Habits(NamedTuple):
    """What workers and people do as the handlers and the operator's commands do it."""

    table: Asked
    guards: Guards = Guards()
    posts_after_the_mark: bool = True
    posts_only_on_a_seen_commit: bool = True
    keeps_the_send_window: bool = True
    sends_once: bool = True
    waits_for_quiescence: bool = True
    asks_again_when_stale: bool = True
    sweeps_only_what_it_holds: bool = True
    doubts_before_parking: bool = True
    spool_is_kept_until_saved: bool = True
    holds_what_it_doubts: bool = True


class Move(NamedTuple):
    """The world after it, what it took of the bounds, and what its judge must know beside the worlds before and after."""

    label: tuple[object, ...]
    """Words, told when there is a story; the number of a worker stands for its name."""
    world: World
    cost: str = ""
    saved: Saved | None = None
    posted: int | None = None
    swept: bool = False
    ended: int | None = None
    """The dispatch whose reply was saved for good by a worker that lived on."""
    named: int | None = None
    """The remote job that this reply, or the look that was saved, names."""

    def told(self, names: list[str]) -> str:
        """The label in words."""
        who, *rest = self.label
        return " ".join(str(word) for word in (names[who] if isinstance(who, int) else who, *rest))


def said(saved: Saved) -> str:
    """Whether it applied, in a word."""
    return "(applied)" if saved.applied else "(stale)"


def is_free(world: World, job: int) -> bool:
    """Whether a person may still name the job: it exists and no operation owns it."""
    attempt = world.attempts[job]
    return attempt.is_created and attempt.owner in (Owner.NOBODY, Owner.ORPHAN)
