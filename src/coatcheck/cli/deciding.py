"""How decisions are told: one in words or as one object, several as one line each, at once, so that an interruption hides none."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from coatcheck.app.reconciling import OperatorDecisions
from coatcheck.app.reconciling.views import Decision
from coatcheck.app.story.wording import amount
from coatcheck.cli.decision_file import Line
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.cli.visible import visible
from coatcheck.errors import CoatcheckError, NotCancellable

One: TypeAlias = Callable[[Line], Awaitable[Decision]]


async def decide_one(line: Line, one: One, *, as_json: bool) -> int:
    """Decide about one operation; what refuses it is an error of the command."""
    made = await one(line)
    if as_json:
        write_object(made.as_json())
    else:
        write_line(_summary(made))
        for text in _details(made):
            write_line(f"  {visible(text)}")
    _warn(made)
    return 0


async def decide_all(handle: OperatorDecisions, lines: Sequence[Line], one: One, *, as_json: bool) -> int:
    """Decide about each by itself. The exit code is that of all failures, 1 where they differ, 0 without any."""
    failures: Counter[int] = Counter()
    for line in lines:
        try:
            made = await one(line)
        except CoatcheckError as error:
            failures[error.exit_code] += 1
            await _tell_refused(handle, line, error, as_json=as_json)
        else:
            if as_json:
                write_object(made.as_json())
            else:
                write_line(f"{_summary(made)}; {visible('; '.join(_details(made)))}")
            _warn(made)
        sys.stdout.flush()
    refused = failures.total()
    say(f"{len(lines) - refused} decided, {refused} refused")
    return next(iter(failures)) if len(failures) == 1 else min(1, refused)


async def _tell_refused(handle: OperatorDecisions, line: Line, error: CoatcheckError, *, as_json: bool) -> None:
    # a wish that cannot be fulfilled any more may have been kept all the same
    result = "requested" if isinstance(error, NotCancellable) and error.is_recorded else "refused"
    if as_json:
        told = {"code": error.code, "message": error.message, "next": error.next}
        state = await _standing(handle, line)
        named = {} if line.message_id is None else {"message_id": line.message_id}
        write_object({"operation_id": line.operation_id, **named, "result": result, **told, **state})
    else:
        write_line(
            f"{visible(line.message_id or line.operation_id)}: {result} ({error.code}): {visible(error.message)}"
        )


async def _standing(handle: OperatorDecisions, line: Line) -> Mapping[str, object]:
    """The operation as it stands, as far as it can be read."""
    try:
        found = await handle.doubt(line.operation_id)
    except CoatcheckError:
        return {"revision": None, "phase": None}
    return {"revision": found.revision, "phase": found.phase}


def _summary(made: Decision) -> str:
    found = made.operation
    job = f" {visible(found.remote_job_id)}" if made.event == "adopted" and found.remote_job_id else ""
    return f"{found.operation_id}: {made.event}{job}; {found.phase} at revision {found.revision}"


def _details(made: Decision) -> list[str]:
    money = []
    if made.spent:
        money.append(f"{amount(made.spent, made.unit)} count as spent")
    if made.released:
        money.append(f"{amount(made.released, made.unit)} are released")
    return [*money, made.next]


def _warn(made: Decision) -> None:
    if made.overlaps:
        others = ", ".join(made.overlaps)
        say(
            f"{made.operation.operation_id}: adopted by force; other tenants' dispatches were open at the same time: {others}"
        )
