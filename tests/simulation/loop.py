"""An event loop on virtual time: it never waits, it jumps to the next timer. One thread, one order, whatever the machine does meanwhile.

Timers of one instant run in the order in which they were set. When nothing can happen any more the loop says so and does not wait.
"""

import asyncio
import contextvars
import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar, TypeVarTuple

from simulation.process import PROCESS, STRIKES, Process, Runnable, State

Callback = Callable[..., object]
Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
BEGINS_AT_S = 1_000.0
_LAST_STEPS = 1_000_000
_HELD = (State.STOPPED, State.DEAD)


class EndedError(BaseException):
    """The run went beyond a bound, or nothing can happen in it any more. Not an Exception: no handler under test may swallow it."""


class Network(Protocol):
    """What the loop asks for connections."""

    async def resolve(self, host: str, port: int) -> list[tuple[Any, ...]]:
        """As `getaddrinfo` answers."""

    async def connect(self, made: Any, address: tuple[str, int]) -> None:
        """As `sock_connect` does."""

    async def transport(self, factory: Callable[[], asyncio.BaseProtocol], made: Any) -> tuple[Any, Any]:
        """As `create_connection` over a connected socket."""

    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> asyncio.AbstractServer:
        """As `create_server`."""

    def watch(self, descriptor: int, wake: Callable[[], None], *, sending: bool) -> None:
        """As `add_reader` and `add_writer`."""

    def unwatch(self, descriptor: int, *, sending: bool) -> bool:
        """As `remove_reader` and `remove_writer`."""


class _Turn(asyncio.TimerHandle):
    """A callback with the process that it belongs to, and its instant if it has one.

    Nearly all that a run does is begun by one of these, so it is made without the steps that asyncio takes for its own debugging.
    """

    __slots__ = ("process",)
    _callback: Callback | None
    _context: contextvars.Context
    _loop: "VirtualLoop"

    def __init__(
        self,
        callback: Callback,
        args: tuple[Any, ...],
        loop: "VirtualLoop",
        context: contextvars.Context | None,
        when: float = 0.0,
    ) -> None:
        if context is None:
            context = contextvars.copy_context()
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._when = when
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None
        self.process: Process | None = context.get(PROCESS)

    def cancel(self) -> None:
        """It is passed over when its turn comes."""
        self._cancelled = True
        self._callback, self._args = None, ()

    def go(self) -> None:
        """Run it, or keep it for when its process goes on; of a dead one it waits for the end of the story."""
        if self._callback is None:
            return
        process = self.process
        if process is not None and process.state in _HELD:
            process.held.append(self)
            return
        try:
            self._context.run(self._callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as any loop does: it is told, and the next callback is run
            self._loop.call_exception_handler({"message": f"in {self._callback!r}", "exception": error})


class _Task(asyncio.Task[Any]):
    """A task whose place in a set is its number, so that sets of tasks have the same order in every run."""

    def __init__(self, number: int, work: Coroutine[Any, Any, Any], **options: Any) -> None:
        self.number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs until `limit_s` of virtual time or `limit_steps` callbacks, then raises `EndedError`.

    `network` answers for connections. `disk` is asked before what would run on a thread: it may raise an OSError in its place, and says
    after how many seconds the answer is there.
    """

    _ready: deque[Runnable]
    _stopping: bool

    def __init__(self, *, limit_s: float = 10_000.0, limit_steps: int = 10_000_000) -> None:
        super().__init__()
        self.network: Network | None = None
        self.disk: Callable[[Callable[..., object]], float] = lambda _: 0.0
        self.steps = 0
        self.surprises: list[str] = []
        self._now = BEGINS_AT_S
        self._ends_at = BEGINS_AT_S + limit_s
        self._limit_steps = limit_steps
        self._timers: list[tuple[float, int, _Turn]] = []
        self._order = itertools.count()
        self._tasks = itertools.count(1)
        self._failure: EndedError | None = None
        self.set_task_factory(self._numbered)
        self.set_exception_handler(self._surprised)

    # -- time and turns -----------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        turn = _Turn(callback, args, self, context)
        self._ready.append(turn)
        return turn

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        when = self._now + delay
        return self._timer(when, _Turn(callback, args, self, context, when))

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._timer(when, _Turn(callback, args, self, context, when))

    def _timer(self, when: float, timer: _Turn) -> _Turn:
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def _run_once(self) -> None:
        """One callback. Between two of them nothing is half done, so another round may begin inside of one."""
        if self._failure is not None:
            raise self._failure
        timers, ready = self._timers, self._ready
        while timers and (not ready or timers[0][0] <= self._now):
            when, _, timer = heapq.heappop(timers)
            if timer._callback is not None:
                self._now = max(self._now, when)
                ready.append(timer)
        if not ready:
            self._fail("deadlock: nobody is ready and no timer is set")
        if self._now > self._ends_at:
            self._fail("the run took too much virtual time")
        self.steps += 1
        if self.steps > self._limit_steps:
            self._fail("the run took too many steps")
        ready.popleft().go()

    def _fail(self, what: str) -> None:
        self._failure = EndedError(what)
        raise self._failure

    def pass_time(self, process: Process, seconds: float) -> None:
        """In the middle of a step of `process`: it is stopped for `seconds`, while everybody else goes on."""
        over: list[None] = []
        process.state = State.STOPPED
        self.call_later(seconds, over.append, None, context=contextvars.Context())
        task = asyncio.current_task(self)
        if task is not None:
            asyncio.tasks._leave_task(self, task)
        try:
            while not (over or process.is_gone or self._stopping):
                self._run_once()
        finally:
            if task is not None:
                asyncio.tasks._enter_task(self, task)
            self.go_on(process)

    def go_on(self, process: Process) -> None:
        """A stopped process goes on: what waited for it comes in its order."""
        if process.state is State.STOPPED:
            self._release(process, State.ALIVE)

    def _release(self, process: Process, state: State) -> None:
        process.state = state
        self._ready.extend(process.held)
        process.held = []

    def end(self, processes: Iterable[Process]) -> None:
        """After the story: everybody ends as a ghost, which changes nothing, so that no coroutine is left half-way. Then the loop is closed."""
        self._failure, self._ends_at, self._limit_steps = None, math.inf, self.steps + _LAST_STEPS
        for process in processes:
            process.kill()
            self._release(process, State.GHOST)
        while left := sorted(asyncio.all_tasks(self), key=hash):
            for task in left:
                task.cancel()
            self.run_until_complete(asyncio.wait(left, timeout=60.0))
        self.run_until_complete(self.shutdown_asyncgens())
        self.close()

    # -- tasks, futures and threads --------------------------------------------------------------------------------------------

    def _numbered(self, _: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        return _Task(next(self._tasks), work, loop=self, **options)

    def _surprised(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody waited for. Of the dead nothing is said, nor of a strike itself, whose task may be forgotten at any time."""
        error = context.get("exception")
        process = PROCESS.get()
        if not isinstance(error, STRIKES) and not (process is not None and process.is_gone):
            self.surprises.append(f"{context.get('message')}: {error!r}")

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], Answer], *args: *Arguments
    ) -> asyncio.Future[Answer]:
        """At once and whole, its answer a little later: a thread that a kill meets has done its work or has not begun."""
        answer: asyncio.Future[Answer] = self.create_future()
        settle: Callable[[Any], None] = answer.set_result
        delay_s = 0.0
        said: Answer | None = None
        failure: Exception | None = None
        try:
            delay_s = self.disk(func)
            said = func(*args)
        except Exception as error:  # noqa: BLE001 - whatever a thread raises is its caller's
            settle, failure = answer.set_exception, error
        told = said if failure is None else failure
        self.call_later(delay_s, lambda: None if answer.done() else settle(told))
        return answer

    # -- connections --------------------------------------------------------------------------------------------------

    @property
    def _net(self) -> Network:
        if self.network is None:
            raise OSError("this loop has no network")
        return self.network

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        return await self._net.resolve(str(host), int(port))

    async def sock_connect(self, sock: Any, address: Any) -> None:
        await self._net.connect(sock, address)

    async def create_connection(self, protocol_factory: Any, *_: Any, sock: Any = None, **__: Any) -> Any:
        return await self._net.transport(protocol_factory, sock)

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self._net.listen(protocol_factory, str(host), int(port))

    def add_reader(self, fd: Any, callback: Callable[[*Arguments], Any], *args: *Arguments) -> None:
        self._net.watch(fd, self._waking(callback, args), sending=False)

    def add_writer(self, fd: Any, callback: Callable[[*Arguments], Any], *args: *Arguments) -> None:
        self._net.watch(fd, self._waking(callback, args), sending=True)

    def remove_reader(self, fd: Any) -> bool:
        return self._net.unwatch(fd, sending=False)

    def remove_writer(self, fd: Any) -> bool:
        return self._net.unwatch(fd, sending=True)

    def _waking(self, callback: Callback, args: tuple[Any, ...]) -> Callable[[], None]:
        context = contextvars.copy_context()
        return lambda: void(self.call_soon(callback, *args, context=context))


async def passing(seconds: float) -> None:
    """Let so much of the running loop's time pass: it moves a clock and waits for nobody."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _settle, over)
    try:
        await over
    finally:
        timer.cancel()


def _settle(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)


def void(_: object) -> None:
    """For a callback whose answer is nobody's."""
