"""A worker's measures in Prometheus' text format 0.0.4: what it did itself, and what the database says of all.

What the database did not tell just now is left out: an old number would look like a new one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum

from coatcheck.core.actions import Action
from coatcheck.store.stats import AccountStats, Stats
from coatcheck.workers.tally import Duration, Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Number = int | float | Decimal
_Sample = tuple[Mapping[str, str], _Number]
_ALL: Mapping[str, str] = {}


class _Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


def exposition(incarnation: str, version: str, tally: Tally, stats: Stats | None) -> str:
    """The whole answer to one scrape. `stats` None: the database did not answer."""
    lines = [
        *_own(incarnation, version, tally),
        *_family("database_up", _UP, _Kind.GAUGE, [(_ALL, int(stats is not None))]),
    ]
    if stats is not None:
        lines += [*_queues(stats), *_doubts(stats), *_accounts(stats.accounts)]
    return "".join(f"{line}\n" for line in lines)


_UP = "Whether the database answered this scrape; if not, what it would have told is missing."


def _own(incarnation: str, version: str, tally: Tally) -> Iterator[str]:
    """Counts since this worker began. One that begins anew counts from zero, which Prometheus expects."""
    about = {"incarnation": incarnation, "version": version}
    yield from _family("worker_info", "This worker.", _Kind.GAUGE, [(about, 1)])
    yield from _family(
        "worker_stale_total",
        "Writes of this worker that came too late and were refused.",
        _Kind.COUNTER,
        _by("cause", tally.stale),
    )
    yield from _family(
        "worker_lease_renewal_failures_total",
        "Leases that this worker lost while it worked.",
        _Kind.COUNTER,
        [(_ALL, tally.lease_renewal_failures)],
    )
    durations = dict(tally.durations)
    yield from _durations(durations)
    longest = {action: each.max_ms / 1000 for action, each in durations.items()}
    yield from _family(
        "worker_action_max_seconds", "The longest action of this worker.", _Kind.GAUGE, _by("action", longest)
    )


def _durations(durations: Mapping[str, Duration]) -> Iterator[str]:
    name = "worker_action_seconds"
    yield from _family(name, "How long actions of this worker took.", _Kind.SUMMARY, [])
    for action, each in durations.items():
        yield _line(f"{name}_count", {"action": action}, each.count)
        yield _line(f"{name}_sum", {"action": action}, each.total_ms / 1000)


def _queues(stats: Stats) -> Iterator[str]:
    """What waits, and for whom. Each action has a sample also when nothing waits for it, so that a graph falls to zero."""
    ages = {action.value: stats.queue_age_by_action_s.get(action, 0.0) for action in Action}
    due = {action.value: stats.due.get(action, 0) for action in Action}
    yield from _family(
        "queue_age_seconds",
        "How long the oldest message has been due without being leased.",
        _Kind.GAUGE,
        _by("action", ages),
    )
    yield from _family("due_messages", "Messages that are due.", _Kind.GAUGE, _by("action", due))
    yield from _family(
        "unclaimed_messages",
        "Messages that no worker took within a minute, though it might have.",
        _Kind.GAUGE,
        [(_ALL, stats.unclaimed_count)],
    )
    yield from _family("waiting_messages", "Messages that wait.", _Kind.GAUGE, _by("reason", stats.waiting))
    yield from _family(
        "account_waiting_messages",
        "Messages that are due and that nobody may take, because their account is paused, shut, full or out of budget.",
        _Kind.GAUGE,
        _by("reason", stats.account_waits),
    )
    yield from _family("parked_messages", "Messages set aside for a person.", _Kind.GAUGE, _by("reason", stats.parked))
    yield from _family(
        "remote_render_age_seconds",
        "Since its acceptance, the oldest remote job that is not final.",
        _Kind.GAUGE,
        [(_ALL, stats.remote_render_age_s)],
    )
    yield from _family("workers", "Workers that reported lately.", _Kind.GAUGE, [(_ALL, stats.worker_count)])


def _doubts(stats: Stats) -> Iterator[str]:
    """What a person has to decide, and the money."""
    yield from _family(
        "uncertain_operations",
        "Operations whose POST has an unknown end.",
        _Kind.GAUGE,
        [(_ALL, stats.uncertain_count)],
    )
    yield from _family(
        "uncertain_age_seconds", "Since the POST of the oldest of them.", _Kind.GAUGE, [(_ALL, stats.uncertain_age_s)]
    )
    yield from _family(
        "uncertain_held_amount", "What uncertain operations hold.", _Kind.GAUGE, _by("unit", stats.uncertain_held)
    )
    yield from _family("held_amount", "What all unfinished operations hold.", _Kind.GAUGE, _by("unit", stats.held))
    yield from _family(
        "orphans", "Paid jobs that no operation could take, unresolved.", _Kind.GAUGE, [(_ALL, stats.orphan_count)]
    )


_OF_ACCOUNTS: Sequence[tuple[str, str, Callable[[AccountStats], _Number | None]]] = (
    (
        "in_flight",
        "Operations that its service may be working on; counted under a limit.",
        lambda it: it.in_flight_count,
    ),
    ("in_flight_limit", "As many may be in flight.", lambda it: it.max_in_flight),
    ("uncertain_operations", "Of its operations, those whose POST has an unknown end.", lambda it: it.uncertain_count),
    ("dispatches_per_second_limit", "POSTs a second at most.", lambda it: it.dispatches_per_s),
    ("looks_per_second_limit", "GETs of jobs a second at most.", lambda it: it.looks_per_s),
    ("look_age_seconds", "How long its oldest look has been due.", lambda it: it.look_age_s),
    ("doubts", "Dispatches in a row that ended in doubt.", lambda it: it.doubt_count),
    ("failed_looks", "Looks in a row that failed.", lambda it: it.failed_look_count),
)


def _accounts(accounts: Sequence[AccountStats]) -> Iterator[str]:
    """A limit that there is not has no sample: 0 would be one."""
    for name, text, read in _OF_ACCOUNTS:
        readings = ((each.account, read(each)) for each in accounts)
        samples = [({"account": account}, value) for account, value in readings if value is not None]
        yield from _family(f"account_{name}", text, _Kind.GAUGE, samples)
    yield from _family(
        "account_due_messages",
        "Its dispatches and looks that are due.",
        _Kind.GAUGE,
        _apart(accounts, lambda it: (it.due_dispatch_count, it.due_look_count)),
    )
    yield from _family(
        "account_paused",
        "Whether it is paused.",
        _Kind.GAUGE,
        _apart(accounts, lambda it: (it.dispatch_paused_at is not None, it.observation_paused_at is not None)),
    )
    yield from _family(
        "account_shut",
        "Whether its service asked for patience.",
        _Kind.GAUGE,
        _apart(accounts, lambda it: (it.dispatch_shut_until is not None, it.look_shut_until is not None)),
    )


def _apart(accounts: Sequence[AccountStats], read: Callable[[AccountStats], tuple[int, int]]) -> list[_Sample]:
    """Two samples of an account, for its dispatches and for its looks."""
    return [
        ({"account": each.account, "of": of}, int(value))
        for each in accounts
        for of, value in zip(("dispatch", "observation"), read(each), strict=True)
    ]


def _by(label: str, values: Mapping[str, _Number]) -> list[_Sample]:
    return [({label: name}, value) for name, value in values.items()]


def _family(name: str, text: str, kind: _Kind, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP coatcheck_{name} {text}"
    yield f"# TYPE coatcheck_{name} {kind}"
    for labels, value in samples:
        yield _line(name, labels, value)


def _line(name: str, labels: Mapping[str, str], value: _Number) -> str:
    inside = ",".join(f'{label}="{_escaped(each)}"' for label, each in labels.items())
    return f"coatcheck_{name}{'{' + inside + '}' if inside else ''} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
