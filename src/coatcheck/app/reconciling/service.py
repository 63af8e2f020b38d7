"""Which service a decision asks, and how: with the credential that made the operation's jobs. Who decides without asking loads no client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from coatcheck.config import ProviderSettings, Settings
from coatcheck.core.operation import Operation
from coatcheck.errors import MissingExtra, SettingInvalid
from coatcheck.seams import Seams

if TYPE_CHECKING:
    from coatcheck.app.asking import Asking


def provider_of(settings: Settings, operation: Operation) -> ProviderSettings:
    """The configured provider whose credential made the operation's jobs. Raises `SettingInvalid` where there is none."""
    named = settings.providers.get(operation.provider)
    candidates = [*([named] if named else []), *settings.providers.values()]
    found = next((each for each in candidates if each.account == operation.account), None)
    if found is None:
        raise SettingInvalid(
            f"expected a configured provider with the account {operation.account!a}, got none",
            next="run this where the workers' settings are, or set COATCHECK_PROVIDERS__<NAME>__ACCOUNT, BASE_URL and API_KEY",
        )
    return found


@asynccontextmanager
async def asking_about(provider: ProviderSettings, seams: Seams) -> "AsyncIterator[Asking]":
    """The account, for the length of a block. Raises `SettingInvalid` without address or key, `MissingExtra` without a client."""
    try:
        from coatcheck.app.asking import asking  # noqa: PLC0415 - only who asks a service loads a client
    except ModuleNotFoundError as error:
        raise MissingExtra.of("worker", str(error.name)) from None

    async with asking(provider, seams) as service:
        yield service
