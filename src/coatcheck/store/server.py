"""What doctor asks of the server itself: its version, and how much the role it was given may do."""

from dataclasses import dataclass

from coatcheck.store.db import Database, Plan
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server and the role that this connection has there."""

    major_version: int
    version: str
    is_read_only: bool
    role: str
    is_superuser: bool
    bypasses_row_security: bool
    is_owner: bool


async def inspect(database: Database) -> Server:
    """Ask, also where a pooler keeps nothing prepared. Raises `Unavailable` when the server cannot be reached."""
    return Server(**(await database.fetch(statement("store", "inspect_server"), plan=Plan.FRESH))[0])
