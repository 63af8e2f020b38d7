"""One run of one contestant: a fresh database is filled, a worker drains it, and nothing counts unless every operation is right.

Right means: one POST for each operation at the service, one saved id and one recorded success for each in the contestant's own tables, and
a job that was looked at until it was done. The clock runs from the first POST to the last row; imports, connections and polling before the
first POST cost nobody anything but are told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.peers import gauges
from bench.peers.gauges import Reading
from bench.peers.program import Program, Task, running
from bench.peers.stage import Service, Stage, serving
from coatcheck.errors import Failed

PATIENCE_S = 60.0
"""How long a worker has, and a second more for every twenty operations."""
OPERATIONS_A_SECOND = 20
ASK_EVERY_S = 0.01
LISTEN_S = 0.2
OWN_COMMITS = 1
"""Of the connection that waits for the last row, besides one for each time that it asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of it. `problem` is why it does not count; costs are per operation, CPU in microseconds."""

    contestant: str
    set_up: Mapping[str, Any]
    operations: int
    problem: str = ""
    seconds: float = 0.0
    start_s: float = 0.0
    commits: float = 0.0
    wal_bytes: float = 0.0
    worker_cpu_us: float = 0.0
    server_cpu_us: float = 0.0
    service_cpu_us: float = 0.0
    peak_mib: float = 0.0
    statements: float | None = None

    @property
    def per_second(self) -> float:
        """Operations a second; 0 if the run does not count."""
        return self.operations / self.seconds if self.seconds and not self.problem else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """What was read while it ran."""

    before: Reading
    after: Reading
    asked: int
    peak_kib: int
    tally: Mapping[str, Any]
    problem: str


def ran(stage: Stage, task: Task, *, counting: bool = False) -> Trial:
    """Run it. With `counting` the server logs every statement: such a run is slow and only its statements are of use."""
    url = stage.fresh(task.database)
    fault = _filled(stage, task, url)
    if fault:
        return _failed(task, f"the queue was not filled: {fault}")
    commits_before = gauges.commits(stage, task.database)
    if counting:
        _log_statements(stage, task.database)
    logged = stage.log.stat().st_size
    with serving(stage.seams, task.operations) as service:
        course = _course(stage, task, url, service)
    made = gauges.commits(stage, task.database) - commits_before - course.asked - OWN_COMMITS
    spoken = gauges.statements(stage.log.read_bytes()[logged:], task.database) - course.asked if counting else None
    return _trial(task, course, made, spoken)


def _filled(stage: Stage, task: Task, url: str) -> str:
    """Fill the queue, and let PostgreSQL know what is in it, as autovacuum would have within a minute: why it could not be done."""
    with running(stage, task, "fill", database_url=url) as program:
        if program.process.wait() != 0:
            return program.last_words()
    stage.analyze(url)
    return ""


def _course(stage: Stage, task: Task, url: str, service: Service) -> _Course:
    with running(stage, task, "work", database_url=url, service_url=service.url) as program:
        if not program.is_ready:
            raise Failed(f"expected {task.contestant.name} to be ready, got: {program.last_words()}", next="mend it")
        before = gauges.read(stage, program.process.pid, service.pid)
        program.go()
        ends_at = before.at + PATIENCE_S + task.operations / OPERATIONS_A_SECOND
        asked, problem = _awaited(stage, task, url, service, program, ends_at)
        after = gauges.read(stage, program.process.pid, service.pid)
        peak_kib = gauges.peak_kib(program.process.pid)
        if program.has_ended:
            problem = f"its worker ended: {program.last_words()}"
    # the worker is gone: what it may have sent twice is told here
    tally = service.tally()
    return _Course(
        before=before,
        after=after,
        asked=asked,
        peak_kib=peak_kib,
        tally=tally,
        problem=problem or wrong(tally, task.operations),
    )


def _awaited(stage: Stage, task: Task, url: str, service: Service, program: Program, ends_at: float) -> tuple[int, str]:
    """Wait until the service and then the database say that all is done: how often the latter was asked, and what is wrong."""

    def is_over() -> bool:
        return program.has_ended or stage.seams.clock.boottime() > ends_at

    while not service.is_done(LISTEN_S):
        if is_over():
            return 0, f"not done in time: {service.tally()}"
    query = f"select ({task.contestant.done}), ({task.contestant.saved})"
    asked, found = 0, (0, 0)
    with psycopg.connect(url, autocommit=True) as connection:
        while found != (task.operations, task.operations):
            if is_over():
                return asked, f"expected {task.operations} successes and ids, got {found[0]} and {found[1]}"
            stage.seams.pause(ASK_EVERY_S)
            row = connection.execute(query.encode()).fetchone()
            asked, found = asked + 1, (row[0], row[1]) if row else found
    return asked, ""


def wrong(tally: Mapping[str, Any], operations: int) -> str:
    """What the service says against the run."""
    if tally["posts"] != operations or tally["operations"] != operations or tally["repeated"]:
        return f"expected one POST for each of {operations} operations, got {tally['posts']} for {tally['operations']}"
    return ""


def _trial(task: Task, course: _Course, commits: int, statements: int | None) -> Trial:
    before, after, each = course.before, course.after, task.operations
    began_at = course.tally["first_post_at"] or before.at
    return Trial(
        contestant=task.contestant.name,
        set_up=task.set_up,
        operations=each,
        problem=course.problem,
        seconds=after.at - began_at,
        start_s=began_at - before.at,
        commits=commits / each,
        wal_bytes=(after.wal_bytes - before.wal_bytes) / each,
        worker_cpu_us=(after.worker_cpu_s - before.worker_cpu_s) / each * 1e6,
        server_cpu_us=(after.server_cpu_s - before.server_cpu_s) / each * 1e6,
        service_cpu_us=(after.service_cpu_s - before.service_cpu_s) / each * 1e6,
        peak_mib=course.peak_kib / 1024,
        statements=None if statements is None else statements / each,
    )


def _failed(task: Task, problem: str) -> Trial:
    return Trial(contestant=task.contestant.name, set_up=task.set_up, operations=task.operations, problem=problem)


def _log_statements(stage: Stage, database: str) -> None:
    with psycopg.connect(stage.admin_url, autocommit=True) as connection:
        connection.execute(f"alter database \"{database}\" set log_statement = 'all'".encode())
