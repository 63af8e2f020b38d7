"""Chooses the adapter for each configured provider and what its outputs may be fetched from."""

from coatcheck.config import OutputHosts, ProviderSettings
from coatcheck.delivery.addresses import HostPolicy, origin_of
from coatcheck.errors import SettingInvalid
from coatcheck.provider.echo import Echo
from coatcheck.provider.genace import Genace
from coatcheck.provider.port import Adapter, FindPort
from coatcheck.version import VERSION

_HTTPS_PORT = 443


def adapter_of(provider: ProviderSettings) -> Adapter:
    """The pure adapter for one configured account. Raises `SettingInvalid` for a kind that no adapter serves."""
    match provider.kind:
        case "genace":
            return Genace.configured(provider, version=VERSION)
        case "echo":
            return Echo.configured(provider, version=VERSION)
        case _:
            message = f"KIND of provider {provider.name}: expected genace or echo, got {provider.kind!r}"
            raise SettingInvalid(message, next="Choose a kind that coatcheck has an adapter for.")


def finder_of(provider: ProviderSettings) -> FindPort | None:
    """The search by reference, where the service repeats one: `finder_of(settings.providers["studio"])`."""
    return Echo.configured(provider, version=VERSION) if provider.echoes else None


def policy_of(provider: ProviderSettings, hosts: OutputHosts) -> HostPolicy:
    """The BASE_URL's own origin is allowed, plain http included; what else is private must have been configured."""
    return HostPolicy(
        own_origin=origin_of(provider.endpoint().base_url),
        allow_http_hosts=hosts.http_hosts,
        allow_networks=hosts.networks,
        allow_ports=hosts.ports | {_HTTPS_PORT},
    )
