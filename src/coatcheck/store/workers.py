"""Workers' accounts of themselves, one row for each life of a process. No rule rests on them: nobody joins, and nobody is missed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coatcheck.store.db import Database
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a worker says of itself. `action_ms` holds `count`, `total_ms` and `max_ms` by action; `stopped`: this is its last word."""

    incarnation: str
    version: str
    roles: Sequence[str]
    stopped: bool
    stale: Mapping[str, int]
    lease_renewal_failures_count: int
    action_ms: Mapping[str, Mapping[str, int]]


async def report(database: Database, account: Account) -> None:
    """Write the worker's row; the last word of an incarnation stays. Raises what the database raises.

    Example: `await report(database, Account(incarnation="host-3f2a", ...))`.
    """
    parameters = {
        "incarnation": account.incarnation,
        "version": account.version,
        "roles": list(account.roles),
        "stopped": account.stopped,
        "stale": json.dumps(dict(account.stale)),
        "lease_renewal_failures_count": account.lease_renewal_failures_count,
        "action_ms": json.dumps(dict(account.action_ms)),
    }
    await database.fetch(statement("store", "report_worker"), parameters)
