"""A worker's measures in Prometheus' text format 0.0.4: what it did itself, and what the database says of all.

What the database did not tell just now is left out: an old number would look like a new one.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum

from coatcheck.core.actions import Action
from coatcheck.store.stats import Stats
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
        lines += [*_queues(stats), *_doubts(stats)]
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
        "unclaimed_messages", "Messages that nobody took within a minute.", _Kind.GAUGE, [(_ALL, stats.unclaimed_count)]
    )
    yield from _family("waiting_messages", "Messages that wait.", _Kind.GAUGE, _by("reason", stats.waiting))
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
