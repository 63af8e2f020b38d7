"""Why no connection came about, in words of our own: the driver's text may carry user and password, so it is read and never shown.

While connecting, libpq hands on no SQLSTATE, only text. A text that is not known here, as one in another language, leaves the class alone.
"""

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict

from coatcheck.errors import CoatcheckError, SettingInvalid, Unavailable

_SETTING = "COATCHECK_DATABASE_URL"
_SHOWN_CHARACTERS = 80
_ROLE = ("the role or its password was not accepted", "correct user and password, or pg_hba.conf")
_CAUSES = (
    (r"failed to resolve|could not translate host", "the host is unknown", "correct the host"),
    (r"connection refused", "the connection was refused", "start the server, or correct host and port"),
    (r"no such file or directory", "there is no such socket", "start the server, or name its host"),
    (r'database ".*" does not exist', "the database does not exist (3D000)", "create it, or correct its name"),
    (r'authentication failed|no password supplied|role ".*" does not exist|pg_hba\.conf', *_ROLE),
    (r"permission denied for database", "the role may not connect to it", "grant connect on the database to the role"),
    (r"timeout|timed out", "no answer came in time", "correct host and port, or let the firewall pass"),
    (r"starting up|shutting down|recovery", "the server is starting or stopping", "try again in a moment"),
    (r"too many|connection slots", "all of its connections are taken", "raise max_connections, or run fewer workers"),
    (r"ssl|certificate", "TLS failed", "correct sslmode and the certificates"),
)


def unreachable(error: psycopg.Error, url: str) -> CoatcheckError:
    """What came instead of a connection, with host and database and without user and password.

    `SettingInvalid` for an address that libpq cannot read, else `Unavailable`.
    """
    if isinstance(error, psycopg.ProgrammingError):
        return SettingInvalid(
            f"{_SETTING}: expected an address that libpq reads, got another (not shown)",
            next=_misread(str(error)),
        )
    cause, remedy = _cause(error)
    return Unavailable(f"PostgreSQL cannot be reached{_place(url)}: {cause}", next=f"{remedy}; nothing changed")


def _cause(error: psycopg.Error) -> tuple[str, str]:
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return "no answer came in time", "correct host and port, or let the firewall pass"
    text = str(error).lower()
    for expression, cause, remedy in _CAUSES:
        if re.search(expression, text):
            return cause, f"{remedy} ({_SETTING})"
    name = f"{type(error).__name__} {error.sqlstate or ''}".strip()
    return name, f"check {_SETTING} and that the server runs"


def _misread(text: str) -> str:
    """The name of a parameter is no secret, and misspelling it is the usual slip."""
    unknown = re.search(r'invalid (?:URI query parameter|connection option): "?(\w{1,40})"?', text)
    if unknown is None:
        return "write it as postgresql://user@host:port/database, with reserved characters of a password as %40 and the like"
    return f"correct or remove the parameter {unknown[1]}"


def _place(url: str) -> str:
    try:
        found = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return ""
    database, host, port = (str(found.get(name) or "") for name in ("dbname", "host", "port"))
    where = f" at {host}" if host else " on the local socket"
    where += f" port {port}" if port else ""
    return f"{where[:_SHOWN_CHARACTERS]}{f', database {database[:_SHOWN_CHARACTERS]}' if database else ''}"
