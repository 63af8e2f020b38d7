"""A worker holds a socket for each render it waits for: the usual soft limit of 1,024 descriptors is less than its places."""

import resource
from pathlib import Path

_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
SPARE = 200
"""Descriptors besides those of the actions in hand: connections, files, what libraries open."""


def raise_limit(actions: int) -> tuple[int, int]:
    """Raise the soft limit of open files to the hard one, and return what `actions` at once need and what there is now.

    `needed, limit = raise_limit(1_000)`. A need above the limit is for the caller to tell.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return actions + SPARE, hard


def port_count() -> int | None:
    """How many connections one machine can have to one address at a time; None where the system does not tell."""
    try:
        first, last = map(int, _PORTS.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return last - first + 1
