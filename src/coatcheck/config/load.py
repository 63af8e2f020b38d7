"""Environment over file over default, strictly: a name that nobody reads and a value that cannot be are refused, never ignored."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from coatcheck.config import rules, sources
from coatcheck.config.names import PROVIDER_NAME, PROVIDERS
from coatcheck.config.settings import ConcurrencySettings, LeaseSettings, ProviderSettings, Settings, Wake
from coatcheck.config.sources import Given, Key
from coatcheck.config.table import CONCURRENCY, LEASE, PROVIDER, TOP, Setting
from coatcheck.errors import SettingInvalid

_SHOWN_CHARACTERS = 80
_USER = re.compile(r"//[^/]*@")  # a user in a URL comes with a password


def load_settings(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """Read the settings, as `load_settings()` for this process's own.

    Raises `SettingUnknown` for a name that is not in the table, with the nearest one that is, and `SettingInvalid` for an impossible value,
    with the reason and without any secret.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    given = sources.from_file(environ, cwd) | sources.from_environment(environ)
    top = _values(TOP, given, ())
    home = _home(top.pop("home"), environ, cwd)
    settings = Settings(
        database_url=top["database_url"],
        home=home,
        sink=top["sink"] or f"file://{quote(str(home / 'outputs'))}",
        wake=Wake(top["wake"]),
        deliver_tries=top["deliver_tries"],
        output_max_bytes=top["output_max_bytes"],
        output_hosts=top["output_hosts"],
        redispatch_by_two=top["redispatch_by_two"],
        promotion_is_safe=top["promotion_is_safe"],
        retention_days=top["retention_days"],
        lease=LeaseSettings(**_values(LEASE, given, ("lease",))),
        concurrency=ConcurrencySettings(**_values(CONCURRENCY, given, ("concurrency",))),
        providers=MappingProxyType({name: _provider(name, given) for name in _provider_names(given)}),
    )
    rules.check(settings)
    return settings


def _values(table: Sequence[Setting], given: Mapping[Key, Given], above: Key) -> dict[str, Any]:
    return {each.name: _value(each, given.get((*above, each.name))) for each in table}


def _value(setting: Setting, given: Given | None) -> object:
    if given is None:
        return setting.default
    try:
        return setting.read(given.value)
    except (ValueError, RecursionError):
        # The original may quote the value.
        raise SettingInvalid(
            f"{given.label}: expected {setting.expected}, got {_shown(setting, given.value)}",
            next=_remedy(setting, given),
        ) from None


def _remedy(setting: Setting, given: Given) -> str:
    """Removing it helps only where there is something to fall back on."""
    if hint := setting.hint(given.value):
        return f"{given.label}: {hint}"
    has_default = setting.default is not None or setting.otherwise != "none"
    return f"correct {given.label}" + (", or remove it for the default" if has_default else "")


def _shown(setting: Setting, value: object) -> str:
    if value == "":
        return "nothing"
    if setting.is_secret:
        return "something else (not shown)"
    text = _USER.sub("//…@", ascii(value))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _provider_names(given: Mapping[Key, Given]) -> Iterator[str]:
    for name in sorted({key[1]: None for key in given if key[0] == PROVIDERS}):
        if re.fullmatch(PROVIDER_NAME, name, re.ASCII) is None:
            label = next(each.label for key, each in given.items() if key[:2] == (PROVIDERS, name))
            raise SettingInvalid(
                f"{label}: expected a provider named by a lower-case letter and up to 62 letters, digits or single underscores,"
                f" got {name[:_SHOWN_CHARACTERS]!a}",
                next="name it as in COATCHECK_PROVIDERS__GENACE__BASE_URL",
            )
        yield name


def _provider(name: str, given: Mapping[Key, Given]) -> ProviderSettings:
    found = _values(PROVIDER, given, (PROVIDERS, name))
    if found["account"] is None:
        found["account"] = name
    if found["list_path"] is None:
        found["list_path"] = "/api/v1/jobs" if found["kind"] == "echo" else ""
    if found["observe_timeout_s"] is None:
        found["observe_timeout_s"] = found["wait_s"] + 10.0
    return ProviderSettings(name=name, **found)


def _home(value: str | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The folder of our own files; a relative one begins where the process was started."""
    user = environ.get("HOME") or str(Path.home())
    if value is None:
        # A relative XDG_DATA_HOME is to be ignored, says the XDG base directory specification.
        data = environ.get("XDG_DATA_HOME", "")
        return (Path(data) if Path(data).is_absolute() else Path(user, ".local", "share")) / "coatcheck"
    return cwd / (Path(user, value[2:]) if value.startswith("~/") else value)
