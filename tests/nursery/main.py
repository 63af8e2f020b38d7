"""A process that has imported everything and forks one child for each wish: a child begins in milliseconds, with nothing of another's.

It opens nothing before it forks: no connection, no loop, no thread. Each child has a line of its own to whoever asked for it: signals come in
by it, and what became of the child goes out. It ends a child whose line is closed, and all of them when whoever it works for is gone; and it
is the one that signals them, so that no signal ever goes to a number that was given away again.

A child leaves these frames and ends as every program ends, by its interpreter's exit: its threads are waited for, what was to be done at the
exit is done, and its streams are written out. Only then it goes at once, instead of taking apart what is loaded, which lasts longer than a command.
"""

import atexit
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LIMIT_BYTES = 1 << 18
STREAMS = (0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a child is to be. `course` is the name of a module with a `run` that takes the arguments."""

    course: str
    arguments: list[str]
    env: dict[str, str]
    folder: str | None


class Nursery:
    """Serves one socket, by which children are asked for, and one for each child that lives."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._lines: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)
        self._selector = selectors.DefaultSelector()

    def serve(self) -> Wish | None:
        """Until the other end is gone: None. In each child it returns at once, with what the child is to be."""
        # who interrupts the tests from a terminal reaches this process, too, and it ends with them anyhow
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        for heard, act in ((self._asked, self._bear), (self._woken, self._tell)):
            self._selector.register(heard, selectors.EVENT_READ, act)
        try:
            while True:
                for key, _ in self._selector.select():
                    wish = key.data()
                    if wish is not None:
                        return self._born(wish)
        except EOFError:
            self._end()
            return None

    def _bear(self) -> Wish | None:
        """Fork one child. Raises `EOFError` when nobody asks any more."""
        packet, descriptors, _, _ = socket.recv_fds(self._asked, LIMIT_BYTES, len(STREAMS) + 1)
        if not packet:
            raise EOFError
        *streams, own = descriptors
        pid = os.fork()
        if pid == 0:
            for number, stream in zip(STREAMS, streams, strict=True):
                os.dup2(stream, number)
        for each in streams:
            os.close(each)
        line = socket.socket(fileno=own)
        if pid == 0:
            line.close()
            return Wish(**json.loads(packet))
        self._lines[pid] = line
        self._selector.register(line, selectors.EVENT_READ, lambda: self._signal(pid))
        _say(line, {"born": pid})
        return None

    def _signal(self, pid: int) -> None:
        """Signal a child as its line says; kill it, if nobody is there any more."""
        try:
            packet = self._lines[pid].recv(LIMIT_BYTES)
        except ConnectionError:
            packet = b""
        if not packet:
            self._selector.unregister(self._lines[pid])
        os.kill(pid, json.loads(packet)["signal"] if packet else signal.SIGKILL)

    def _tell(self) -> None:
        """What became of children: their ends, and that they stand still or go on."""
        with suppress(BlockingIOError):
            self._woken.recv(LIMIT_BYTES)
        while self._lines:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid == 0:
                return
            _say(self._lines[pid], {"status": status})
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                line = self._lines.pop(pid)
                with suppress(KeyError):
                    self._selector.unregister(line)
                line.close()

    def _end(self) -> None:
        for pid in self._lines:
            os.kill(pid, signal.SIGKILL)
        for pid in self._lines:
            os.waitpid(pid, 0)

    def _born(self, wish: Wish) -> Wish:
        """In a child: leave what belongs to the nursery alone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for mine in (self._asked, self._woken, self._wakes, *self._lines.values()):
            mine.close()
        return wish


def _say(line: socket.socket, told: dict[str, int]) -> None:
    """Tell it, if there is still somebody to hear it."""
    with suppress(ConnectionError):
        line.send(json.dumps(told).encode())


class Leaving:
    """The end of a child. `code` is its exit code, or None where the interpreter says more than a code: by a signal, or with a traceback."""

    code: int | None = None

    def __call__(self) -> None:
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(self.code)


def main(number: str, *names: str) -> None:
    """Serve the socket of this number with these courses."""
    leaving = Leaving()
    # what is said first is done last, so before all that the courses say
    atexit.register(leaving)
    courses: dict[str, Any] = {name: importlib.import_module(name) for name in names}
    gc.collect()
    gc.freeze()
    wish = Nursery(socket.socket(fileno=int(number))).serve()
    if wish is None:
        return
    os.environ.clear()
    os.environ.update(wish.env)
    time.tzset()
    if wish.folder is not None:
        os.chdir(wish.folder)
    try:
        courses[wish.course].run(wish.arguments)
        leaving.code = 0
    except SystemExit as end:
        leaving.code = end.code if isinstance(end.code, int) else None
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
