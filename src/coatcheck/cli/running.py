"""One worker process from its readiness to its end: it says `ready` with its name once it leases, and its exit code says how it ended."""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace

from coatcheck.app.health import health
from coatcheck.app.workplace import worker_of
from coatcheck.cli.course import Course
from coatcheck.cli.ends import INTERRUPTED
from coatcheck.cli.lifeline import Order
from coatcheck.cli.obeying import Parent, obey_signals
from coatcheck.cli.output import say
from coatcheck.cli.signals import deafen
from coatcheck.config import Settings
from coatcheck.seams import Ids, Seams

logger = logging.getLogger(__name__)


class _Numbered(Ids):
    """The name of one among several ends with its number, so that logs, measures and dispatches tell whose they are."""

    def __init__(self, number: int) -> None:
        self._number = number

    def incarnation(self) -> str:
        """As of a worker alone, and the number."""
        return f"{super().incarnation()}.{self._number}"


async def run(settings: Settings, url: str, seams: Seams, course: Course) -> int:
    """Work until told to end, or until idle: 0, or 130 when stopped at once. Raises what `worker_of` and `health` raise."""
    parent = None if course.number is None else Parent()
    try:
        return await _worked(settings, url, seams, course, parent)
    except asyncio.CancelledError:
        if parent is None or parent.early is None:
            raise
        return INTERRUPTED if parent.early is Order.STOP else 0
    finally:
        deafen()


async def _worked(settings: Settings, url: str, seams: Seams, course: Course, parent: Parent | None) -> int:
    async with AsyncExitStack() as stack:
        seams = seams if course.number is None else replace(seams, ids=_Numbered(course.number))
        workplace = worker_of(settings, url, seams=seams, roles=course.roles)
        running, incarnation = await stack.enter_async_context(workplace)
        if course.health_port is not None:
            asked = health(running, incarnation, url, host=course.health_host, port=course.health_port, seams=seams)
            port = await stack.enter_async_context(asked)
            logger.info("health", extra={"host": course.health_host, "port": port})
        working = asyncio.ensure_future(running.run(until_idle=course.until_idle))
        if parent is None:
            obey_signals(running)
        else:
            parent.directs(running)
        say(f"ready {incarnation}")
        await asyncio.wait([working])
        if not working.cancelled():
            working.result()
    return INTERRUPTED if running.is_stopped else 0
