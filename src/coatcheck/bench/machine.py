"""On what a run measured: figures of another machine, or of another day on this one, are not compared with it."""

import os
import platform
from dataclasses import dataclass
from datetime import datetime

from coatcheck.bench.kernel import machine_memory_bytes
from coatcheck.seams import loop_name
from coatcheck.version import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """As the JSON shows it."""

    cores: int
    memory_bytes: int
    system: str
    python: str
    event_loop: str
    """Of the workers, without its version."""
    postgresql: str
    coatcheck: str
    date: datetime


def described(postgresql: str, date: datetime) -> Machine:
    """This machine, with that server, now."""
    return Machine(
        cores=os.cpu_count() or 1,
        memory_bytes=machine_memory_bytes(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        event_loop=loop_name(),
        postgresql=postgresql,
        coatcheck=VERSION,
        date=date,
    )
