"""The workers: real `coatcheck worker` processes with settings in their environment, each known by the incarnation that it announces.

None outlives the crew: whatever happens, the end of the block ends them all.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coatcheck.config.names import provider_variable
from coatcheck.demo.orders import PROVIDER
from coatcheck.demo.premises import Premises
from coatcheck.errors import Failed
from coatcheck.seams import Seams

WORKER = (sys.executable, "-P", "-m", "coatcheck", "worker", "--until-idle")
WINDOWS = {
    # Short windows, so that the end of a dead worker's lease is seen within a demo. Leases are computed from them, but for the lag: it is
    # about as long as the renders take, so that whoever proves the last POST absent is told once that it is too early for that.
    "SEND_S": "0.4",
    "TIMEOUT_S": "0.9",
    "SERVICE_LAG_S": "6",
    "MARGIN_S": "0.05",
    "WAIT_S": "0.9",
    "OBSERVE_TIMEOUT_S": "1.4",
    "LOOK_MIN_S": "0.1",
}
_READY = re.compile(r"^ready (\S+)$", re.MULTILINE)
_SAID_LINES = 5


class Process(Protocol):
    """What is asked of a process; `returncode` is None while it runs."""

    returncode: int | None

    def poll(self) -> int | None:
        """See whether it has ended, and how."""

    def wait(self) -> int:
        """Wait for its end."""

    def kill(self) -> None:
        """Send SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """One worker process. `number` is its place: a restarted worker takes the place of the one that was killed."""

    number: int
    process: Process = field(repr=False)
    log: Path

    @property
    def incarnation(self) -> str | None:
        """The name under which its dispatches are recorded; None until it is ready."""
        found = _READY.search(self.log.read_text(errors="replace"))
        return found[1] if found else None

    @property
    def runs(self) -> bool:
        """Whether the process has not ended yet."""
        return self.process.poll() is None


class Crew:
    """Those who work for one run."""

    def __init__(
        self, environment: Mapping[str, str], logs: Path, seams: Seams, command: Sequence[str] = WORKER
    ) -> None:
        self._environment = environment
        self._logs = logs
        self._seams = seams
        self._command = command
        self._started: list[Hand] = []
        self._killed: set[int] = set()

    def start(self, number: int) -> Hand:
        """A new process in place `number`."""
        log = self._logs / f"worker-{number}-{len(self._started)}.log"
        with log.open("wb") as out:
            process = self._seams.spawn(
                self._command, env=self._environment, stdout=out, stderr=out, cwd=str(self._logs)
            )
        hand = Hand(number=number, process=process, log=log)
        self._started.append(hand)
        return hand

    def kill(self, hand: Hand) -> None:
        """SIGKILL: no handler, no farewell. Returns when it is dead."""
        self._killed.add(id(hand))
        hand.process.kill()
        hand.process.wait()

    def working(self) -> bool:
        """Whether anybody still works. Raises `Failed` when a worker ended otherwise than idle or by our kill."""
        for hand in self._started:
            if hand.process.poll() not in (None, 0) and id(hand) not in self._killed:
                said = hand.log.read_text(errors="replace").strip().splitlines()[-_SAID_LINES:]
                raise Failed(
                    f"expected worker {hand.number} to work until idle, got exit code {hand.process.returncode}: {' · '.join(said)}",
                    next=f"read {hand.log}",
                )
        return any(hand.runs for hand in self._started)

    def of(self, incarnation: str) -> Hand | None:
        """Who announced itself by this name."""
        return next((hand for hand in self._started if hand.incarnation == incarnation), None)

    def end(self) -> None:
        """End everybody at once; leases and marks are made to survive that."""
        for hand in self._started:
            if hand.runs:
                self.kill(hand)


@contextmanager
def crew(premises: Premises, base_url: str, *, seams: Seams, command: Sequence[str] = WORKER) -> Iterator[Crew]:
    """A crew for the service at `base_url`; nobody of it is left after the block."""
    made = Crew(environment_of(premises, base_url), premises.logs, seams, command)
    try:
        yield made
    finally:
        made.end()


def environment_of(premises: Premises, base_url: str) -> dict[str, str]:
    """What workers and the person on call are told: nothing of the caller's coatcheck settings, and the short windows."""
    provider = {"BASE_URL": base_url, "API_KEY": "demo-key", **WINDOWS}
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")},
        "COATCHECK_DATABASE_URL": premises.url,
        "COATCHECK_HOME": str(premises.home),
        "COATCHECK_SINK": premises.outputs.as_uri(),
        "COATCHECK_DELIVER_TRIES": "2",
        "COATCHECK_CONCURRENCY__DISPATCH": "4",
        **{provider_variable(PROVIDER, name): value for name, value in provider.items()},
    }
