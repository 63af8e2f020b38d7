"""What a run costs, read from outside and in the same way for every contestant: the kernel's and PostgreSQL's own accounts."""

import os
from dataclasses import dataclass
from pathlib import Path

from bench.peers.stage import Stage

COMMITS = "select xact_commit + xact_rollback from pg_stat_database where datname = %(name)s"
ALONE = "select count(*) from pg_stat_activity where datname = %(name)s"
WAL = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
SETTLE_S = 0.01
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _CHILDREN_SYSTEM = 1, 11, 14
"""Places in /proc/PID/stat, counted from the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where the accounts stand."""

    at: float
    wal_bytes: int
    worker_cpu_s: float
    server_cpu_s: float
    service_cpu_s: float


def read(stage: Stage, worker: int, service: int) -> Reading:
    """Read all accounts but that of commits, which is complete only when the worker has gone."""
    at = stage.seams.clock.boottime()
    return Reading(
        at=at,
        worker_cpu_s=_tree_cpu_s(worker),
        server_cpu_s=_tree_cpu_s(stage.server.pid or 0),
        service_cpu_s=_tree_cpu_s(service),
        wal_bytes=stage.figure(WAL),
    )


def commits(stage: Stage, database: str) -> int:
    """The database's transactions so far. Waits until nobody is connected: backends report when they end."""
    while stage.figure(ALONE, {"name": database}):
        stage.seams.pause(SETTLE_S)
    return stage.figure(COMMITS, {"name": database})


def peak_kib(pid: int) -> int:
    """The most memory that the process held at once."""
    status = Path(f"/proc/{pid}/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0])
    return 0


def statements(log: bytes, database: str) -> int:
    """How many statements the server logged for the database, BEGIN and COMMIT included: each is a round trip or part of one."""
    begins = tuple(f"{database} LOG:  {kind}".encode() for kind in ("statement: ", "execute "))
    return sum(line.startswith(begins) for line in log.splitlines())


def _tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process and its children, those that have ended and those that live."""
    processes = [_stat(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    ticks = 0
    for known in processes:
        if known is None:
            continue
        number, fields = known
        if number == pid or int(fields[_PARENT]) == pid:
            ticks += sum(int(field) for field in fields[_USER : _CHILDREN_SYSTEM + 1])
    return ticks * TICK_S


def _stat(entry: Path) -> tuple[int, list[str]] | None:
    try:
        text = (entry / "stat").read_text()
    except OSError:  # it ended meanwhile
        return None
    return int(entry.name), text.rpartition(")")[2].split()
