"""Which database: the one that the settings name, else the embedded one under COATCHECK_HOME, held for exactly as long as it is used.

Whoever uses the embedded server shares it with everyone else who uses the same home; its last user stops it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from coatcheck.config import Settings
from coatcheck.seams import Seams


@contextmanager
def database_of(settings: Settings, seams: Seams) -> Iterator[str]:
    """The database's address, for the length of a block; starts the embedded server where no other is configured.

        with database_of(load_settings(), Seams.real()) as url:
            ...

    Blocks while the embedded server starts. Raises `MissingExtra` without its programs and `Failed` when it does not start.
    """
    if settings.database_url is not None:
        yield settings.database_url
        return
    from coatcheck.devdb import DevPostgres  # noqa: PLC0415 - who names a database of their own never loads the embedded one

    with DevPostgres(settings.home, seams=seams) as server:
        yield server.url()
