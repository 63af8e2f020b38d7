"""What coatcheck runs by, as frozen values. Whoever holds one may rely on it: impossible combinations were refused when it was made."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from urllib.parse import unquote, urlsplit

from coatcheck.config.names import provider_variable
from coatcheck.config.secret import Secret
from coatcheck.core.operation import RenderState
from coatcheck.errors import SettingInvalid


class Wake(enum.StrEnum):
    """How an idle worker learns of new messages. A notification is a hint; polling alone suffices, as behind a transaction pooler."""

    NOTIFY = "notify"
    POLL = "poll"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """How long a message is leased, by role. None: as long as the sum in `sizing` says."""

    dispatch_s: float | None
    observe_s: float | None
    deliver_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencySettings:
    """How many actions of a role one process has in its hands at once."""

    dispatch: int
    observe: int
    deliver: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputHosts:
    """Where outputs may be fetched from besides the service's own origin and public https addresses."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    http_hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What reaching a service takes."""

    base_url: str
    api_key: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """One configured account at one service. Each field is the setting of the same name."""

    name: str
    kind: str
    account: str
    base_url: str | None
    api_key: Secret | None
    create_path: str
    job_path: str
    list_path: str
    cancel_path: str
    cancel_method: str
    wait_param: str
    wait_s: float
    timeout_s: float
    send_s: float
    service_lag_s: float
    margin_s: float
    observe_timeout_s: float
    look_min_s: float
    not_found_grace_s: float
    observe_for_s: float
    throttled_cap_s: float
    closed_statuses: frozenset[int]
    status_words: Mapping[str, RenderState]
    throttled_is_uncertain: bool

    @property
    def echoes(self) -> bool:
        """Whether the service repeats our reference, so that doubt is looked up before it is a person's."""
        return self.kind == "echo"

    def endpoint(self) -> Endpoint:
        """The service's address and key: for workers, as processes that only enqueue or read need neither.

        Raises `SettingInvalid` naming the one that is missing.
        """
        if self.base_url is None:
            raise self._missing("BASE_URL", "the service's address, as https://api.example.com")
        if self.api_key is None:
            raise self._missing("API_KEY", "the account's key")
        return Endpoint(base_url=self.base_url, api_key=self.api_key)

    def _missing(self, name: str, expected: str) -> SettingInvalid:
        label = provider_variable(self.name, name)
        return SettingInvalid(f"{label}: expected {expected}, got nothing", next=f"set {label} where workers run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything, from the defaults, the file and the environment. The database URL may carry a password and is never shown."""

    database_url: str | None = field(repr=False)
    home: Path
    sink: str
    wake: Wake
    deliver_tries: int
    output_max_bytes: int
    output_hosts: OutputHosts
    redispatch_by_two: bool
    promotion_is_safe: bool
    retention_days: int | None
    lease: LeaseSettings
    concurrency: ConcurrencySettings
    providers: Mapping[str, ProviderSettings]

    @property
    def sink_path(self) -> Path:
        """The folder that the `file://` sink names."""
        return Path(unquote(urlsplit(self.sink).path))
