"""How long to wait, as arithmetic: given counts, ages and chance, never asking for them."""

from dataclasses import replace
from typing import assert_never

from coatcheck.core import events as ev
from coatcheck.core.actions import WaitReason

FIRST_S = 1.0
SHORTEST_S = 0.1
CAP_S = 60.0
_AGE_SHARE = 0.1
_LOOK_CAP_S = 60.0
_SPREAD = 0.2


def backoff_s(count: int, chance: float, *, first_s: float = FIRST_S, cap_s: float = CAP_S) -> float:
    """Doubling from `first_s` to `cap_s` with the number of tries in a row; `chance` in [0, 1] takes up to a fifth away."""
    grown: float = min(cap_s, first_s * 2.0 ** min(count, 30))
    return grown * (1 - _SPREAD * chance)


def look_delay_s(age_s: float, floor_s: float, chance: float) -> float:
    """Until the next look at a render of this age: a tenth of the age, between the service's floor and a minute, spread by chance."""
    wanted = max(floor_s, min(_LOOK_CAP_S, age_s * _AGE_SHARE))
    return wanted * (1 + _SPREAD * chance)


def with_delays(reply: ev.Reply, waited: ev.Waited, chance: float, *, observe_for_s: float) -> ev.Reply:
    """The reply, saying also how long a return to `prepared` waits and how long an accepted job is observed, in seconds."""
    match reply:
        case ev.Throttled():
            count = waited.count if waited.reason == WaitReason.THROTTLED else 0
            asked_s = reply.retry_after_s
            # a service that asks for no delay at all is still not asked in a tight loop
            floor_s = backoff_s(count, chance, first_s=FIRST_S if asked_s is None else SHORTEST_S)
            return replace(reply, delay_s=max(asked_s or 0.0, floor_s))
        case ev.NotSent():
            count = waited.count if waited.reason == WaitReason.NOT_SENT else 0
            return replace(reply, delay_s=backoff_s(count, chance))
        case ev.Accepted() | ev.FailedWithId():
            return replace(reply, observe_for_s=observe_for_s)
        case ev.Rejected() | ev.Doubted():
            return reply
        case _:
            assert_never(reply)
