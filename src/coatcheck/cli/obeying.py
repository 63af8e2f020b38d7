"""How a running worker is told to end: by signals, or as one of several by its parent. To drain is asked once or often; to stop is asked on purpose."""

import asyncio
import logging
import signal
import sys
from functools import partial

from coatcheck.cli.lifeline import Order, heard
from coatcheck.cli.output import say
from coatcheck.cli.signals import ORDERS, heed, heeded
from coatcheck.workers.loop import Worker

logger = logging.getLogger(__name__)


def obey_signals(running: Worker) -> None:
    """SIGTERM, the end of its terminal and the first interrupt drain it, the second interrupt stops it."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        running.stop()
        say("stopping at once")
        # whoever interrupts once more wants the process gone, whatever it still waits for
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def drain() -> None:
        running.drain()
        say("draining: dispatches that have begun are finished, the rest is given back")

    def interrupt() -> None:
        drain()
        loop.add_signal_handler(signal.SIGINT, stop)

    heed(heeded(), drain)
    loop.add_signal_handler(signal.SIGINT, interrupt)


class Parent:
    """What a parent asks of this process, heard from the first moment on; that it is gone counts as a wish to drain.

    Before there is a worker nothing is leased, so an order ends the course at once: `early` is that order. An interrupt and a hangup
    are the parent's to count and to pass on, as a terminal sends them to all. Make it inside the task whose course it may end.
    """

    def __init__(self) -> None:
        self.early: Order | None = None
        self._course = asyncio.current_task()
        self._running: Worker | None = None
        self._loop = asyncio.get_running_loop()
        self._lifeline = sys.stdin.fileno()
        self._loop.add_reader(self._lifeline, self._hear)
        heed([signal.SIGTERM], partial(self._obey, Order.DRAIN))
        for each in (signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ORDERS)

    def directs(self, running: Worker) -> None:
        """From now on there is a worker. What was asked for before, it is asked for."""
        self._running = running
        if self.early is not None:
            self._obey(self.early)

    def _hear(self) -> None:
        order = heard(self._lifeline)
        if order is None:
            self._loop.remove_reader(self._lifeline)
            logger.warning("the parent is gone")
        self._obey(order or Order.DRAIN)

    def _obey(self, order: Order) -> None:
        if self._running is None:
            if self.early is None and self._course is not None:
                self._course.cancel()
            # to stop is more than to drain, which the end of the pipe may ask for right behind it
            self.early = self.early if self.early is Order.STOP else order
        elif order is Order.STOP:
            self._running.stop()
        else:
            self._running.drain()
        logger.info("told to end", extra={"order": order.name.lower()})
