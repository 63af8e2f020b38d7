"""Children of the nursery are as clean as programs of their own: nothing of another's is open in them, and none is left behind."""

import os
from contextlib import suppress
from pathlib import Path

from coatcheck.seams import Point
from faults.arena import Arena
from faults.child import KILLED
from faults.nursery import Forked, nursery_of
from faults.strike import Deed, Strike

ITS_OWN = {"log", "connection"}


def asleep(arena: Arena) -> Forked:
    """A customer that stands still with its log and its one connection open."""
    child = arena.customer(arena.orders(1), Strike(point=Point.E1_BEFORE_BEGIN, deed=Deed.STOP))
    assert isinstance(child, Forked)
    child.stopped()
    return child


def open_in(pid: int) -> dict[int, str]:
    found = {}
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself, while it is read
            found[int(path.name)] = os.fspath(path.readlink())
    return found


def test_a_child_has_nothing_open_but_its_own(arena: Arena) -> None:
    first, second = asleep(arena), asleep(arena)
    theirs = open_in(os.getpid()).values()
    for child in (first, second):
        found = {number: what for number, what in open_in(child.pid).items() if number > 2}
        assert str(arena.log) in found.values()
        assert len(found) == len(ITS_OWN), found
        assert not {what for what in found.values() if what.startswith("socket:")} & set(theirs)
    sockets = [{what for what in open_in(each.pid).values() if what.startswith("socket:")} for each in (first, second)]
    assert not sockets[0] & sockets[1]


def test_a_signal_reaches_its_child_and_the_end_is_told(arena: Arena) -> None:
    child = asleep(arena)
    child.kill()
    assert child.ended() == KILLED
    assert not child.stands_still
    # nobody else is hit by a signal for a child that is gone
    child.terminate()
    assert asleep(arena).running


def test_no_child_outlives_its_nursery(arena: Arena) -> None:
    with nursery_of() as arena.nursery:
        sleeper, worker = asleep(arena), arena.worker(until_idle=False)
        worker.says("ready")
        assert isinstance(worker, Forked)
        assert worker.running
    assert not any(Path(f"/proc/{each.pid}").exists() for each in (sleeper, worker))
    assert worker.ended() == KILLED
