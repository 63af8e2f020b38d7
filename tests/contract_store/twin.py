"""Both stores behind one connection: every statement runs on each, and answer, failure and resulting rows must be the same.

Both are on one clock that stands still until it is moved, and draw the same ids, so nothing has to be guessed when they are compared. Only
fencing tokens are each store's own: a row must get a new one, larger than all before, in both or in neither.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

import postgres
from coatcheck.seams import Seams
from coatcheck.store.db import Database, Plan, Row
from contract_store.differences import NEVER, Diverged, answers_differ, difference
from memory.columns import KEYS
from memory.line import MemoryDatabase
from memory.store import Memory, named

BEGINNING = datetime(2027, 1, 1, tzinfo=UTC)
FIRST_TOKEN = 1_000_000
"""PostgreSQL's own tokens are above it, and those that it was given from the memory below."""
LAB: LiteralString = """
create schema lab;
create table lab.clock (at timestamptz not null);
create sequence lab.ids;
grant usage on schema lab to public;
grant select on lab.clock to public;
grant usage on lab.ids to public;
create or replace function coatcheck.due_now() returns timestamptz language sql stable parallel safe
    as 'select at from lab.clock';
create or replace function coatcheck.lease_now() returns timestamptz language sql volatile parallel safe
    as 'select at from lab.clock';
create or replace function coatcheck.new_id() returns uuid language sql volatile
    as $$ select lpad(to_hex(nextval('lab.ids')), 32, '0')::uuid $$;
"""


class OnPostgres:
    """PostgreSQL on the clock and the ids of a laboratory."""

    def __init__(self, database: postgres.Database) -> None:
        self.line = Database(database.url, seams=Seams.real(), name="contract")
        self.connection = psycopg.connect(database.url, autocommit=True, row_factory=dict_row)
        self.connection.execute(LAB)
        here = self.connection.execute(
            "select installation_id, (coatcheck.whereabouts()).* from coatcheck.installation"
        ).fetchone()
        assert here is not None
        self.installation_id: UUID = here["installation_id"]
        self.place = (here["system_identifier"], here["timeline"], here["made_as"])

    def begin(self, at: datetime) -> None:
        """Empty every table, as a fresh installation has them."""
        emptied = [name for name in KEYS if name not in ("wake_ups", "installation")]
        tables = sql.SQL(", ").join(sql.Identifier("coatcheck", name) for name in emptied)
        self.connection.execute(sql.SQL("truncate {}, lab.clock").format(tables))
        self.connection.execute("alter sequence lab.ids restart")
        self.connection.execute(sql.SQL("alter sequence coatcheck.lease_tokens restart {}").format(FIRST_TOKEN + 1))
        self.connection.execute("insert into lab.clock values (%s)", [at])
        self.connection.execute("update coatcheck.wake_ups set sleeping_until = '-infinity'")
        self.connection.execute(
            "update coatcheck.installation set (system_identifier, timeline, made_as) = (select here.* from coatcheck.whereabouts() as here),"
            " changed_at = null, restored_at = null, restored_reason = null"
        )

    def move(self, at: datetime) -> None:
        """Let it be `at` now."""
        self.connection.execute("update lab.clock set at = %s", [at])

    def enqueue(self, request: Mapping[str, Any]) -> Row:
        """The application's call."""
        answer = self.connection.execute("select coatcheck.enqueue_v1(%s) as answer", [Jsonb(request)]).fetchone()
        assert answer is not None
        told: Row = answer["answer"]
        return told

    def state(self) -> dict[str, list[Row]]:
        """All rows of all tables."""
        found: dict[str, list[Row]] = {}
        with self.connection.pipeline():
            cursors = {name: self.connection.execute(_all(name)) for name in KEYS}
            for name, cursor in cursors.items():
                found[name] = cursor.fetchall()
        return found

    def put(self, table: str, key: Sequence[Any], values: Mapping[str, Any]) -> None:
        """Change a row behind everybody's back."""
        settings = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in values
        )
        query = sql.SQL("update {} set {} where {}").format(sql.Identifier("coatcheck", table), settings, _where(table))
        self.connection.execute(query, {**values, **_named(table, key)})

    def drop(self, table: str, key: Sequence[Any]) -> None:
        """Take a row out behind everybody's back."""
        query = sql.SQL("delete from {} where {}").format(sql.Identifier("coatcheck", table), _where(table))
        self.connection.execute(query, _named(table, key))


def _all(table: str) -> sql.Composed:
    if table == "wake_ups":
        return sql.SQL(
            "select only_row, nullif(sleeping_until, '-infinity') as sleeping_until from coatcheck.wake_ups"
        ).format()
    return sql.SQL("select * from {}").format(sql.Identifier("coatcheck", table))


def _where(table: str) -> sql.Composed:
    return sql.SQL(" and ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(f"key_{name}")) for name in KEYS[table]
    )


def _named(table: str, key: Sequence[Any]) -> dict[str, Any]:
    return {f"key_{name}": value for name, value in zip(KEYS[table], key, strict=True)}


class Twin(Database):
    """The connection under which both stores lie. The caller gets what the memory answers."""

    def __init__(self, postgresql: OnPostgres) -> None:
        self.postgresql = postgresql
        self.statements: Counter[str] = Counter()
        """How often each statement was compared, and how often it gave each of its answers, as `store/mark: paused`."""
        self.begin()

    def begin(self) -> None:
        """Both stores as they are when they were just made."""
        self.at = BEGINNING
        self._made = self._last_token = self._compared = 0
        store = self.postgresql
        self.memory = Memory(
            lambda: self.at,
            new_id=self._new_id,
            session_user="postgres",
            place=store.place,
            installation_id=store.installation_id,
        )
        self._line = MemoryDatabase(self.memory)
        self.postgresql.begin(self.at)

    def _new_id(self) -> UUID:
        self._made += 1
        return UUID(int=self._made)

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.at += timedelta(microseconds=round(seconds * 1e6))
        self.postgresql.move(self.at)

    def enqueue(self, request: Mapping[str, Any]) -> Row:
        """The application's call, on both."""
        ours, theirs = self.memory.enqueue(request), self.postgresql.enqueue(request)
        if ours != theirs:
            raise Diverged(f"enqueue of {request}: {ours} in memory, {theirs} in PostgreSQL")
        self.compare("enqueue")
        return ours

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        """One statement, on both. Raises `Diverged`, or what both raise."""
        name = named(text)
        self.statements[name] += 1
        ours, our_error = await _outcome(self._line, text, parameters, plan=plan)
        theirs, their_error = await _outcome(self.postgresql.line, text, parameters, plan=plan)
        told = (
            answers_differ(ours, theirs)
            if _told(our_error) == _told(their_error)
            else "one of them failed, or otherwise"
        )
        if told is not None:
            raise Diverged(f"{name}: {told} ({_told(our_error)} in memory, {_told(their_error)} in PostgreSQL)")
        # what was written where the memory wrote nothing is found with the next comparison
        if self.memory.tables.change_count != self._compared:
            self.compare(name)
        if our_error is not None:
            self.statements[f"{name}: {type(our_error).__name__}"] += 1
            raise our_error
        self.statements.update(f"{name}: {row['status']}" for row in ours if "status" in row)
        return ours

    async def outlast(self) -> None:
        """No connection broke."""

    async def close(self) -> None:
        """Close what is open."""
        await self.postgresql.line.close()
        self.postgresql.connection.close()

    def compare(self, what: str) -> None:
        """Both hold the same rows."""
        ours, theirs = self.memory.snapshot(), self.postgresql.state()
        for row in ours["wake_ups"]:
            row["sleeping_until"] = None if row["sleeping_until"] == NEVER else row["sleeping_until"]
        told = difference(ours, theirs)
        if told is not None:
            raise Diverged(f"after {what}: {told}")
        self._align(what, theirs["outbox"])

    def _align(self, what: str, theirs: Sequence[Row]) -> None:
        """Give PostgreSQL's rows the memory's tokens, and no two messages the same instant, for their order would be open."""
        outbox = self.memory.tables.outbox
        tokens = {(row["operation_id"], row["lane"]): row["lease_token"] for row in theirs}
        previous = BEGINNING - timedelta(days=1)
        for row in sorted(outbox, key=lambda row: (row["visible_at"], row["operation_id"], row["lane"])):
            key = (row["operation_id"], row["lane"])
            is_new, is_new_there = row["lease_token"] > self._last_token, tokens[key] > FIRST_TOKEN
            if is_new != is_new_there:
                raise Diverged(f"after {what}: outbox {key} has a new token in one store alone")
            visible_at = previous = max(row["visible_at"], previous + timedelta(microseconds=1))
            if is_new or visible_at != row["visible_at"]:
                self.put("outbox", key, lease_token=row["lease_token"], visible_at=visible_at)
        self._last_token = self.memory.tables.token
        self._compared = self.memory.tables.change_count

    def put(self, table: str, key: Any, **values: Any) -> None:
        """Change a row in both, behind everybody's back."""
        getattr(self.memory.tables, table).change(key, **values)
        self.memory.tables.journal.clear()
        self.postgresql.put(table, key if isinstance(key, tuple) else (key,), values)

    def drop(self, table: str, key: Any) -> None:
        """Take a row out of both, behind everybody's back."""
        getattr(self.memory.tables, table).drop(key)
        self.memory.tables.journal.clear()
        self.postgresql.drop(table, key if isinstance(key, tuple) else (key,))


Outcome = tuple[Sequence[Row], psycopg.Error | None]


async def _outcome(line: Database, text: str, parameters: Mapping[str, Any] | None, *, plan: Plan) -> Outcome:
    try:
        return await line.fetch(text, parameters, plan=plan), None
    except psycopg.Error as error:
        return [], error


def _told(error: psycopg.Error | None) -> tuple[str, str | None] | None:
    """The class of a failure, and the constraint that it is about."""
    if error is None:
        return None
    constraint = getattr(error.diag, "constraint_name", None) or (str(error) if not error.diag.sqlstate else None)
    return type(error).__name__, constraint
