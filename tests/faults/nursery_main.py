"""A process that has imported everything and forks one child for each trial: a child begins in milliseconds, with nothing of another's.

It opens nothing before it forks: no connection, no loop, no thread. It ends its children when whoever it works for is gone, and is the one
that signals them, so that no signal ever goes to a number that was given away again.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any

COURSES = {
    name: importlib.import_module(f"faults.{name}_main") for name in ("worker", "application", "customer", "operator")
}
"""What a child can be; each module has a `run` that takes its arguments."""
LIMIT_BYTES = 1 << 16


class Nursery:
    """Serves one socket: a child is asked for or signalled by one packet, and what became of children is told by others."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._children: set[int] = set()
        self._woken, self._wakes = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)

    def serve(self) -> None:
        """Until the other end is gone."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno())
        with selectors.DefaultSelector() as selector:
            selector.register(self._line, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while self._heard({key.fileobj for key, _ in selector.select()}):
                pass
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _heard(self, ready: set[Any]) -> bool:
        if self._woken in ready:
            with suppress(BlockingIOError):
                self._woken.recv(LIMIT_BYTES)
            self._tell()
        if self._line in ready:
            packet = self._line.recv(LIMIT_BYTES)
            if not packet:
                return False
            self._obey(json.loads(packet))
        return True

    def _obey(self, wish: dict[str, Any]) -> None:
        if "signal" in wish:
            if wish["pid"] in self._children:
                os.kill(wish["pid"], wish["signal"])
            return
        pid = os.fork()
        if pid == 0:
            self._be(wish)
        self._children.add(pid)
        self._line.send(json.dumps({"born": pid}).encode())

    def _tell(self) -> None:
        """What became of children: their ends, and that they stand still or go on."""
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid == 0:
                return
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self._children.discard(pid)
            self._line.send(json.dumps({"pid": pid, "status": status}).encode())

    def _be(self, wish: dict[str, Any]) -> None:
        """The child's whole life. It never returns into the nursery."""
        code = 1
        try:
            self._forget()
            for descriptor, path in ((1, wish["out"]), (2, wish["err"])):
                opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(opened, descriptor)
                os.close(opened)
            os.environ.clear()
            os.environ.update(wish["env"])
            COURSES[wish["course"]].run(wish["arguments"])
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:  # noqa: BLE001 - whatever it is, it may not get back into the nursery
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _forget(self) -> None:
        """Leave what belongs to the nursery alone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for mine in (self._line, self._woken, self._wakes):
            mine.close()
        os.closerange(3, 1024)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    Nursery(socket.socket(fileno=int(sys.argv[1]))).serve()
