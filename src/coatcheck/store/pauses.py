"""Configured providers and the pauses of their accounts, of dispatches and of looks apart.

A pause of dispatches is a row that every mark locks, so no POST follows a committed one. A pause of looks is seen by every claim.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from coatcheck.config import Settings
from coatcheck.errors import NotFound
from coatcheck.seams import Faults, Point
from coatcheck.store.db import Database
from coatcheck.store.statements import statement


class Pausable(enum.StrEnum):
    """What of an account can be paused. Deliveries never are: outputs expire."""

    DISPATCH = "dispatch"
    OBSERVATION = "observation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """One provider as the database knows it, with the budget of its account; None is no limit.

    `in_flight_count` is counted while there is a limit to it. A service that asked for patience shut dispatches or looks until the instants
    that say so. `observation_probe_at`: when a pause that began by itself is tried with one look.
    """

    name: str
    account: str
    kind: str
    default_estimate: Decimal | None
    unit: str
    max_in_flight: int | None
    in_flight_count: int | None
    dispatches_per_s: float | None
    looks_per_s: float | None
    look_floor_s: float | None
    dispatch_shut_until: datetime | None
    look_shut_until: datetime | None
    doubt_limit: int | None
    doubt_count: int
    dispatch_paused_at: datetime | None
    dispatch_pause_reason: str | None
    dispatch_paused_by: str | None
    dispatch_resumed_at: datetime | None
    dispatch_resume_reason: str | None
    dispatch_resumed_by: str | None
    observation_paused_at: datetime | None
    observation_pause_reason: str | None
    observation_paused_by: str | None
    observation_probe_at: datetime | None
    observation_resumed_at: datetime | None
    observation_resume_reason: str | None
    observation_resumed_by: str | None
    failed_look_count: int | None


_PAUSES: Mapping[Pausable, str] = {Pausable.DISPATCH: "pause_provider", Pausable.OBSERVATION: "pause_observation"}
_RESUMES: Mapping[Pausable, str] = {Pausable.DISPATCH: "resume_provider", Pausable.OBSERVATION: "resume_observation"}


async def register(database: Database, settings: Settings) -> None:
    """Make the configured providers known, so that they can be paused. Pauses and budgets that exist stay."""
    providers = sorted(settings.providers.values(), key=lambda provider: provider.name)
    parameters = {
        "name": [provider.name for provider in providers],
        "account": [provider.account for provider in providers],
        "kind": [provider.kind for provider in providers],
    }
    await database.fetch(statement("store", "register_providers"), parameters)


async def listed(database: Database, name: str | None = None) -> list[ProviderRow]:
    """All providers that were ever configured, or the one of this name."""
    rows = await database.fetch(statement("store", "list_providers"), {"name": name})
    return [ProviderRow(**row) for row in rows]


async def known(database: Database, name: str) -> ProviderRow:
    """The provider of this name. Raises `NotFound`."""
    rows = await listed(database, name)
    if not rows:
        message = f"no provider named {name!r} is known"
        raise NotFound(
            message, next="`coatcheck providers list` shows the names; a worker makes its configured ones known."
        )
    return rows[0]


async def pause(
    database: Database,
    name: str,
    *,
    reason: str,
    actor: str,
    what: Pausable = Pausable.DISPATCH,
    faults: Faults,
) -> ProviderRow:
    """Stop the dispatches of the provider's account from the next mark on, or its looks from the next claim on. Raises `NotFound`."""
    return await _changed(database, _PAUSES[what], name, reason=reason, actor=actor, faults=faults)


async def resume(
    database: Database,
    name: str,
    *,
    reason: str,
    actor: str,
    what: Pausable = Pausable.DISPATCH,
    faults: Faults,
) -> ProviderRow:
    """Let the account dispatch or be looked at again; what waited is due at once. Reason and actor are kept until the next time."""
    return await _changed(database, _RESUMES[what], name, reason=reason, actor=actor, faults=faults)


async def _changed(
    database: Database, change: str, name: str, *, reason: str, actor: str, faults: Faults
) -> ProviderRow:
    await known(database, name)
    faults.reached(Point.C1_AUTHORISED)
    faults.reached(Point.C2_COMMAND_COMMIT_SENT)
    await database.fetch(statement("store", change), {"name": name, "reason": reason, "actor": actor})
    faults.reached(Point.C3_APPLIED)
    return await known(database, name)
