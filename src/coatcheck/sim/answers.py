"""Replies that a fault puts in place of the usual one, whatever was asked for: a status, a throttle, a redirect."""

from datetime import datetime, timedelta
from email.utils import format_datetime
from urllib.parse import urlencode

from coatcheck.sim.faults import Fault
from coatcheck.sim.kinds import Kind
from coatcheck.sim.replies import Plain, Reply, error_reply, shaped_reply
from coatcheck.sim.requests import Head

_HOP_NAMES = ("hop", "hops", "via", "to")


def scripted_reply(fault: Fault | None, head: Head, now: datetime) -> Reply | None:
    """The reply that `fault` puts in place, None where the usual one stands."""
    if fault is None:
        return None
    code, message = fault.code or f"simulated_{fault.status}", fault.message or "the script asked for this"
    match fault.kind:
        case Kind.STATUS:
            return shaped_reply(fault.status, fault.form, code, message, retry_after(fault, now))
        case Kind.THROTTLED:
            return error_reply(fault.status, "rate_limited", "slow down", retry_after(fault, now))
        case Kind.REDIRECT:
            return redirect(head, hop=0, hops=fault.hops, status=fault.status, to=fault.to)
        case _:
            return None


def retry_after(fault: Fault, now: datetime) -> tuple[tuple[str, str], ...]:
    """The header as scripted: a date, or any text at all."""
    if fault.retry_after_date_s is not None:
        return (("Retry-After", format_datetime(now + timedelta(seconds=fault.retry_after_date_s), usegmt=True)),)
    return () if fault.retry_after is None else (("Retry-After", fault.retry_after),)


def redirect(head: Head, *, hop: int, hops: int, status: int, to: str | None) -> Reply:
    """The reply of hop number `hop` of a chain. The chain travels in the URL, so no state is kept."""
    query = {name: value for name, value in head.query.items() if name not in _HOP_NAMES}
    query |= {"hop": str(hop + 1), "hops": str(hops), "via": str(status), **({"to": to} if to else {})}
    here = f"{head.path}?{urlencode(query)}"
    location = to if to and hop + 1 >= hops else here
    return Reply(status=status, content_type=None, content=Plain(b""), headers=(("Location", location),))


def next_hop(head: Head) -> Reply | None:
    """The redirect that a request inside a chain gets, None at its end or outside of one."""
    hop, hops, status = (head.query.get(name, "") for name in ("hop", "hops", "via"))
    if not (hop.isdecimal() and hops.isdecimal() and status.isdecimal()) or int(hop) >= int(hops):
        return None
    return redirect(head, hop=int(hop), hops=int(hops), status=int(status), to=head.query.get("to"))


def unauthorized() -> Reply:
    """The answer to a missing or wrong key."""
    return error_reply(401, "unauthorized", "a valid bearer key is required", (("WWW-Authenticate", "Bearer"),))


def not_found() -> Reply:
    """The answer to an unknown job, file or path."""
    return error_reply(404, "not_found", "no such thing")
