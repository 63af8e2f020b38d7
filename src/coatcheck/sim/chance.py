"""Chance from a seed: every draw is a pure function of the seed and the names it is drawn for.

There is no hidden generator state, so a draw depends on what it is for and never on what was drawn before it: two requests that
swap their order swap nothing else.
"""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Named draws. `Chance(seed=7).draw("mix", "create", 3)` is the same number in every process."""

    seed: int

    def block(self, *names: str | int, size_bytes: int) -> bytes:
        """`size_bytes` pseudo-random bytes."""
        label = "\x1f".join((str(self.seed), *map(str, names)))
        return hashlib.shake_256(label.encode("utf-8", "surrogatepass")).digest(size_bytes)

    def draw(self, *names: str | int) -> float:
        """A number in [0, 1)."""
        return int.from_bytes(self.block(*names, size_bytes=6)) / 2**48

    def between(self, low: float, high: float, *names: str | int) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self.draw(*names)

    def word(self, *names: str | int, size: int = 24) -> str:
        """`size` lower-case hex digits."""
        return self.block(*names, size_bytes=(size + 1) // 2).hex()[:size]
