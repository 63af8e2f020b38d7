"""Where settings come from. Both sources become one flat shape, and both know every name they may hold."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coatcheck.config import names
from coatcheck.config.names import DELIMITER, PREFIX, PROVIDER_NAME, PROVIDERS
from coatcheck.config.table import CONFIG, PROVIDER, SECTIONS, TOP
from coatcheck.errors import SettingInvalid, SettingUnknown

Key = tuple[str, ...]
"""`("wake",)`, `("lease", "dispatch_s")` or `("providers", name, "base_url")`."""

_DEFAULT_FILE = "coatcheck.toml"
_LARGEST_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value as it stands in its source, and the name it has there."""

    label: str
    value: object = field(repr=False)


def from_environment(environ: Mapping[str, str]) -> dict[Key, Given]:
    """The settings among the variables. Raises `SettingUnknown`."""
    found: dict[Key, Given] = {}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable == CONFIG:
            continue
        key = tuple(variable.removeprefix(PREFIX).lower().split(DELIMITER))
        if not _is_known(key) or names.variable(*key) != variable:
            raise _unknown(
                variable, [names.variable(*each) for each in _known(key)] + [CONFIG], where="the environment"
            )
        found[key] = Given(label=variable, value=environ[variable])
    return found


def from_file(environ: Mapping[str, str], cwd: Path) -> dict[Key, Given]:
    """The settings in `COATCHECK_CONFIG`, or in `./coatcheck.toml` if there is one. Raises `SettingInvalid`, `SettingUnknown`."""
    named = environ.get(CONFIG)
    file = cwd / (_DEFAULT_FILE if named is None else named)
    if named is None and not file.exists():
        return {}
    found: dict[Key, Given] = {}
    for key, value in _flat(_read(file)):
        dotted = ".".join(key)
        if not _is_known(key):
            raise _unknown(dotted, [".".join(each) for each in _known(key)], where=file.name)
        found[key] = Given(label=f"{dotted} in {file.name}", value=value)
    return found


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            document = opened.read(_LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise SettingInvalid(
            f"{CONFIG}: expected a file that can be read, got {file} ({error.strerror})",
            next=f"correct {CONFIG}, or remove it",
        ) from None
    if len(document) > _LARGEST_FILE_BYTES:
        raise SettingInvalid(
            f"{CONFIG}: expected at most {_LARGEST_FILE_BYTES} bytes, got a larger file {file.name}",
            next="name a file of settings",
        )
    import tomllib  # noqa: PLC0415 - 5 ms that a process without a file need not spend

    try:
        return tomllib.loads(document.decode())
    except UnicodeDecodeError as error:
        raise SettingInvalid(
            f"{CONFIG}: expected UTF-8 in {file.name}, got another encoding at byte {error.start}",
            next="save it as UTF-8",
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # The message tells line and column; the exception itself may carry the document with its keys.
        raise SettingInvalid(
            f"{CONFIG}: expected TOML in {file.name}, got something else: {error}", next=f"correct {file.name} there"
        ) from None


def _flat(document: Mapping[str, object]) -> Iterator[tuple[Key, object]]:
    for name, value in document.items():
        if name == PROVIDERS:
            for provider, settings in _table(value, (name,)).items():
                for each, inner in _table(settings, (name, provider)).items():
                    yield (name, provider, each), inner
        elif name in SECTIONS:
            for each, inner in _table(value, (name,)).items():
                yield (name, each), inner
        else:
            yield (name,), value


def _table(value: object, key: Key) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SettingInvalid(
            f"{'.'.join(key)}: expected a table, as [{'.'.join(key)}], got a single value",
            next="docs/settings.md shows such a file",
        )
    return value


def _is_known(key: Key) -> bool:
    return key in _known(key)


def _known(near: Key) -> list[Key]:
    """Every name there is; those of providers for the provider that `near` speaks of."""
    provider = _provider_near(near)
    return [
        *((each.name,) for each in TOP),
        *((section, each.name) for section, table in SECTIONS.items() for each in table),
        *((PROVIDERS, provider, each.name) for each in PROVIDER),
    ]


def _provider_near(near: Key) -> str:
    """The provider that a name speaks of; `PROVIDER__X__…` and `PROVIDERS_X_…` are usual slips."""
    if near[0] == PROVIDERS and len(near) > 1 and near[1]:
        return near[1]
    slip = re.match(r"providers?_+(.+)", DELIMITER.join(near))
    name = slip[1].split(DELIMITER)[0] if slip else ""
    for each in PROVIDER:
        name = name.removesuffix(f"_{each.name}")
    return name if re.fullmatch(PROVIDER_NAME, name, re.ASCII) else "genace"


def _unknown(name: str, known: list[str], *, where: str) -> SettingUnknown:
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    nearest = get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return SettingUnknown(
        f"{ascii(name[:200])[1:-1]}: expected a setting that coatcheck knows, got this one in {where}",
        next=f"the nearest known name is {nearest}; docs/settings.md lists them all",
    )
