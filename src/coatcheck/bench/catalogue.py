"""Every measurement there is, by name, in the order in which they run: what others rest on comes first. Each lies in a module of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coatcheck.bench import (
    acceptance,
    claims,
    costs,
    crew,
    enqueueing,
    flight,
    herd,
    idle,
    lifecycle,
    recovery,
    restart,
    starting,
)
from coatcheck.bench.figure import Figure
from coatcheck.bench.ground import Ground
from coatcheck.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What `--list` says of it, and how it is taken."""

    summary: str
    measure: Callable[[Ground], Sequence[Figure]]


MEASUREMENTS: Mapping[str, Measurement] = {
    "lifecycle": Measurement(
        summary="whole lives a second from a full queue, POSTs and rows compared", measure=lifecycle.measure
    ),
    "processes": Measurement(
        summary="the same of 1, 2 and 4 workers of one command, and their connections", measure=crew.measure
    ),
    "acceptance": Measurement(
        summary="last byte of the reply to committed id, at 70 % of that load", measure=acceptance.measure
    ),
    "start": Measurement(summary="enqueue to POST begun, at 50 a second", measure=starting.measure),
    "enqueue": Measurement(
        summary="enqueues a second, by driver, one and many in a transaction", measure=enqueueing.measure
    ),
    "held": Measurement(summary="renders in flight on long polls, and their memory", measure=flight.held),
    "polled": Measurement(
        summary="renders in flight that are asked for now and then, and their memory", measure=flight.polled
    ),
    "herd": Measurement(
        summary="looks a second after an outage of the service, all renders waiting for it", measure=herd.measure
    ),
    "costs": Measurement(summary="statements, commits, rows and log of one operation", measure=costs.measure),
    "idle": Measurement(summary="statements a second of a worker with nothing to do", measure=idle.measure),
    "claims": Measurement(
        summary="claiming, while the store holds many operations that are over", measure=claims.measure
    ),
    "kill": Measurement(summary="until a killed worker's operations go on", measure=recovery.measure),
    "restart": Measurement(summary="until work goes on after a crash of PostgreSQL", measure=restart.measure),
}


def chosen(names: Sequence[str]) -> Mapping[str, Measurement]:
    """Those of these names, in the order of the catalogue; all of them for none. Raises `Refused` for a name that there is not."""
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        raise Refused(
            f"expected names of measurements, got {unknown[0]!a}", next=f"name some of {', '.join(MEASUREMENTS)}"
        )
    return {name: each for name, each in MEASUREMENTS.items() if not names or name in names}
