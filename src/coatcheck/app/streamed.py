"""A list that may be longer than memory: `async for` streams it, `await` gathers it."""

from collections.abc import AsyncIterator, Callable, Generator
from typing import Any, Generic, TypeVar

Each = TypeVar("Each")


class Streamed(Generic[Each]):
    """What a call lists, read when it is asked for: `async for each in found` or `await found`."""

    def __init__(self, pages: Callable[[], AsyncIterator[Each]]) -> None:
        self._pages = pages

    def __aiter__(self) -> AsyncIterator[Each]:
        return self._pages()

    def __await__(self) -> Generator[Any, None, list[Each]]:
        return self._gathered().__await__()

    async def _gathered(self) -> list[Each]:
        return [each async for each in self._pages()]
