"""A secret leaves its wrapper only where somebody writes `reveal()`: no log, error, repr, copy to disk or JSON shows it by accident."""

from collections.abc import Callable
from typing import Any, NoReturn, Self, SupportsIndex, final

_MASK = "**********"


@final
class Secret:
    """Text that must not be shown, as `Secret("k-123").reveal()`."""

    __slots__ = ("_hidden",)

    def __init__(self, text: str) -> None:
        # A closure, so that a debugger's or a reporter's walk over attributes finds no text.
        self._hidden: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """The text itself: for the one header that carries it."""
        return self._hidden()

    def __repr__(self) -> str:
        return f"Secret({_MASK!r})"

    def __str__(self) -> str:
        return _MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.reveal() == other.reveal()

    def __hash__(self) -> int:
        return hash((Secret, self.reveal()))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a secret is not written to disk or sent to another process")
