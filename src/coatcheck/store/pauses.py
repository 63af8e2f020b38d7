"""Configured providers and the pause of an account's dispatch: a row that every mark locks, so no POST follows a committed pause.

The row has the one default estimate there is: what an operation holds that names none, when it is enqueued or else when it is marked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from coatcheck.config import Settings
from coatcheck.errors import NotFound
from coatcheck.store.db import Database
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """One provider as the database knows it."""

    name: str
    account: str
    kind: str
    default_estimate: Decimal | None
    unit: str
    dispatch_paused_at: datetime | None
    dispatch_pause_reason: str | None
    dispatch_paused_by: str | None
    dispatch_resumed_at: datetime | None
    dispatch_resume_reason: str | None
    dispatch_resumed_by: str | None


async def register(database: Database, settings: Settings) -> None:
    """Make the configured providers known, so that they can be paused. Pauses that exist stay."""
    providers = sorted(settings.providers.values(), key=lambda provider: provider.name)
    parameters = {
        "name": [provider.name for provider in providers],
        "account": [provider.account for provider in providers],
        "kind": [provider.kind for provider in providers],
    }
    await database.fetch(statement("store", "register_providers"), parameters)


async def listed(database: Database) -> list[ProviderRow]:
    """All providers that were ever configured."""
    return [ProviderRow(**row) for row in await database.fetch(statement("store", "list_providers"))]


async def pause(database: Database, name: str, *, reason: str, actor: str) -> ProviderRow:
    """Stop dispatches of the provider's account from the next mark on. Raises `NotFound` for an unknown name."""
    return await _change(database, "pause_provider", name, {"name": name, "reason": reason, "actor": actor})


async def resume(database: Database, name: str, *, reason: str, actor: str) -> ProviderRow:
    """Let the account dispatch again and make due what waited for it, in one transaction. Reason and actor are kept until the next time."""
    return await _change(database, "resume_provider", name, {"name": name, "reason": reason, "actor": actor})


async def change(database: Database, name: str, *, default_estimate: Decimal | None, unit: str | None) -> ProviderRow:
    """Another default estimate, None for none; without a unit, in the one that the provider has. Raises `NotFound`."""
    parameters = {"name": name, "default_estimate": default_estimate, "unit": unit}
    return await _change(database, "change_provider", name, parameters)


async def _change(database: Database, what: str, name: str, parameters: Mapping[str, object]) -> ProviderRow:
    rows = await database.fetch(statement("store", what), parameters)
    if not rows:
        message = f"no provider named {name!r} is known"
        raise NotFound(
            message, next="`coatcheck providers list` shows the names; a worker makes its configured ones known."
        )
    return ProviderRow(**rows[0])
