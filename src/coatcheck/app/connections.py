"""How many PostgreSQL connections workers take, and whether the server has room for them. One worker's number is fixed by its settings.

Too few is never unsafe: what a worker cannot save waits as in an outage. But it would limp for as long as it runs, so where they can never fit
it does not start; where they do not fit at the moment, which may pass, it starts and says so.
"""

from coatcheck.app.check import Check, Verdict, judged
from coatcheck.config import Settings, Wake
from coatcheck.errors import Refused
from coatcheck.store.connection_room import Room

LINES = 6
"""Marks, money, looks, reads, leases, and one aside for what may have to wait."""


def connections_of(settings: Settings, *, has_health: bool = False) -> int:
    """How many one worker process takes: one more where it listens for notifications, and one more with a port for machines."""
    return LINES + (settings.wake is Wake.NOTIFY) + has_health


def check_room(room: Room, *, processes: int, each_count: int) -> str | None:
    """What to warn of, or None where all is well. Raises `Refused` where so many processes can never have so many connections each."""
    needed_count, ever, now = processes * each_count, room.ever, room.now
    needed = needed_in_words(processes, each_count)
    if ever.most_count < needed_count:
        fitting = ever.most_count // each_count
        fewer = f"lower --processes to {fitting}, or " if processes > 1 and fitting else ""
        raise Refused(
            f"expected room for {needed}, got {ever.most_count} at most ({ever.words})",
            next=f"{fewer}{ever.remedy}; COATCHECK_WAKE=poll saves one each, and so does no --health-port",
        )
    if now.free_count < needed_count:
        return f"{needed} are needed and {now.free_count} are free ({now.words}, {now.taken_count} taken): close others, or {now.remedy}"
    return None


def needed_in_words(processes: int, each_count: int) -> str:
    """As `14 connections to PostgreSQL (2 processes, 7 each)`."""
    parts = f" ({processes} processes, {each_count} each)" if processes > 1 else ""
    return f"{processes * each_count} connections to PostgreSQL{parts}"


def room_check(room: Room, each_count: int, *, is_pooled: bool) -> Check:
    """Doctor's line about it: for how many more worker processes there is room."""
    name, limit = "connections", f"{each_count} for each worker process"
    if is_pooled:
        reading = "a pooler's, whose limits cannot be seen from here"
        limit += ", in max_client_conn and in the pool's size"
        return judged(name, reading, limit, holds=True, remedy="")
    now, ever = room.now, room.ever
    reading = f"{now.free_count} free ({now.words}, {now.taken_count} taken): room for {now.free_count // each_count} more worker processes"
    if ever.most_count < each_count:
        reading = f"{ever.most_count} at most ({ever.words})"
        return judged(name, reading, limit, holds=False, otherwise=Verdict.FAILED, remedy=ever.remedy)
    return judged(name, reading, limit, holds=now.free_count >= each_count, remedy=f"close others, or {now.remedy}")
