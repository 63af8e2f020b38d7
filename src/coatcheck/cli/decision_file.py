"""Decisions in bulk: a file is read and checked as a whole before anything is decided, so a slip in its last line changes nothing.

A line is `OP`, or `OP JOB` where a job is adopted, or an object {"operation_id", "remote_job_id"?, "revision"?, "reason"?}.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coatcheck.app.reconciling.words import remote_job_id_of, revision_of, words_of
from coatcheck.core.foreign import Unreadable, read_json
from coatcheck.core.identity import operation_text, parse_operation_id
from coatcheck.errors import Refused

LIMIT_BYTES: Final = 64 * 1024 * 1024
_FIELDS: Final = frozenset({"operation_id", "remote_job_id", "revision", "reason"})
_LESS: Final = "out of a list take only these, as `jq -c '{operation_id, revision}'` does"


class _TooMuch(Refused):
    """An object with more in it than a decision has, as a line of any list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One decision that is asked for. `reason` None: the one that was given for all."""

    operation_id: str
    remote_job_id: str | None = None
    revision: int | None = None
    reason: str | None = None
    message_id: str | None = None
    """Which of its messages, where it is about one."""


def read_decisions(name: str, *, with_job: bool) -> list[Line]:
    """The decisions of a file, `-` for stdin. Raises `Refused` with the number of the first line that is wrong."""
    found: list[Line] = []
    places: dict[str, int] = {}
    # only line feeds divide: what else Python takes for an end of line may stand in a text
    for number, text in enumerate(_text(name).split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = _line(text.strip(), with_job=with_job)
        except Refused as error:
            remedy = _LESS if isinstance(error, _TooMuch) else "correct the line"
            raise Refused(f"line {number}: {error.message}", next=f"{remedy}; nothing was decided yet") from None
        if line.operation_id in places:
            raise Refused(
                f"line {number}: expected each operation once, got {line.operation_id}, which is in line {places[line.operation_id]}",
                next="remove one of the lines; nothing was decided yet",
            )
        places[line.operation_id] = number
        found.append(line)
    if not found:
        raise Refused(
            "--from: expected a decision on each line, got nothing", next="write `OP` or an object on each line"
        )
    return found


def _text(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LIMIT_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LIMIT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise Refused(
            f"--from: expected a file that can be read, or -, got {name!a} ({reason})",
            next="name a file, or write - and pipe it in",
        ) from None
    if len(data) > LIMIT_BYTES:
        raise Refused(f"--from: expected at most {LIMIT_BYTES} bytes, got more", next="divide the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"line {number}: expected UTF-8, got other bytes", next="write the file in UTF-8") from None


def _line(text: str, *, with_job: bool) -> Line:
    given = _object(text) if text.startswith("{") else _words(text, with_job=with_job)
    operation_id = given.get("operation_id")
    known = parse_operation_id(operation_id) if isinstance(operation_id, str) else None
    if known is None:
        raise Refused(f"expected the id of an operation, got {operation_id!a}")
    job = given.get("remote_job_id")
    if with_job is (job is None):
        raise Refused("expected the remote job to adopt, got none" if with_job else "expected no remote job, got one")
    reason = given.get("reason")
    return Line(
        operation_id=operation_text(known),
        remote_job_id=None if job is None else remote_job_id_of(job),
        revision=_revision(given.get("revision")),
        reason=None if reason is None else words_of("reason", reason),
    )


def _words(text: str, *, with_job: bool) -> dict[str, object]:
    operation_id, *rest = text.split(maxsplit=1)
    if rest and not with_job:
        raise Refused(f"expected the id of an operation and nothing else, got {rest[0][:80]!a} after it")
    return {"operation_id": operation_id, **({"remote_job_id": rest[0]} if rest else {})}


def _object(text: str) -> dict[str, object]:
    found = read_json(text.encode())
    if isinstance(found, Unreadable) or not isinstance(found, dict):
        cause = found.cause if isinstance(found, Unreadable) else "no object"
        raise Refused(f"expected an object in JSON, got something else ({cause})")
    if unknown := sorted(set(found) - _FIELDS):
        raise _TooMuch(f"expected only {', '.join(sorted(_FIELDS))}, got {unknown[0]!a}")
    return found


def _revision(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return revision_of(value)
    raise Refused(f"revision: expected a whole number from 0, got {value!a}")


def typed(operations: Sequence[str], revision: int | None) -> list[Line]:
    """Decisions that were typed. Raises `Refused` for a revision that could be only one's, and for the same one twice."""
    if revision is not None and len(operations) != 1:
        raise Refused(
            f"--revision: expected one operation with it, got {len(operations)}",
            next="in a file, every line may have its own",
        )
    known = [parse_operation_id(each) for each in operations]
    if len(set(known) - {None}) < len([each for each in known if each is not None]):
        raise Refused("expected each operation once, got one of them twice", next="remove it; nothing was decided yet")
    return [Line(operation_id=each, revision=revision) for each in operations]
