"""What an operation waits for, read from its messages: who has it in hand, why it is not due yet, and what would wake it."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from coatcheck.app.story.telling import Row, Telling
from coatcheck.app.story.wording import count, quoted
from coatcheck.core.operation import Phase

_UNCLAIMED: Final = timedelta(seconds=60)
"""After so long a due message that nobody took is worth a word."""

_WAITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "throttled": "the service said that it has too much to do",
        "not_sent": "no connection to the service came about",
        "pause": "the dispatches of its account are paused, and it goes on by itself when the account is resumed",
        "allowance": "the tenant's allowance has no room for its estimate, and it goes on by itself when there is room: after a top-up, or when"
        " what others hold is released",
        "cap": "as much of its account was in flight as may be, and it tries again in a moment",
        "rate": "the dispatches a second of its account were used up, and its turn comes by itself",
        "active": "the service is still working on it",
        "transient": "the last look brought no usable answer",
        "denied": "the service refused the last look, as it does with a wrong key",
        "nonsense": "the last look brought an answer that makes no sense",
        "not_found": "the service did not know the job at the last look, which it may yet",
        "no_output": "the service calls it a success, and no output is there yet",
        "accounting": "the render is over, and the service has not said yet what it charges",
        "source_expired": "the address of an output has expired, and a fresh one is needed",
        "lookup": "the service is asked which jobs it made for this very request, which costs nothing",
        "delivery_failed": "the last try to fetch or store an output failed",
    }
)
_KEPT_BACK: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("dispatch", "pause"): "its dispatches are paused, and it goes on when a person resumes them",
        ("dispatch", "shut"): "the service asked not to be sent anything for a while, and it goes on by itself",
        (
            "dispatch",
            "cap",
        ): "as much is in flight as may be, and it goes on by itself when something of that ends; a doubt ends when it is decided",
        ("dispatch", "rate"): "its dispatches a second are used up, and its turn comes by itself",
        (
            "observe",
            "pause",
        ): "looks at its jobs are paused, and they go on when a person resumes them, or by themselves where nobody paused them",
        ("observe", "shut"): "the service asked not to be looked at for a while, and it goes on by itself",
        ("observe", "rate"): "its looks a second are used up, and its turn comes by itself",
    }
)
"""Why an account keeps back what is due, by action and reason."""
_PARKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lease_count": "several workers in a row took it and never reported back, so it was set aside instead of being handed to the next",
        "specification": "the text that is to be sent is not the text that was approved (its hash differs), so it is not sent",
    }
)
_ACTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dispatch": "the dispatch",
        "observe": "the next look at the remote job",
        "reconcile": "the end of the request",
        "deliver": "the delivery of output",
    }
)


def waiting(telling: Telling) -> tuple[str, ...]:
    """A sentence for each message that says more than that a person must decide."""
    return tuple(line for message in telling.kept["messages"] for line in _waits(telling, message))


def is_unclaimed(telling: Telling, message: Row) -> bool:
    """Whether nobody took it for a while, although nothing keeps it back."""
    is_held = message["parked_at"] is not None or (
        message["leased_by"] is not None and message["visible_at"] > telling.now
    )
    is_kept_back = (message["action"], message.get("account_wait") or "") in _KEPT_BACK
    return not is_held and not is_kept_back and telling.now - message["visible_at"] > _UNCLAIMED


def _waits(telling: Telling, message: Row) -> tuple[str, ...]:
    what = _ACTIONS.get(message["action"], "the next step")
    if message["action"] == "reconcile" and telling.operation.phase is Phase.UNCERTAIN:
        what = "the search for its job"
    subject = f"{what} {message['lane'] - 1}" if message["action"] == "deliver" else what
    begins = subject[0].upper() + subject[1:]
    if message["parked_at"] is not None:
        known = _PARKS.get(message["park_reason"])
        return (
            ()
            if known is None
            else (f"{begins} waits for a person since {telling.at(message['parked_at'])}: {known}.",)
        )
    if message["leased_by"] is not None and message["visible_at"] > telling.now:
        worker = "A worker" if telling.for_tenant else f"The worker {quoted(message['leased_by'])}"
        return (
            f"{worker} has {subject} in hand; if it reports nothing by {telling.at(message['visible_at'])}, another one takes over.",
        )
    return (*_ground(telling, message, subject), _due(telling, message, begins))


def _ground(telling: Telling, message: Row, subject: str) -> tuple[str, ...]:
    if message["wait_reason"] is None:
        not_before = telling.operation.not_before_at
        early = message["action"] == "dispatch" and not_before is not None and not_before > telling.now
        return (f"It must not be sent before {telling.at(not_before)}.",) if early and not_before is not None else ()
    known = _WAITS.get(message["wait_reason"], f"the recorded reason is {quoted(message['wait_reason'])}")
    since = "" if message["wait_since_at"] is None else f" since {telling.at(message['wait_since_at'])}"
    tries = "" if message["wait_count"] < 2 else f", {count(message['wait_count'], 'time')} in a row"  # noqa: PLR2004 - one is no row
    return (f"{subject[0].upper()}{subject[1:]} waits{since}{tries}: {known}.",)


def _due(telling: Telling, message: Row, begins: str) -> str:
    when = telling.at(message["visible_at"])
    if message["visible_at"] > telling.now:
        return f"{begins} is due at {when}."
    kept_back = _KEPT_BACK.get((message["action"], message.get("account_wait") or ""))
    if kept_back is not None:
        return f"{begins} is due since {when} and kept back by its account: {kept_back}."
    if is_unclaimed(telling, message):
        asking = f'a worker for the provider {quoted(message["provider"])} with the role "{message["action"]}"'
        return f"{begins} is due since {when} and nobody took it: is {asking} running?"
    return f"{begins} is due since {when}; the next free worker takes it."
