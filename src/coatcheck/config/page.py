"""`docs/settings.md`, made from the table so that it cannot differ from it. Run `python -m coatcheck.config.page` to write it anew."""

from collections.abc import Iterator, Sequence

from coatcheck.config import sizing
from coatcheck.config.table import CONCURRENCY, LEASE, PROVIDER, TOP, Setting

_HEAD = """\
# Settings

<!-- Made by `python -m coatcheck.config.page`; a test compares. -->

Every setting is an environment variable, or a key of a TOML file, or both: the environment beats the file. `COATCHECK_CONFIG` names the
file; unset, it is `./coatcheck.toml` where there is one. A name that is not on this page and a value that cannot be are refused (exit 2)
with the reason, for a misspelt limit protects nobody. Secrets are never shown.

In the file, names are in lower case without the prefix, and two underscores become a dot:

```toml
sink = "file:///srv/outputs"

[lease]
deliver_s = 60

[providers.genace]
base_url = "https://api.example.com"
wait_s = 20
status_words = { dreaming = "rendering" }
```
"""
_PROVIDERS = """\
`<NAME>` is the provider's name in upper case: a letter, then up to 62 letters, digits and single underscores. Naming any of these
settings configures the provider. Processes that only enqueue or read need no provider here. Durations are seconds and may be fractions.

Refused together: `OBSERVE_TIMEOUT_S` below `WAIT_S` + 0.5 where there is a `WAIT_PARAM`; two providers of one `ACCOUNT` with different
addresses; `KIND` `echo` with an empty `LIST_PATH`; a `CANCEL_PATH` that some id would turn into `CREATE_PATH`.
"""


def settings_page() -> str:
    """The whole page in Markdown."""
    parts = [_HEAD, *_section("General", "COATCHECK_", TOP)]
    parts += _section("Providers", "COATCHECK_PROVIDERS__<NAME>__", PROVIDER, text=_PROVIDERS)
    parts += _section("Leases", "COATCHECK_LEASE__", LEASE, text=_leases())
    parts += _section("Concurrency", "COATCHECK_CONCURRENCY__", CONCURRENCY)
    return "\n".join(parts)


def _section(title: str, prefix: str, table: Sequence[Setting], text: str = "") -> Iterator[str]:
    yield f"## {title}\n"
    if text:
        yield text
    rows = [
        f"| `{prefix}{each.name.upper()}` | {_default(each)} | {each.meaning} Expected: {_escaped(each)}. |"
        for each in table
    ]
    yield "\n".join(["| name | default | meaning |", "|---|---|---|", *rows, ""])


def _leases() -> str:
    return f"""\
A lease must cover connection, wait window, parsing ({sizing.PARSE_S:g} s), persistence ({sizing.SAVE_S:g} s) and margin (`MARGIN_S`); one
lease serves all providers, so the slowest counts. A worker with a lease shorter than its sum exits 2 and shows the sum.

* dispatch: `SEND_S` + `TIMEOUT_S` + parsing + persistence + margin
* observe: `OBSERVE_TIMEOUT_S` + parsing + persistence + margin
* deliver: {sizing.MISSED_RENEWALS} times the {sizing.RENEW_EVERY_S:g} s between renewals + parsing + persistence + margin
"""


def _default(setting: Setting) -> str:
    if setting.otherwise:
        return setting.otherwise
    return f"`{str(setting.default).lower()}`" if isinstance(setting.default, bool) else f"`{setting.default}`"


def _escaped(setting: Setting) -> str:
    return setting.expected.replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    import sys

    sys.stdout.write(settings_page())
