"""Names of services for requests that may be repeated: however many need an address at once, the resolver is asked once, in one thread.

The resolver's threads are few, and the POST's own question goes through them, too. The POST never takes an answer from here.
"""

import asyncio
from typing import Final

from coatcheck.seams import Addresses, Clock, Connect, is_address

REMEMBERED_S: Final = 10.0
"""Seconds for which an answer is used again."""

Name = tuple[str, int]


class Names:
    """What names stand for. `resolve` one, say what was `reached` under it, and `close` in the end."""

    def __init__(self, clock: Clock, connect: Connect) -> None:
        self._clock = clock
        self._connect = connect
        self._questions: dict[Name, asyncio.Task[Addresses]] = {}
        self._answers: dict[Name, tuple[float, Addresses]] = {}
        self._reached: dict[Name, tuple[str, int]] = {}
        self._is_over = False

    async def resolve(self, host: str, port: int) -> Addresses:
        """The addresses of `host`, the one that was reached last first, then in the resolver's order. Raises OSError and UnicodeError as it does.

        Whoever gives up waiting does not end the question for others. A failure is told to all who wait for it and not kept.
        """
        if self._is_over or is_address(host):
            return await self._connect.resolve(host, port)
        answered_at, found = self._answers.get((host, port), (0.0, None))
        if found is None or self._clock.boottime() - answered_at > REMEMBERED_S:
            found = await self._answer(host, port)
        last = self._reached.get((host, port))
        return sorted(found, key=lambda each: each[1] != last)

    def reached(self, host: str, port: int, address: tuple[str, int]) -> None:
        """A connection came about with this address: it is tried first from now on, so that a silent one before it is waited for once."""
        self._reached[host, port] = address

    async def close(self) -> None:
        """End all questions; who still waits asks for himself."""
        self._is_over = True
        left = list(self._questions.values())
        for question in left:
            question.cancel()
        if left:
            await asyncio.wait(left)

    async def _answer(self, host: str, port: int) -> Addresses:
        question = self._questions.get((host, port))
        if question is None:
            question = asyncio.create_task(self._connect.resolve(host, port))
            self._questions[host, port] = question
            question.add_done_callback(lambda ended: self._ended((host, port), ended))
        # it goes on when this wait is cancelled, as under a shield, which newer Pythons let report a failure that nobody waits for any more
        await asyncio.wait([question])
        return await self._connect.resolve(host, port) if question.cancelled() else question.result()

    def _ended(self, name: Name, question: asyncio.Task[Addresses]) -> None:
        del self._questions[name]
        # also asked for where nobody waits any more: else the loop reports it
        if not question.cancelled() and question.exception() is None:
            self._answers[name] = (self._clock.boottime(), question.result())
