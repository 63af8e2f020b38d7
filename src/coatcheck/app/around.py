"""Doctor's checks of what lies between a worker and those whom it talks to: pooler, TCP, clock, snapshots, and each service, asked once.

A service is asked with one GET for a job that cannot exist: it is free, it changes nothing, and every answer shows that it can be reached.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import assert_never

from coatcheck.app.check import Check, Verdict, judged
from coatcheck.config import ProviderSettings, Wake
from coatcheck.config.names import provider_variable
from coatcheck.core.operation import RemoteJobId
from coatcheck.provider.port import Absent, Denied, Look, Nonsense, Seen, StillWaiting, Transient
from coatcheck.seams import Seams
from coatcheck.store.surroundings import Surroundings

NOBODY = RemoteJobId("coatcheck-doctor-asks-for-no-job")
CLOCK_S = 1.0
SNAPSHOT_S = 600.0


def line_checks(found: Surroundings, wake: Wake) -> Iterator[Check]:
    """What the way to the server is like."""
    yield _pooler(found, wake)
    yield _tcp(found)
    yield judged(
        "clock",
        f"the database is {abs(found.clock_ahead_s):.1f} s {'ahead' if found.clock_ahead_s > 0 else 'behind'}"
        if found.clock_ahead_s
        else "the database's and this host's agree",
        f"within {CLOCK_S:g} s; no rule rests on it, but what services date is compared",
        holds=abs(found.clock_ahead_s) <= CLOCK_S,
        remedy="synchronise both with NTP",
    )
    hidden = f"; {found.hidden_count} more that this role may not see" if found.hidden_count else ""
    yield judged(
        "oldest snapshot",
        f"{found.snapshot_age_s:.0f} s{hidden}",
        f"at most {SNAPSHOT_S:g} s: what is older keeps dead rows, and every statement slows down",
        holds=found.snapshot_age_s <= SNAPSHOT_S,
        remedy="end the transaction: pg_stat_activity names its session",
    )
    yield judged(
        "isolation",
        found.isolation,
        "read committed",
        holds=found.isolation == "read committed",
        otherwise=Verdict.FAILED,
        remedy="alter role … set default_transaction_isolation = 'read committed', for the role of the workers",
    )


def _pooler(found: Surroundings, wake: Wake) -> Check:
    limit = "none, or in session mode; in transaction mode COATCHECK_WAKE=poll, and prepared statements that pass"
    if not found.keeps_prepared:
        return judged(
            "pooler",
            "one in transaction mode, which does not keep what a worker prepares",
            limit,
            holds=False,
            otherwise=Verdict.FAILED,
            remedy="use session mode, or PgBouncer 1.21 or newer with max_prepared_statements above 0",
        )
    if found.is_shared:
        return judged(
            "pooler",
            f"one in transaction mode, and COATCHECK_WAKE={wake}",
            limit,
            holds=wake is Wake.POLL,
            remedy="set COATCHECK_WAKE=poll: notifications do not pass it",
        )
    reading = "one, which lent two sessions at once" if found.is_pooled else "none"
    return judged("pooler", reading, limit, holds=True, remedy="")


def _tcp(found: Surroundings) -> Check:
    """An address can hold these, too, and so switch them off."""
    limit = "keepalives and tcp_user_timeout in force, so that no reply is waited for without end"
    if not found.is_tcp:
        return judged("tcp", "a Unix socket, which needs none", limit, holds=True, remedy="")
    reading = ", ".join(f"{name}={value}" for name, value in found.guards.items())
    is_guarded = found.guards.get("keepalives", "1") != "0" and found.guards.get("tcp_user_timeout", "0") != "0"
    return judged("tcp", reading, limit, holds=is_guarded, remedy="remove keepalives=0 from COATCHECK_DATABASE_URL")


async def provider_check(provider: ProviderSettings, seams: Seams) -> Check:
    """Whether the service answers, and takes the key. The key is never shown."""
    name, limit = f"provider {provider.name}", "BASE_URL and API_KEY where workers run, and a service that answers"
    missing = [
        label for label, value in (("BASE_URL", provider.base_url), ("API_KEY", provider.api_key)) if value is None
    ]
    if missing:
        labels = " and ".join(provider_variable(provider.name, label) for label in missing)
        remedy = f"set {labels} where workers run"
        return judged(name, f"no {' and no '.join(missing)}", limit, holds=False, remedy=remedy)
    if find_spec("aiohttp") is None:
        reading, remedy = "BASE_URL and API_KEY are set; it was not asked", "pip install 'coatcheck[worker]'"
        return judged(name, reading, limit, holds=False, remedy=remedy)
    from coatcheck.app.asking import asking  # noqa: PLC0415 - with the extra of the workers only

    async with asking(provider, seams) as ask:
        return _answered(provider, name, limit, await ask.look(NOBODY))


def _answered(provider: ProviderSettings, name: str, limit: str, look: Look) -> Check:
    match look:
        case Absent() | Seen() | StillWaiting() | Nonsense():
            return judged(name, "BASE_URL and API_KEY are set, and it answers", limit, holds=True, remedy="")
        case Denied():
            key = provider_variable(provider.name, "API_KEY")
            reading, remedy = (
                f"it answers {look.status} to the key",
                f"correct {key}, or ask the service for its rights",
            )
        case Transient() if look.cause.startswith("status_"):
            reading = f"it answers {look.cause.removeprefix('status_')}"
            return judged(name, reading, limit, holds=False, remedy="look again later, or ask the service")
        case Transient():
            url = provider_variable(provider.name, "BASE_URL")
            reading, remedy = f"it does not answer: {look.cause}", f"correct {url}, or let the firewall pass"
        case _:
            assert_never(look)
    return judged(name, reading, limit, holds=False, otherwise=Verdict.FAILED, remedy=remedy)
