"""Split brain: the standby was promoted, and one worker still reaches the old primary, which lives on without it.

No mark of that worker is ever confirmed, so it sends nothing, however its waiting ends. Where nobody waits for a confirmation it sends what
the new primary sends, too, and the checker sees that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postgres
from coatcheck.seams import Point
from coatcheck.sim import ThreadedService
from failover.pair import Cold, Pair, paired
from faults.away import WAITS
from faults.checker import findings
from faults.child import KILLED
from faults.stage import Stage
from faults.strike import Deed, Strike
from figures import Report
from waiting import until

MARKING = "coatcheck marks"
"""The connection by which a worker marks."""
SAFE = {"COATCHECK_PROMOTION_IS_SAFE": "true"}
ENDS = ("pg_cancel_backend", "pg_terminate_backend", "the old primary dies", "nobody ends it")
"""How the waiting for a confirmation ends."""


class Divided:
    """Two primaries, and a worker of the old one that stands still between its claim and its mark."""

    def __init__(self, pair: Pair, stage: Stage) -> None:
        self.pair = pair
        self.stage = stage
        self.old = psycopg.connect(pair.primary.url(), autocommit=True)
        (self.operation_id,) = stage.enqueue()
        self.cut_off = stage.worker(Strike(point=Point.D3_CHECKED, deed=Deed.STOP), until_idle=False, **SAFE)
        self.cut_off.stopped()
        until(self._is_leased_at_the_standby)
        pair.standby_is_promoted()
        stage.database.url = stage.url = pair.standby.url()
        stage.reconnect()

    def _is_leased_at_the_standby(self) -> bool:
        with psycopg.connect(self.pair.standby.url()) as connection:
            return connection.execute("select from coatcheck.outbox where leased_by is not null").fetchall() != []

    def waiting(self) -> list[Any]:
        """The session that waits with a mark, or with a look for one."""
        return self.old.execute(("select pid, query_start" + WAITS).encode(), [MARKING]).fetchall()

    def _waits_anew(self, found: Any) -> bool:
        return self.waiting() not in ([], [found])

    def is_waited_for_no_longer(self, end: str) -> None:
        """The worker's waiting ends. Then it looks for its mark, and that waits for a confirmation as well: it ends in the same way."""
        for _ in range(2):
            until(self.waiting)
            (found,) = self.waiting()
            match end:
                case "nobody ends it":
                    pass
                case "the old primary dies":
                    self.pair.primary_dies()
                    return
                case _:
                    self.old.execute(f"select {end}(%s)".encode(), [found[0]])
                    until(partial(self._waits_anew, found))

    def both_sides_have_done_what_they_do(self) -> None:
        """The new primary's worker ends all there is; the one that was cut off is told to end at once."""
        self.stage.finish(**SAFE)
        assert self.cut_off.running
        self.cut_off.kill()
        assert self.cut_off.ended() == KILLED


@contextmanager
def divided(cold: Cold, sim: ThreadedService, folder: Path, *, synchronous: bool) -> Iterator[Divided]:
    with paired(cold, folder, synchronous=synchronous) as pair:
        database = postgres.Database(name="own", url=pair.primary.url(), server=pair.primary)
        with Stage(database, sim, folder) as stage:
            made = Divided(pair, stage)
            stage.callback(made.old.close)
            yield made


@pytest.mark.timeout(240)
def test_whoever_is_left_with_the_old_primary_sends_nothing(
    cold: Cold, sim: ThreadedService, folder: Path, split: int, figures: Report
) -> None:
    with divided(cold, sim, folder, synchronous=True) as parts:
        parts.cut_off.go_on()
        parts.is_waited_for_no_longer(ENDS[split % len(ENDS)])
        assert sim.posts == ()
        parts.both_sides_have_done_what_they_do()
        parts.stage.check()
        assert parts.stage.posts(parts.operation_id) == 1
        figures("split brains", 1)


@pytest.mark.timeout(240)
def test_where_no_confirmation_is_waited_for_both_sides_send_and_the_checker_sees_it(
    cold: Cold, sim: ThreadedService, folder: Path, careless: int, figures: Report
) -> None:
    with divided(cold, sim, folder, synchronous=False) as parts:
        parts.cut_off.go_on()
        until(lambda: len(sim.posts) == 1)
        parts.both_sides_have_done_what_they_do()
        assert parts.stage.posts(parts.operation_id) == 2
        assert any("duplicated: 2 POSTs by 1 dispatches" in each for each in findings(parts.stage.record()))
        figures("careless split brains seen", 1)
