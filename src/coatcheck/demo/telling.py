"""What is told while the demo runs, on stderr: a live display on a terminal, sparse lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from coatcheck.seams import Clock

_LINE_EVERY_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How far the operations have come, of `ordered` in all."""

    ordered: int
    operation_count: int
    dispatched_count: int
    uncertain_count: int
    ended_count: int
    delivered_count: int

    @property
    def is_done(self) -> bool:
        """Whether nothing is left that a worker would do; what is uncertain is left for a person."""
        return self.ended_count == self.operation_count


class Telling(Protocol):
    """Who tells it."""

    def say(self, text: str) -> None:
        """Something happened."""

    def show(self, counts: Counts) -> None:
        """This is how far it has come; may be called often."""


class Lines:
    """For logs and pipes: a line for each event, and now and then one with the counts."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._began = clock.boottime()
        self._told_at = 0.0

    def say(self, text: str) -> None:
        """One line, with the seconds since the beginning."""
        self._console.print(f"{self._clock.boottime() - self._began:5.1f} s  {text}", soft_wrap=True)

    def show(self, counts: Counts) -> None:
        """One line, unless there was one just now."""
        now = self._clock.boottime()
        if now - self._told_at < _LINE_EVERY_S:
            return
        self._told_at = now
        self.say(
            f"{counts.operation_count} enqueued, {counts.dispatched_count} dispatched, {counts.ended_count} ended, "
            f"{counts.delivered_count} outputs delivered, {counts.uncertain_count} uncertain"
        )


class Bars:
    """For people: three bars below the events."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._enqueued = progress.add_task("enqueued", total=None, note="")
        self._dispatched = progress.add_task("dispatched", total=None, note="")
        self._ended = progress.add_task("ended", total=None, note="")

    def say(self, text: str) -> None:
        """One line above the bars."""
        self._progress.console.print(f" • {text}")

    def show(self, counts: Counts) -> None:
        """Move the bars."""
        doubt = f"{counts.uncertain_count} uncertain" if counts.uncertain_count else ""
        outputs = f"{counts.delivered_count} outputs delivered" if counts.delivered_count else ""
        self._progress.update(self._enqueued, total=counts.ordered, completed=counts.operation_count, note="")
        self._progress.update(self._dispatched, total=counts.ordered, completed=counts.dispatched_count, note=doubt)
        self._progress.update(self._ended, total=counts.ordered, completed=counts.ended_count, note=outputs)


@contextmanager
def telling(console: Console, clock: Clock) -> Iterator[Telling]:
    """Whoever fits the console, for the length of the run."""
    if not console.is_terminal:
        yield Lines(console, clock)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress)
