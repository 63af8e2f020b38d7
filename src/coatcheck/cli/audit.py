"""`audit`: whether the invariants hold on the data there is. It reads only, and whatever ends it early says where to go on."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.place import database_of
from coatcheck.cli.ends import FINDINGS
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say, write_object
from coatcheck.config import load_settings
from coatcheck.core.identity import operation_text, parse_operation_id
from coatcheck.core.operation import OperationId
from coatcheck.errors import Refused, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.audit import CHECKS, FIRST, Finding, Progress
from coatcheck.store.audit import audit as parts_of
from coatcheck.store.blocking import connected
from coatcheck.store.schema import check_schema

PROGRESS_S = 5.0
"""How often somebody who waits is told."""


def audit(
    *,
    check: Annotated[
        tuple[str, ...], Parameter(negative="", help=f"Only this invariant, {', '.join(CHECKS)}; may be repeated.")
    ] = (),
    after: Annotated[
        str | None, Parameter(help="Go on after this operation, as an audit that ended early said.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check each invariant on live data, reading only. Findings are exit code 5."""
    tour = _Tour(checks=_checks(check), after=_after(after), as_json=as_json)
    try:
        asyncio.run(tour.run())
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(tour.next)
        raise
    except Unavailable as error:
        raise type(error)(error.message, next=f"{error.next}; {tour.next}") from None
    tour.end()
    return FINDINGS if tour.finding_count else 0


class _Tour:
    """One audit as it is told: each part at once, so that what was found is seen whatever happens next."""

    def __init__(self, *, checks: frozenset[str], after: OperationId, as_json: bool) -> None:
        self._checks = checks
        self._as_json = as_json
        self._at = Progress(findings=(), operation_count=0, reached=after)
        self.finding_count = 0

    async def run(self) -> None:
        """Audit from the beginning to the end."""
        seams = Seams.real()
        told_s = seams.clock.boottime()
        with database_of(load_settings(), seams) as url:
            with connected(url, "audit") as connection:
                check_schema(connection)
            async for part in parts_of(url, checks=self._checks, after=self._at.reached):
                self._tell(part.findings)
                self._at = part
                if not self._as_json and seams.clock.boottime() - told_s >= PROGRESS_S:
                    told_s = seams.clock.boottime()
                    say(f"{self._so_far}, {self.finding_count} findings")

    def end(self) -> None:
        """Say how far it got and what came of it."""
        found = f"{self.finding_count} findings" if self.finding_count else "nothing found"
        say(f"{self._so_far}, {found}")

    @property
    def next(self) -> str:
        """How to go on after what is done."""
        chosen = (
            []
            if self._checks == frozenset(CHECKS)
            else [f"--check {check}" for check in CHECKS if check in self._checks]
        )
        place = [] if self._at.reached == FIRST else [f"--after {operation_text(self._at.reached)}"]
        return f"go on with `{' '.join(['coatcheck audit', *chosen, *place])}`"

    @property
    def _so_far(self) -> str:
        last = "" if self._at.reached == FIRST else f", the last {operation_text(self._at.reached)}"
        return f"{self._at.operation_count} operations checked{last}"

    def _tell(self, findings: Sequence[Finding]) -> None:
        self.finding_count += len(findings)
        if self._as_json:
            for finding in findings:
                write_object(_as_json(finding))
        elif findings:
            from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

            rows = [
                (each.check, _operation(each), each.tenant_id, f"{each.kind}: {each.detail}", each.remedy)
                for each in findings
            ]
            show(table(("check", "operation", "tenant", "finding", "remedy"), rows))


def _as_json(finding: Finding) -> Mapping[str, object]:
    return {**asdict(finding), "operation_id": _operation(finding)}


def _operation(finding: Finding) -> str | None:
    return None if finding.operation_id is None else operation_text(finding.operation_id)


def _checks(words: Iterable[str]) -> frozenset[str]:
    """The invariants that were asked for, all of them without any."""
    for word in words:
        if word not in CHECKS:
            raise Refused(
                f"--check: expected one of {', '.join(CHECKS)}, got {word!a}", next="give one of them, or none"
            )
    return frozenset(words) or frozenset(CHECKS)


def _after(text: str | None) -> OperationId:
    """Where to go on. Raises `Refused` for what is no id: an audit that began anywhere else would seem to be complete."""
    found = FIRST if text is None else parse_operation_id(text)
    if found is None:
        raise Refused(f"--after: expected the id of an operation, got {text!a}", next="give the id that the audit said")
    return found
