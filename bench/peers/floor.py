"""The floor: pgbench runs the project's own statements in batches of a hundred, one client, no HTTP and no Python.

The text of each statement is the file that the worker uses, its parameters are pgbench variables, and its batch is that of an operation which
goes all the way: claimed, marked, concluded, claimed, seen running, claimed, seen done. One more query a batch reads which operations the
claim leased, because pgbench cannot gather rows; pgbench times each statement, so that query's time is left out of the floor.
"""

import os
import re
import resource
import shutil
import subprocess  # noqa: TID251 - for the word PIPE; the seams spawn
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.peers import gauges
from bench.peers.stage import Stage
from coatcheck.devdb import binaries
from coatcheck.errors import Failed, Refused
from coatcheck.queue.leases import ANSWER_LIMIT_BYTES, ROW_BYTES, TEXT_LIMIT_BYTES, TOLD_LIMIT
from coatcheck.store.schema import migrate_up
from coatcheck.store.statements import statement

BATCH = 100
PREPARED = "pgbench"
FILL = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'tenant', 'operation_key', 'picture ' || n,
  'provider', 'genace', 'specification_text', '{"prompt":"picture ' || n || '"}'))
from generate_series(1, %s) as n
"""
DONE = "select count(*) from coatcheck.operations where render_state = 'succeeded'"
GATHER = """
select array_agg(operation_id)::text as ids, array_agg(dispatch_id)::text as dispatch_ids,
  array_agg('job-' || operation_id)::text as job_ids, array_cat(array_agg(operation_id), array_agg(operation_id))::text as twice
from (
  select operation_id, gen_random_uuid() as dispatch_id
  from coatcheck.outbox
  where lane = 0 and action = 'dispatch' and leased_by = 'pgbench'
  order by operation_id) as leased
\\gset
"""
_TOLD = "-c plan_cache_mode=force_generic_plan -c jit=off"
"""What the worker tells the session that claims (`plan_for_any`): with plans of the server's choosing this would be no floor."""
_PARAMETER = re.compile(r"%(?:\((\w+)\)s|%)")
_LATENCY = re.compile(r"^\s+([0-9.]+)\s+[0-9]+\s+\S", re.MULTILINE)
Value = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What pgbench did; costs are per operation. `gather_ms` is the time of the one query a batch that is not the project's."""

    operations: int
    program: str
    batch_ms: float
    gather_ms: float
    commits: float
    wal_bytes: float
    client_cpu_us: float
    server_cpu_us: float

    @property
    def per_second(self) -> float:
        """Operations a second in the project's own statements."""
        return BATCH / self.batch_ms * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One statement of a batch: `same` are the parameters that every batch shares, `told` those that the claim decided."""

    name: str
    room: str
    file: str
    same: Mapping[str, str | None]
    told: Mapping[str, str]


def measured(stage: Stage, operations: int, database: str) -> Floor:
    """Let pgbench take `operations`, rounded to whole batches, through their lives. Raises `Failed` unless all end as succeeded."""
    batches = max(operations // BATCH, 1)
    url = stage.fresh(database)
    _filled(url, batches * BATCH)
    stage.analyze(url)
    steps = list(_steps())
    program = _program()
    script = stage.home / "floor.sql"
    script.write_text("".join(_text(step) + ";\n" + (GATHER if step.name == "lease" else "") for step in steps))
    command = [program, "--no-vacuum", "--client=1", f"--transactions={batches}", f"--file={script}"]
    command += ["--protocol=prepared", "--report-per-command", *_definitions(steps), url]
    commits = gauges.commits(stage, database)
    before, cpu_s = gauges.read(stage, 0, 0), _children_cpu_s()
    environ = {**os.environ, "PGOPTIONS": _TOLD}
    process = stage.seams.spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
    said, complaint = process.communicate()
    after, cpu_s = gauges.read(stage, 0, 0), _children_cpu_s() - cpu_s
    made = gauges.commits(stage, database) - commits
    _check(url, batches * BATCH, complaint.decode())
    took_ms = [float(found) for found in _LATENCY.findall(said.decode().rpartition("statement latencies")[2])]
    # the query that gathers comes right after the first claim
    gather_ms = took_ms.pop(1)
    each = batches * BATCH
    return Floor(
        operations=each,
        program=program,
        batch_ms=sum(took_ms),
        gather_ms=gather_ms,
        commits=made / each,
        wal_bytes=(after.wal_bytes - before.wal_bytes) / each,
        client_cpu_us=cpu_s / each * 1e6,
        server_cpu_us=(after.server_cpu_s - before.server_cpu_s) / each * 1e6,
    )


def _filled(url: str, operations: int) -> None:
    with psycopg.connect(url) as connection:
        migrate_up(connection)
        named = {name: ["genace"] for name in ("name", "account", "kind")}
        connection.execute(statement("store", "register_providers").encode(), named)
        connection.execute(FILL.encode(), (operations,))


def _check(url: str, operations: int, complaint: str) -> None:
    with psycopg.connect(url) as connection:
        row = connection.execute(DONE.encode()).fetchone()
    found = row[0] if row else 0
    if found != operations:
        raise Failed(
            f"expected pgbench to bring {operations} to success, got {found}: {complaint}", next="mend the script"
        )


def _program() -> str:
    """The pgbench beside the server's own programs, else any that the system has."""
    beside = binaries.find("18").bin_dir / "pgbench"
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), reverse=True)
    for candidate in (beside, *debian):
        if candidate.is_file():
            return os.fspath(candidate)
    if found := shutil.which("pgbench"):
        return found
    raise Refused("expected pgbench, found none", next="install a package that has it, such as Debian's postgresql-15")


def _steps() -> Iterator[_Step]:
    yield _claim("lease", "dispatch")
    yield _Step(
        name="mark",
        room="store",
        file="mark",
        same=_mark(),
        told={"operation_id": "ids", "dispatch_id": "dispatch_ids"},
    )
    known = {"operation_id": "ids", "lane_operation_id": "ids"}
    yield _Step(
        name="conclude",
        room="store",
        file="conclude",
        same=_conclude(),
        told={**known, "dispatch_id": "dispatch_ids", "remote_job_id": "job_ids"},
    )
    yield _claim("first", "observe")
    yield _Step(
        name="running", room="store", file="snapshot", same=_running(), told={**known, "remote_job_id": "job_ids"}
    )
    yield _claim("second", "observe")
    yield _Step(
        name="done",
        room="store",
        file="snapshot",
        same=_done(),
        told={
            "operation_id": "ids",
            "remote_job_id": "job_ids",
            "lane_operation_id": "twice",
            "output_operation_id": "ids",
        },
    )


def _claim(name: str, action: str) -> _Step:
    same = {
        "action": _array([action]),
        "provider": _array(["genace"]),
        "account": _array(["genace"]),
        "room": _array([BATCH]),
        "reserve": _array([0]),
        "lease_s": _array([73.0]),
        "after_tenant": _array([""]),
        "after_precedence": _array([-32768]),
        "away_from_s": None,
        "away_until_s": None,
        "doubt_lease_s": "30",
        "doubts": "0",
        "is_free": "true",
        "schema_version": _array([1]),
        "answer_limit_bytes": str(ANSWER_LIMIT_BYTES),
        "row_bytes": str(ROW_BYTES),
        "text_limit_bytes": str(TEXT_LIMIT_BYTES),
        "told_limit": str(TOLD_LIMIT),
        "worker": PREPARED,
        **dict.fromkeys(("served_action", "served_tenant", "lookup_provider", "lookup_account"), "{}"),
    }
    return _Step(name=name, room="queue", file="claim", same=same, told={})


def _mark() -> Mapping[str, str]:
    return {
        **_each(account="genace", revision=0, lease_s=73.0, pause_s=10.0, quiescent_s=77.0, send_s=5.0),
        "worker": PREPARED,
    }


def _conclude() -> Mapping[str, str]:
    reply = b'{"job_id": "job-1", "status": "queued"}'
    marks_ms = '{"marked": 0, "resolving": 0, "connecting": 1, "connected": 1, "headers_begun": 1, "body_sent": 1, "status_received": 3, "body_received": 3}'
    return {
        **_each(account="genace", authorisation=1, authorised_by="postgres", number=1, begun_ago_s=0.04, settle_s=12.0),
        **_each(bytes_sent=253, bytes_received=134, http_status=201, stage="body_received", marks_ms=marks_ms),
        **_each(
            event="generation_accepted", outcome="accepted", phase="accepted", withdrawn="false", observe_for_s=86400.0
        ),
        **_each(held=0, unit="credits", reply="\\x" + reply.hex()),
        **_each(cause=None, candidate_id=None, request_ids=None, shut_s=None),
        **_each(lane=0, lane_action="observe", lane_delay_s=0.0, lane_reason=None, lane_verb="aim"),
        "worker": PREPARED,
    }


def _running() -> Mapping[str, str]:
    return {
        **_look(
            revision=2, event="render_progressed", word="running", state="rendering", settles="false", outputs="[]"
        ),
        **_each(lane=0, lane_action="observe", lane_delay_s=0.0, lane_reason="active", lane_verb="aim"),
        **dict.fromkeys(
            (f"output_{name}" for name in ("operation_id", "index", "source", "type", "bytes", "sha256")), "{}"
        ),
    }


def _done() -> Mapping[str, str]:
    url = "http://127.0.0.1:40000/outputs/1"
    outputs = f'[{{"url": "{url}", "type": null, "bytes": null, "sha256": null}}]'
    lanes: Mapping[str, tuple[Value, Value]] = {
        "lane": (0, 1),
        "lane_verb": ("drop", "aim"),
        "lane_action": (None, "deliver"),
        "lane_delay_s": (None, 0.0),
        "lane_reason": (None, None),
    }
    return {
        **_look(
            revision=3, event="render_finished", word="succeeded", state="succeeded", settles="true", outputs=outputs
        ),
        **{name: _array([pair[0]] * BATCH + [pair[1]] * BATCH) for name, pair in lanes.items()},
        **_each(output_index=0, output_source=url, output_type=None, output_bytes=None, output_sha256=None),
    }


def _look(*, revision: int, event: str, word: str, state: str, settles: str, outputs: str) -> Mapping[str, str]:
    return {
        **_each(
            revision=revision, event=event, remote_status=word, render_state=state, settles=settles, outputs=outputs
        ),
        **_each(error_code=None, charged=None, refunded=None, unit=None),
        "worker": PREPARED,
    }


def _each(**values: Value) -> Mapping[str, str]:
    """Arrays that say the same of each operation of a batch."""
    return {name: _array([value] * BATCH) for name, value in values.items()}


def _array(values: Sequence[Value]) -> str:
    """PostgreSQL's text form of an array."""
    shown = [
        "null" if value is None else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in values
    ]
    return "{" + ",".join(shown) + "}"


def _text(step: _Step) -> str:
    """The statement with pgbench's variables for its parameters; pgbench cannot bind a null, so that is written out."""

    def variable(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return "%"
        if name in step.told:
            return f":{step.told[name]}"
        return "null" if step.same[name] is None else f":{step.name}_{name}"

    return _PARAMETER.sub(variable, statement(step.room, step.file)).rstrip()


def _definitions(steps: Sequence[_Step]) -> list[str]:
    known = {f"{step.name}_{name}": value for step in steps for name, value in step.same.items() if value is not None}
    return [f"--define={name}={value}" for name, value in known.items()]


def _children_cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
