"""How many more connections the server would take from this role: the narrowest of what bounds them. Behind a pooler that says nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coatcheck.store.db import Database, Plan
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One thing that bounds connections: in words what it is and how it is raised, how many it allows and how many of them are taken."""

    words: str
    remedy: str
    most_count: int
    taken_count: int

    @property
    def free_count(self) -> int:
        """How many more it allows."""
        return max(0, self.most_count - self.taken_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """As of one look, the session that looked not counted. `backend_pid` is that session's number at the server."""

    backend_pid: int
    bounds: tuple[Bound, ...]

    @property
    def ever(self) -> Bound:
        """What bounds most, whoever is connected."""
        return min(self.bounds, key=lambda bound: bound.most_count)

    @property
    def now(self) -> Bound:
        """What bounds most at the moment."""
        return min(self.bounds, key=lambda bound: bound.free_count)


async def read_room(database: Database) -> Room:
    """Look, also where a pooler keeps nothing prepared. Raises as `Database.fetch` does."""
    return room_of((await database.fetch(statement("store", "inspect_connection_room"), plan=Plan.FRESH))[0])


def room_of(row: Mapping[str, Any]) -> Room:
    """The room that a row of the statement tells."""
    reserved = f", of which {row['reserved_count']} are reserved" if row["reserved_count"] else ""
    found = [
        Bound(
            words=f"max_connections {row['server_count']}{reserved}",
            remedy="raise max_connections of the server",
            most_count=row["server_count"] - row["reserved_count"],
            taken_count=row["by_all_count"],
        )
    ]
    for kind, taken in (("role", "by_role_count"), ("database", "in_database_count")):
        if (most := row[f"{kind}_count"]) is not None:
            found.append(
                Bound(
                    words=f"connection limit {most} of the {kind} {row[kind]}",
                    remedy=f"alter {kind} {row[kind]} connection limit …",
                    most_count=most,
                    taken_count=row[taken],
                )
            )
    return Room(backend_pid=row["backend_pid"], bounds=tuple(found))
