"""Several worker processes of one command: a parent that works on nothing itself starts them, passes on what it is told, starts anew who died.

However the parent ends, its processes drain and end, too (`lifeline`). They are in its process group, so an interrupt from a terminal, or
its end, reaches all of them: they take no notice of it, and the parent alone counts and passes on. It opens no connection.
"""

import asyncio
import logging
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.cli.child import Child
from coatcheck.cli.ends import INTERRUPTED
from coatcheck.cli.lifeline import Order
from coatcheck.cli.output import say
from coatcheck.cli.restarts import ENDS, WITHIN_S, Restarts
from coatcheck.cli.signals import deafen, heed, heeded
from coatcheck.errors import CoatcheckError, Failed, Refused, Unavailable
from coatcheck.seams import Seams

logger = logging.getLogger(__name__)

_GRAVITY = (0, INTERRUPTED, Unavailable.exit_code, Failed.exit_code, Refused.exit_code)
"""Exit codes, the worst one last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How one of the processes ended for good."""

    number: int
    code: int
    is_given_up: bool = False

    @property
    def exit_code(self) -> int:
        """As a command's: a process that was killed failed, and so did one that would not stay, however well it ended."""
        is_good = self.code in (0, INTERRUPTED)
        return self.code if self.code in _GRAVITY and not (is_good and self.is_given_up) else Failed.exit_code

    @property
    def words(self) -> str:
        """For people."""
        again = (
            f" {ENDS} times within {WITHIN_S:g} s" if self.is_given_up and self.exit_code == Failed.exit_code else ""
        )
        return f"process {self.number} ended{again} with {told(self.code)}"


class Processes:
    """`code = await Processes(commands, until_idle=False, seams=seams).run()`: one process for each command, numbered from 1.

    A process that ended is started anew, unless it was told to end or, with `until_idle`, has nothing left to do.
    """

    def __init__(self, commands: Sequence[Sequence[str]], *, until_idle: bool, seams: Seams) -> None:
        self._commands = commands
        self._until_idle = until_idle
        self._seams = seams
        self._living: dict[int, Child] = {}
        self._ending = asyncio.Event()
        self._interrupt_count = 0

    async def run(self) -> int:
        """Until all have ended; 0 or 130. Raises what the worst of their exit codes stands for."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._see)
        heed(heeded(), self.drain)
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        kept = (self._kept(number, command) for number, command in enumerate(self._commands, 1))
        try:
            ends = await asyncio.gather(*kept)
        finally:
            deafen()
        return INTERRUPTED if self._interrupt_count > 1 else _concluded(ends)

    def drain(self) -> None:
        """Nothing more is leased, POSTs under way are finished, and nobody is started anew. May be called again."""
        self._ending.set()
        self._give(Order.DRAIN)
        say("draining: dispatches that have begun are finished, the rest is given back")

    def _interrupted(self) -> None:
        self._interrupt_count += 1
        if self._interrupt_count == 1:
            self.drain()
        elif self._interrupt_count == 2:  # noqa: PLR2004 - the second interrupt
            self._give(Order.STOP)
            say("stopping at once")
        else:
            # whoever interrupts once more wants the processes gone, whatever they still wait for
            for child in self._living.values():
                child.kill()

    def _give(self, order: Order) -> None:
        for child in self._living.values():
            child.give(order)

    def _see(self) -> None:
        """Some process ended."""
        for child in list(self._living.values()):
            child.see()

    async def _kept(self, number: int, command: Sequence[str]) -> _End:
        """Keep one process at work until it is to end or cannot be kept."""
        restarts = Restarts()
        while not self._ending.is_set():
            code = await self._lived(number, command)
            if self._ending.is_set() or (self._until_idle and code == 0):
                return _End(number=number, code=code)
            delay_s = restarts.after(code, self._seams.clock.boottime())
            if delay_s is None:
                return self._given_up(number, code)
            logger.warning("process starts anew", extra={"process_number": number, "in_s": delay_s})
            await self._rest(delay_s)
        # it was about to start anew when all were told to end, so nobody is left who could end badly
        return _End(number=number, code=0)

    async def _lived(self, number: int, command: Sequence[str]) -> int:
        """The whole life of a process; its exit code, negative for a signal."""
        try:
            child = Child(command, self._seams)
        except OSError as error:
            logger.error("process not started", extra={"process_number": number, "cause": error.strerror})  # noqa: TRY400 - the cause is all there is to tell
            return Failed.exit_code
        logger.info("process started", extra={"process_number": number, "pid": child.pid})
        self._living[number] = child
        code = await child.end()
        del self._living[number]
        level = logging.INFO if code == 0 else logging.ERROR
        logger.log(level, "process ended", extra={"process_number": number, "pid": child.pid, "how": told(code)})
        return code

    def _given_up(self, number: int, code: int) -> _End:
        """A process that ends again and again, or is refused: the others drain, and whoever supervises the command hears of it."""
        end = _End(number=number, code=code, is_given_up=True)
        logger.critical("process given up", extra={"process_number": number, "how": end.words})
        self.drain()
        return end

    async def _rest(self, seconds: float) -> None:
        """Wait, or less if all are told to end meanwhile."""
        waits = [asyncio.ensure_future(self._seams.sleep(seconds)), asyncio.ensure_future(self._ending.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()


def told(code: int) -> str:
    """An exit code in words, as `exit code 1` or `SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _concluded(ends: Sequence[_End]) -> int:
    worst = max(ends, key=lambda end: _GRAVITY.index(end.exit_code))
    if worst.exit_code in (0, INTERRUPTED):
        return worst.exit_code
    kinds: dict[int, type[CoatcheckError]] = {kind.exit_code: kind for kind in (Refused, Unavailable)}
    words = "; ".join(end.words for end in ends if end.exit_code not in (0, INTERRUPTED))
    raise kinds.get(worst.exit_code, Failed)(words, next="what they said themselves stands above")
