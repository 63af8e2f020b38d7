"""What a driver's error means to a caller, by its class and SQLSTATE alone: its text may carry an address, a user or a value."""

import psycopg

from coatcheck.errors import CoatcheckError, CommitUnknown, Failed, Refused, SchemaMismatch, Unavailable

_SCHEMA_STATES = {"3F000", "42P01", "42703", "42883"}
_DENIED_STATE = "42501"
_LOST_CLASS = "08"
_OUTAGE_CLASSES = {"25", "28", "3D", "40", "53", "55", "57", "58"}


def meaning(error: psycopg.Error) -> CoatcheckError:
    """The exception of our tree: `Unavailable`, `SchemaMismatch`, `Refused` for a role that may not, `Failed` for the rest.

    A connection that was lost during a statement, its commit among them, says nothing about the outcome: `CommitUnknown`.
    """
    state = error.sqlstate
    name = f"{type(error).__name__} {state or ''}".strip()
    lost = state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if lost or (state or "")[:2] == _LOST_CLASS:
        return CommitUnknown(
            f"the connection to PostgreSQL was lost: {name}", next="look for what the command would have written"
        )
    if (state or "")[:2] in _OUTAGE_CLASSES:
        return Unavailable(f"PostgreSQL cannot be used: {name}", next="check COATCHECK_DATABASE_URL and the server")
    if state in _SCHEMA_STATES:
        return SchemaMismatch(
            f"expected the schema of this version of coatcheck, got another ({name})",
            next="run `coatcheck migrate up` as the owner of the schema",
        )
    if state == _DENIED_STATE:
        return Refused(
            f"expected a role that may do this, got one that may not ({name})",
            next="connect as a role with the privileges of coatcheck_worker",
        )
    return Failed(f"PostgreSQL refused a statement: {name}")
