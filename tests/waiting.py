"""The one way in which a test lets time pass: look again and again until something holds, and fail at a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable

LOOK_EVERY_S = 0.01
DEADLINE_S = 20.0


def until(holds: Callable[[], object], *, deadline_s: float = DEADLINE_S) -> None:
    """Return as soon as `holds()` is true. Fails, naming the condition, after `deadline_s` seconds."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, f"did not hold within {deadline_s} s: {holds}"
        time.sleep(LOOK_EVERY_S)


async def until_async(holds: Callable[[], Awaitable[object] | object], *, deadline_s: float = DEADLINE_S) -> None:
    """The same beside a running event loop; `holds` may be a coroutine function."""
    end = time.monotonic() + deadline_s
    while True:
        answer = holds()
        if await answer if isinstance(answer, Awaitable) else answer:
            return
        assert time.monotonic() < end, f"did not hold within {deadline_s} s: {holds}"
        await asyncio.sleep(LOOK_EVERY_S)
