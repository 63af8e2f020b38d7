"""Reads whether the invariants hold on live data and changes nothing: every statement is a read-only transaction of its own.

A save is one statement, so one statement sees each operation whole, however busy the system is. Operations are audited in chunks by keyset:
no snapshot is held for longer than a chunk (one tenant's money and the accounts' counts apart), and an audit that ended early goes on after the last chunk it finished.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg

from coatcheck.core.operation import DispatchId, OperationId, TenantId
from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.store.db import Row, connect
from coatcheck.store.failures import meaning
from coatcheck.store.remedies import REMEDIES
from coatcheck.store.statements import statement

CHUNK = 5_000
"""Operations that one statement reads."""
PURSES = 20
"""Allowances that one statement adds up."""
IDLE_S: Final = 5.0
"""A transaction of ours that does nothing for so long is waiting for something."""
FIRST: Final = OperationId(UUID(int=0))
LAST: Final = OperationId(UUID(int=2**128 - 1))

CHECKS: Mapping[str, str] = {
    "S1": "each dispatch has its mark, and one only",
    "S2": "an authorisation is spent once, and given by a person",
    "S3": "a lease that ends in dispatching leads to uncertain",
    "S4": "a remote job's id is written once",
    "S5": "a remote job has one owner",
    "S6": "final render states and deliveries stay",
    "S7": "revisions are 0, 1, 2, … with one entry of history each",
    "S8": "no transaction of ours stays open",
    "S9": "nothing but dispatch leads to a POST",
    "S10": "every operation and output is its tenant's",
    "S11": "allowances are the sums over dispatches, and what is in flight is counted",
    "S12": "what is not closed has its lane",
}
"""The invariants that are checked, in a few words each."""
_OF_OPERATIONS = (
    *((1, "marks"), (2, "authorisations"), (3, "doubts"), (4, "remote_ids"), (5, "owners"), (6, "finals")),
    *((7, "revisions"), (9, "creators"), (10, "tenants"), (11, "money")),
    *((12, "lanes"), (12, "outputs"), (12, "specifications")),
)
"""Number and subject of each statement that reads a chunk of operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that no sound system has. `kind` is its word, `detail` what was read, `remedy` what to do about it."""

    check: str
    kind: str
    operation_id: OperationId | None
    tenant_id: TenantId | None
    dispatch_id: DispatchId | None
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a part of the audit found, how many operations are done by now, and the last of them: whoever goes on, goes on after it."""

    findings: Sequence[Finding]
    operation_count: int
    reached: OperationId


async def audit(
    url: str, *, checks: frozenset[str] = frozenset(CHECKS), after: OperationId = FIRST, chunk: int = CHUNK
) -> AsyncIterator[Progress]:
    """Everything after an operation, part by part; it ends with the last operation there is.

    Example: `async for part in audit(url, checks=frozenset({"S7"})): …`. Raises `Unavailable` when the database goes away and
    `SchemaMismatch` for another schema.
    """
    async with await connect(url, "audit") as connection:
        await connection.set_read_only(True)
        reader = _Reader(connection, checks)
        yield Progress(findings=await reader.once(), operation_count=0, reached=after)
        count = 0
        ended = not reader.reads_operations
        while not ended:
            found, read, last = await reader.chunk(after, chunk)
            count, after, ended = count + read, last, read < chunk
            yield Progress(findings=found, operation_count=count, reached=after)
        async for found in reader.allowances():
            yield Progress(findings=found, operation_count=count, reached=after)


class _Reader:
    """One audit's connection and choice of checks."""

    def __init__(self, connection: psycopg.AsyncConnection[Row], checks: frozenset[str]) -> None:
        self._connection = connection
        self._checks = checks

    @property
    def reads_operations(self) -> bool:
        """Whether any chosen check looks at operations one by one."""
        return any(f"S{number}" in self._checks for number, _ in _OF_OPERATIONS)

    async def once(self) -> list[Finding]:
        """What is no operation's: the schema's own walls, the sessions of this moment, and what accounts count."""
        walls = await self._ask(statement("audit", "walls"), {})
        found = [
            _finding(wall["invariant"], {"kind": "wall_missing", "detail": wall["detail"]})
            for wall in walls
            if wall["invariant"] in self._checks
        ]
        return [
            *found,
            *await self._check(8, "sessions", {"idle_s": IDLE_S}),
            *await self._check(11, "flights", {}),
        ]

    async def chunk(self, after: OperationId, size: int) -> tuple[list[Finding], int, OperationId]:
        """The findings among the next operations, how many these are, and the last of them.

        Beyond the last operation there is, rows that lost theirs are looked for as well.
        """
        (page,) = await self._ask(statement("audit", "range"), {"after": after, "size": size})
        count, last = page["operation_count"], page["last_id"] or after
        bounds = {"after": after, "upto": last if count == size else LAST}
        found: list[Finding] = []
        for number, subject in _OF_OPERATIONS:
            found += await self._check(number, subject, bounds)
        return found, count, last

    async def allowances(self) -> AsyncIterator[list[Finding]]:
        """The findings among all allowances, a page of them at a time: each is compared with its dispatches in one statement."""
        after = ("", "")
        while "S11" in self._checks:
            parameters = {"after_tenant": after[0], "after_unit": after[1], "size": PURSES}
            rows = await self._rows(11, "allowances", parameters)
            yield [_finding("S11", row) for row in rows if row["kind"]]
            if len(rows) < PURSES:
                return
            after = (rows[-1]["tenant_id"], rows[-1]["unit"])

    async def _check(self, number: int, subject: str, parameters: Mapping[str, Any]) -> list[Finding]:
        check = f"S{number}"
        return [
            _finding(check, row)
            for row in (await self._rows(number, subject, parameters) if check in self._checks else [])
        ]

    async def _rows(self, number: int, subject: str, parameters: Mapping[str, Any]) -> list[Row]:
        return await self._ask(statement("audit", f"s{number}_{subject}"), parameters)

    async def _ask(self, text: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Each in a read-only transaction, which a pooler between us passes on as it is; planned for these very bounds."""
        try:
            async with self._connection.transaction():
                return await (await self._connection.execute(text, parameters, prepare=False)).fetchall()
        except psycopg.Error as error:
            known = meaning(error)
            if isinstance(known, CommitUnknown):
                raise Unavailable(known.message, next="try again: reading changes nothing") from None
            raise known from None


def _finding(check: str, row: Row) -> Finding:
    """A row of any check as a finding. The rows of walls and allowances have no operation."""
    return Finding(
        check=check,
        kind=row["kind"],
        operation_id=row.get("operation_id"),
        tenant_id=row.get("tenant_id"),
        dispatch_id=row.get("dispatch_id"),
        detail=row["detail"],
        remedy=REMEDIES[row["kind"]],
    )
