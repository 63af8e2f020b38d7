"""What a reading command works with: the settings, and one connection to the database that they name, for the length of a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coatcheck.app.place import database_of
from coatcheck.config import Settings, load_settings
from coatcheck.seams import Seams
from coatcheck.store.db import Database, opened


@asynccontextmanager
async def database() -> AsyncIterator[tuple[Database, Settings]]:
    """The database of this process's settings. Raises `Unavailable` at the first statement when it cannot be reached."""
    settings, seams = load_settings(), Seams.real()
    with database_of(settings, seams) as url:
        async with opened(url, seams=seams, name="cli") as found:
            yield found, settings
