"""How far the operations have come, as the store counts them, told now and then; and the end of all patience with them."""

from dataclasses import dataclass

from coatcheck.demo.telling import Counts, Telling
from coatcheck.errors import Failed
from coatcheck.seams import Clock
from coatcheck.store.db import Database
from coatcheck.store.statements import statement

_SHOW_EVERY_S = 0.15
_PATIENCE_S = 90.0
_PATIENCE_PER_ORDER_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Ends at an instant of the clock, in seconds since boot."""

    clock: Clock
    ends_at: float

    def check(self) -> None:
        """Raises `Failed` when it has ended."""
        if self.clock.boottime() > self.ends_at:
            raise Failed("expected the workers to become idle, got some that still work", next="read their logs")


@dataclass(slots=True, kw_only=True)
class Progress:
    """Of `ordered` operations in all: `await progress.show()`."""

    store: Database
    telling: Telling
    clock: Clock
    ordered: int
    _shown_at: float = 0.0

    def say(self, text: str) -> None:
        """Something happened."""
        self.telling.say(text)

    async def show(self, *, every_s: float = _SHOW_EVERY_S) -> None:
        """Tell how far it has come, at most every so many seconds."""
        now = self.clock.boottime()
        if now - self._shown_at >= every_s:
            self._shown_at = now
            self.telling.show(await self.counted())

    async def counted(self) -> Counts:
        """How far it has come now."""
        (row,) = await self.store.fetch(statement("demo", "progress"))
        return Counts(ordered=self.ordered, **row)

    def patience(self) -> Patience:
        """As much as so many operations deserve, from now on."""
        ends_at = self.clock.boottime() + _PATIENCE_S + _PATIENCE_PER_ORDER_S * self.ordered
        return Patience(clock=self.clock, ends_at=ends_at)
