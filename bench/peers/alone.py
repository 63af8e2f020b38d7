"""What the requests of the workflow take by themselves: no queue, no database, as the peers make them and as coatcheck does.

So this tells what of a contestant's time goes to anything else. It flatters both a little: no PostgreSQL takes its part of the cores, and the clock stops
when the service has answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers import gauges
from bench.peers.contestants import PROGRAMS, Contestant
from bench.peers.program import Task, running
from bench.peers.service import LOOKS
from bench.peers.stage import Stage, serving
from bench.peers.trial import LISTEN_S, OPERATIONS_A_SECOND, PATIENCE_S, wrong
from coatcheck.errors import Failed

AT_ONCE = 50
"""Jobs in hand. Of 50, 100, 200, 400 and 800 the peers' requests were quickest with 50, coatcheck's about as quick with each."""


def _alone(name: str, requirements: str, program: str) -> Contestant:
    return Contestant(
        name=name,
        requirements=requirements,
        package="aiohttp",
        program=PROGRAMS / program,
        set_ups=[{"concurrency": AT_ONCE}],
        done="",
        saved="",
    )


ALONE: Sequence[Contestant] = (
    _alone(f"requests alone, as coatcheck makes them, {AT_ONCE} at once", "coatcheck", "alone_as_coatcheck.py"),
    _alone(f"requests alone, as the peers make them, {AT_ONCE} at once", "pgqueuer", "alone_as_peers.py"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What they took; processor time in microseconds for each operation."""

    name: str
    operations: int
    seconds: float
    client_cpu_us: float
    service_cpu_us: float

    @property
    def per_second(self) -> float:
        """Operations a second, a POST and two looks each."""
        return self.operations / self.seconds


def measured_alone(stage: Stage, task: Task) -> Requests:
    """Make them all. Raises `Failed` unless each operation had one POST and was looked at until it was done."""
    name, each = task.contestant.name, task.operations
    with serving(stage.seams, each) as service:
        with running(stage, task, "work", database_url="", service_url=service.url) as program:
            if not program.is_ready:
                raise Failed(f"expected {name} to be ready, got: {program.last_words()}", next="mend it")
            before = gauges.read(stage, program.process.pid, service.pid)
            program.go()
            ends_at = before.at + PATIENCE_S + each / OPERATIONS_A_SECOND
            while not service.is_done(LISTEN_S):
                if program.has_ended or stage.seams.clock.boottime() > ends_at:
                    raise Failed(
                        f"expected {name} to be done, got {service.tally()}: {program.last_words()}", next="mend it"
                    )
            after = gauges.read(stage, program.process.pid, service.pid)
        # the program is gone: what it may have sent too often is told here
        tally = service.tally()
    fault = wrong(tally, each)
    if not fault and tally["looks"] != LOOKS * each:
        fault = f"expected {LOOKS} looks at each of {each} operations, got {tally['looks']} in all"
    if fault:
        raise Failed(f"{name}: {fault}", next="mend it")
    return Requests(
        name=name,
        operations=each,
        seconds=tally["last_done_at"] - tally["first_post_at"],
        client_cpu_us=(after.worker_cpu_s - before.worker_cpu_s) / each * 1e6,
        service_cpu_us=(after.service_cpu_s - before.service_cpu_s) / each * 1e6,
    )
