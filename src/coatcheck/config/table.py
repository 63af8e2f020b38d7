"""Every setting there is: its name, default, meaning and reader. What is not in this table is unknown and refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coatcheck.config import values
from coatcheck.config.settings import OutputHosts, Wake
from coatcheck.config.values import Reader

CONFIG = "COATCHECK_CONFIG"
KINDS = ("genace", "echo")
"""Services that coatcheck has an adapter for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. `default` None with a text in `otherwise` means that the loader computes it as the text says.

    `hint` tells how a value is to be written that was written in another known way; empty for any other.
    """

    name: str
    read: Reader
    expected: str
    meaning: str
    default: object = None
    otherwise: str = ""
    is_secret: bool = False
    hint: Callable[[object], str] = values.no_hint


def _seconds(
    name: str,
    meaning: str,
    default: float | None = None,
    *,
    otherwise: str = "",
    at_least: float = 0.001,
    days: int = 1,
) -> Setting:
    low = "0" if at_least == 0 else "above 0"
    return Setting(
        name=name,
        read=values.seconds(at_least=at_least, at_most=days * 86_400.0),
        expected=f"seconds, a number {'from 0' if at_least == 0 else low} to {days * 86_400}",
        meaning=meaning,
        # a driver refuses an array in which a default of 2 stands beside a configured 0.5
        default=None if default is None else float(default),
        otherwise=otherwise,
    )


def _count(name: str, meaning: str, default: int, *, at_most: int) -> Setting:
    return Setting(
        name=name,
        read=values.count(at_most=at_most),
        expected=f"a whole number from 1 to {at_most}",
        meaning=meaning,
        default=default,
    )


TOP: Sequence[Setting] = (
    Setting(
        name="database_url",
        read=values.database_url,
        expected="postgresql://user@host/database",
        meaning="The PostgreSQL that keeps everything.",
        otherwise="the embedded PostgreSQL under `HOME`",
        is_secret=True,
        hint=values.database_hint,
    ),
    Setting(
        name="home",
        read=values.path,
        expected="a folder",
        meaning="Where coatcheck keeps files of its own: the embedded PostgreSQL, the spool, the default sink.",
        otherwise="`$XDG_DATA_HOME/coatcheck`, or `~/.local/share/coatcheck`",
    ),
    Setting(
        name="sink",
        read=values.sink,
        expected="file:///an/absolute/folder",
        meaning="Where delivered outputs go.",
        otherwise="the folder `outputs` in `HOME`",
    ),
    Setting(
        name="wake",
        read=values.one_of(*(each.value for each in Wake)),
        expected="notify or poll",
        meaning="How idle workers learn of new messages; `poll` where a transaction pooler stands in between.",
        default=Wake.NOTIFY.value,
    ),
    _count(
        "deliver_tries",
        "After so many failed tries a delivery is parked as failed; after 4 at most where the service serves the wrong bytes"
        " (unexpected_type, checksum_mismatch, length_mismatch).",
        8,
        at_most=1000,
    ),
    _count("output_max_bytes", "A larger output is not stored.", 2 * 1024**3, at_most=2**50),
    Setting(
        name="output_hosts",
        read=values.output_hosts,
        expected="networks as 10.0.0.0/8, or http://host, or https://host:port, between commas",
        meaning="Where outputs may be fetched from besides the service's own origin and public https addresses.",
        default=OutputHosts(),
        otherwise="none",
    ),
    Setting(
        name="redispatch_by_two",
        read=values.flag,
        expected="true or false",
        meaning="Whether a redispatch, which costs money, takes two persons: one asks for it, another one carries it out. One is enough for"
        " `prove-absent`, which leads to one more POST, too.",
        default=False,
    ),
    Setting(
        name="promotion_is_safe",
        read=values.flag,
        expected="true or false",
        meaning="Whether dispatch goes on after a standby was promoted: true only where every standby that may be promoted is synchronous.",
        default=False,
    ),
    Setting(
        name="retention_days",
        read=values.count(at_most=36_500),
        expected="a whole number from 1 to 36500",
        meaning="After so many days `coatcheck retention run` removes what was only needed to carry out operations that are over.",
        otherwise="none",
    ),
)

LEASE: Sequence[Setting] = tuple(
    _seconds(f"{role}_s", f"How long a worker leases a message to {role}.", otherwise="computed, see below")
    for role in ("dispatch", "observe", "deliver")
)

CONCURRENCY: Sequence[Setting] = (
    _count("dispatch", "POSTs that one process has open at once.", 32, at_most=10_000),
    _count("observe", "Looks that one process has open at once.", 1000, at_most=100_000),
    _count("deliver", "Outputs that one process stores at once.", 32, at_most=1000),
)

PROVIDER: Sequence[Setting] = (
    Setting(
        name="kind",
        read=values.one_of(*KINDS),
        expected=" or ".join(KINDS),
        meaning="The adapter that speaks to the service; `echo` where a job repeats the `X-Client-Reference` of its POST.",
        default=KINDS[0],
    ),
    Setting(
        name="account",
        read=values.name,
        expected="a name of 1 to 255 bytes",
        meaning="The name of the credential's account; remote job ids are unique within it.",
        otherwise="the provider's name",
    ),
    Setting(
        name="base_url",
        read=values.base_url,
        expected="http://host or https://host, with a port or a path where needed, without user, query or fragment",
        meaning="The service's address. Workers need it.",
        otherwise="none",
    ),
    Setting(
        name="api_key",
        read=values.secret,
        expected="printable ASCII characters without spaces",
        meaning="The account's key, sent as bearer authorization. Workers need it.",
        otherwise="none",
        is_secret=True,
    ),
    Setting(
        name="create_path",
        read=values.pattern(r"/[!-\"$-~]*"),
        expected="a path that begins with /",
        meaning="Where the one billable POST goes.",
        default="/api/v1/jobs",
    ),
    Setting(
        name="job_path",
        read=values.job_path,
        expected="a path that begins with / and contains {id} exactly once",
        meaning="Where a remote job is looked at.",
        default="/api/v1/jobs/{id}",
    ),
    Setting(
        name="list_path",
        read=values.pattern(r"(?:/[!-\"$-~]*)?"),
        expected="a path that begins with /, or nothing",
        meaning="Where the service lists an account's jobs; empty where it has no list.",
        otherwise="none; `/api/v1/jobs` for `echo`",
    ),
    Setting(
        name="cancel_path",
        read=values.cancel_path,
        expected="a path that begins with / and contains {id} exactly once, or nothing",
        meaning="Where the service is told that a remote job is not wanted any more; empty where it cannot be told.",
        default="",
        otherwise="none",
    ),
    Setting(
        name="cancel_method",
        read=values.one_of("POST", "DELETE"),
        expected="POST or DELETE",
        meaning="How it is told so. Nothing is sent along.",
        default="POST",
    ),
    Setting(
        name="wait_param",
        read=values.pattern(r"[A-Za-z0-9_.-]{0,64}"),
        expected="the name of a query parameter, or nothing",
        meaning="The parameter that asks for a long poll; empty where the service has none.",
        default="wait",
    ),
    _seconds("wait_s", "How long a look asks the service to wait for news.", 30, at_least=0),
    _seconds("timeout_s", "The whole POST, from the first byte sent to the last byte read.", 60),
    _seconds("send_s", "No first byte of a POST leaves later than this after its mark was begun.", 5),
    _seconds("service_lag_s", "How long after a POST ended the service may still create its job.", 10, at_least=0),
    _seconds("margin_s", "What clocks and networks may add to any of these.", 2, at_least=0),
    _seconds("observe_timeout_s", "One whole look.", otherwise="`WAIT_S` + 10"),
    _seconds("look_min_s", "The shortest time between two looks at one remote job.", 2),
    _seconds("not_found_grace_s", "How long after its acceptance a job may be unknown to the service.", 60, at_least=0),
    _seconds(
        "observe_for_s",
        "How long after its acceptance a render may take before it counts as stalled.",
        86_400,
        days=366,
    ),
    _seconds("throttled_cap_s", "The longest wait that a service's Retry-After can impose.", 300),
    Setting(
        name="closed_statuses",
        read=values.statuses,
        expected="HTTP statuses between commas, without 200",
        meaning="Statuses by which the service ends a long poll without news.",
        default=frozenset({202, 204, 304, 408}),
        otherwise="202, 204, 304, 408",
    ),
    Setting(
        name="status_words",
        read=values.status_words,
        expected='JSON that maps words to queued, rendering, succeeded, failed, moderated, cancelled or expired, as {"dreaming": "rendering"}',
        meaning="What the service's status words mean, over the adapter's own list.",
        default=values.status_words({}),
        otherwise="none",
    ),
    Setting(
        name="throttled_is_uncertain",
        read=values.flag,
        expected="true or false",
        meaning="Whether a 429 leaves doubt, because the service may create a job all the same.",
        default=False,
    ),
)

SECTIONS = {"lease": LEASE, "concurrency": CONCURRENCY}
