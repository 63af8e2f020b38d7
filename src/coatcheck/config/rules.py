"""What settings must be to each other, with the reason for each rule."""

import re

from coatcheck.config.names import provider_variable
from coatcheck.config.settings import ProviderSettings, Settings
from coatcheck.errors import SettingInvalid

_RETURN_S = 0.5
"""What an answer at the end of a long poll needs to get back at the very least."""


def check(settings: Settings) -> None:
    """Raise `SettingInvalid` for settings that contradict each other."""
    for provider in settings.providers.values():
        _check_provider(provider)
    _check_accounts(list(settings.providers.values()))


def _check_provider(provider: ProviderSettings) -> None:
    if provider.wait_param and provider.observe_timeout_s < provider.wait_s + _RETURN_S:
        raise SettingInvalid(
            f"{provider_variable(provider.name, 'OBSERVE_TIMEOUT_S')}: expected at least WAIT_S + {_RETURN_S:g} ({provider.wait_s + _RETURN_S:g}),"
            f" got {provider.observe_timeout_s:g}",
            next="a look must outlast the window it asks for, or every quiet window reads as a failure",
        )
    if provider.cancel_path and _is_creation(provider.create_path, provider.cancel_path):
        raise SettingInvalid(
            f"{provider_variable(provider.name, 'CANCEL_PATH')}: expected a path that no id turns into CREATE_PATH, got {provider.cancel_path}",
            next="what cancels must never be able to order: set the path that the service's documentation names",
        )
    if provider.echoes and not provider.list_path:
        raise SettingInvalid(
            f"{provider_variable(provider.name, 'LIST_PATH')}: expected a path for a provider of kind echo, got nothing",
            next="a reference is looked up in the list: set the path, or KIND genace for a service without one",
        )


def _is_creation(create_path: str, cancel_path: str) -> bool:
    """Whether some id, which is one segment or a part of one, makes the one path of the other."""
    before, _, after = (re.escape(part) for part in cancel_path.partition("?")[0].partition("{id}"))
    return re.fullmatch(f"{before}[^/]+{after}", create_path.partition("?")[0]) is not None


def _check_accounts(providers: list[ProviderSettings]) -> None:
    for index, one in enumerate(providers):
        for other in providers[index + 1 :]:
            if one.account == other.account and one.base_url != other.base_url:
                raise SettingInvalid(
                    f"{provider_variable(other.name, 'ACCOUNT')}: expected a name of its own, got that of {one.name}, which has another BASE_URL",
                    next="remote job ids are unique within an account, so two services cannot share one",
                )
