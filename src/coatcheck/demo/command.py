"""`coatcheck demo`: the exit code is the verdict of both accounts, stdout carries the result and stderr the talk.

`--json` ends with one object. As of the end of the first act, before anybody decides: `operations`, `posts` (that could create),
`max_posts_per_operation`, `lost_replies`, `uncertain`, `delivered` (outputs), `checksum_mismatches`, `lost`, `duplicated`. Of the second
act: `adopted` and of these `forced`, `proven_absent`, `posts_authorised_again` (POSTs since), `uncertain_left`, `charged` (by the store) and
`billed` (by the service, net of refunds) in credits, `audit_findings`. And `ok`: whether every line of both accounts holds.
"""

import asyncio
import io
import json
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from coatcheck.config import load_settings
from coatcheck.demo.account import settled
from coatcheck.demo.balance import balanced
from coatcheck.demo.closing import Closing
from coatcheck.demo.crew import WORKER
from coatcheck.demo.performance import Performance
from coatcheck.demo.premises import home_of
from coatcheck.demo.story import tell
from coatcheck.demo.telling import telling
from coatcheck.errors import Refused
from coatcheck.seams import Seams

LEAST = 24
"""Fewer operations than this leave no room for a kill and its kin."""
_NARROW = 100


def run(
    *, operations: int, seed: int, as_json: bool, seams: Seams | None = None, command: Sequence[str] = WORKER
) -> int:
    """Perform and settle, as `run(operations=240, seed=7, as_json=False)`: 0 when every line of both accounts holds, else 1.

    Raises `Refused` for too few operations, `Failed` when PostgreSQL or a worker cannot do its part or another demo runs in this
    COATCHECK_HOME, and KeyboardInterrupt after Ctrl-C or SIGTERM, with everything ended.
    """
    if operations < LEAST:
        raise Refused(f"--operations: expected at least {LEAST}, got {operations}", next="coatcheck demo")
    home = home_of(load_settings())
    seams = seams or Seams.real()
    try:
        closing = asyncio.run(_performed(home, operations, seed, seams, command))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    account, balance = settled(closing.before), balanced(closing)
    ok = account.ok and balance.ok
    if as_json:
        sys.stdout.write(json.dumps({**account.figures, **balance.figures, "ok": ok}) + "\n")
    else:
        tell(_console(), account, balance, _typed(home))
    return 0 if ok else 1


async def _performed(home: Path, operations: int, seed: int, seams: Seams, command: Sequence[str]) -> Closing:
    """Perform; a signal ends it in order, and further ones do not disturb the end."""
    performing = asyncio.current_task()
    asked = False

    def stop() -> None:
        nonlocal asked
        if performing is not None and not asked:
            asked = True
            performing.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    with telling(Console(stderr=True, highlight=False), seams.clock) as voice:
        performance = Performance(
            home=home, operations=operations, seed=seed, seams=seams, telling=voice, command=command
        )
        return await performance.closing()


def _console() -> Console:
    """On stdout, in whatever characters that takes: a mark that cannot be shown must not cost the account."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=max(found.width, _NARROW))


def _typed(home: Path) -> str:
    """What somebody types who wants to look at this run's database."""
    called = Path(sys.argv[0])
    if shutil.which("coatcheck"):
        program = ["coatcheck"]
    elif called.name == "coatcheck":
        program = [str(called)]
    else:
        program = [sys.executable, "-m", "coatcheck"]
    return f"COATCHECK_HOME={shlex.quote(_short(home))} {shlex.join(program)}"


def _short(path: Path) -> str:
    """The path from the user's home folder, as settings read it, where it lies there."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
