"""The competition as a table for people and as JSON for machines: what was run where, and every figure with its ratio to the best peer's."""

import os
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from bench.peers.competition import Competition, Standing, speed
from bench.peers.environments import HOME, ROOT
from bench.peers.stage import PARAMETERS, Stage
from bench.peers.trial import Trial
from coatcheck.seams import Seams

COLUMNS = (
    "",
    "operations/s",
    "rounds",
    "vs best peer",
    "commits",
    "statements",
    "WAL B",
    "worker µs",
    "PG µs",
    "peak MiB",
)


def machine(stage: Stage, seams: Seams) -> Mapping[str, Any]:
    """Where, when and with what."""
    cpu = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    return {
        "date": seams.clock.now().isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "bench.peers", *sys.argv[1:]]),
        "revision": _revision(),
        "cpu": cpu[0] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory[0]) / 2**20, 1) if memory else None,
        "kernel": platform.release(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "postgresql": stage.server.version,
        "postgresql_settings": dict(PARAMETERS),
    }


def versions(standings: Sequence[Standing], python_version: str) -> Mapping[str, str]:
    """What is compared: each contestant's own package and its driver, as its environment has them."""
    found = {"python": python_version}
    for standing in standings:
        folders = [
            os.fspath(path) for path in (HOME / standing.contestant.requirements).glob("lib/python*/site-packages")
        ]
        for known in distributions(path=folders):
            if known.name in {
                standing.contestant.package,
                "aiohttp",
                "asyncpg",
                "psycopg",
                "uvloop",
                "sqlalchemy",
                "h11",
            }:
                found[f"{standing.contestant.requirements}: {known.name}"] = known.version
    return dict(sorted(found.items()))


def as_json(competition: Competition, where: Mapping[str, Any], what: Mapping[str, str]) -> Mapping[str, Any]:
    """All of it."""
    best = speed(competition.best_peer) if competition.best_peer else 0.0
    return {
        "machine": where,
        "versions": what,
        "plan": asdict(competition.plan),
        "best_peer": competition.best_peer.contestant.name if competition.best_peer else None,
        "contestants": [_standing(standing, best) for standing in competition.standings],
        "floor": {
            "per_second": competition.floor_per_second,
            "vs_best_peer": _ratio(competition.floor_per_second, best),
            "rounds": [{**asdict(found), "per_second": found.per_second} for found in competition.floors],
        },
        "requests_alone": [
            {**asdict(found), "per_second": found.per_second, "vs_best_peer": _ratio(found.per_second, best)}
            for found in competition.requests
        ],
    }


def as_table(competition: Competition, where: Mapping[str, Any], what: Mapping[str, str]) -> str:
    """For people."""
    best = speed(competition.best_peer) if competition.best_peer else 0.0
    ranked = sorted(competition.standings, key=speed, reverse=True)
    rows: list[tuple[str, ...]] = [COLUMNS, *(_row(each, best) for each in ranked)]
    rows += [*_floor_rows(competition, best), *_requests_rows(competition, best)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    table = [
        "  ".join(
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*table, "", *_notes(competition, where, what), ""])


def _row(standing: Standing, best: float) -> tuple[str, ...]:
    trial = standing.median
    if trial is None:
        return (f"{standing.contestant.name}: FAILED", *("" for _ in COLUMNS[1:]))
    slowest, fastest = standing.spread
    spoken = standing.counted.statements if standing.counted is not None else None
    return (
        standing.contestant.name,
        f"{trial.per_second:,.0f}",
        f"{slowest:,.0f}-{fastest:,.0f}",
        f"{_ratio(trial.per_second, best):.2f}" if best else "",
        f"{trial.commits:.2f}",
        f"{spoken:.2f}" if spoken is not None else "",
        f"{trial.wal_bytes:,.0f}",
        f"{trial.worker_cpu_us:,.0f}",
        f"{trial.server_cpu_us:,.0f}",
        f"{trial.peak_mib:,.0f}",
    )


def _floor_rows(competition: Competition, best: float) -> Iterator[tuple[str, ...]]:
    floors = competition.floors
    if not floors:
        return
    speeds = [found.per_second for found in floors]
    found = sorted(floors, key=lambda each: each.per_second)[(len(floors) - 1) // 2]
    yield (
        "pgbench, coatcheck's statements, batches of 100",
        f"{competition.floor_per_second:,.0f}",
        f"{min(speeds):,.0f}-{max(speeds):,.0f}",
        f"{_ratio(competition.floor_per_second, best):.2f}" if best else "",
        f"{found.commits:.2f}",
        "",
        f"{found.wal_bytes:,.0f}",
        f"{found.client_cpu_us:,.0f}",
        f"{found.server_cpu_us:,.0f}",
        "",
    )


def _requests_rows(competition: Competition, best: float) -> Iterator[tuple[str, ...]]:
    for found in filter(None, (competition.alone(ours=True), competition.alone(ours=False))):
        speeds = [each.per_second for each in competition.requests if each.name == found.name]
        yield (
            found.name,
            f"{found.per_second:,.0f}",
            f"{min(speeds):,.0f}-{max(speeds):,.0f}",
            f"{_ratio(found.per_second, best):.2f}" if best else "",
            *("", "", ""),
            f"{found.client_cpu_us:,.0f}",
            *("", ""),
        )


def _notes(competition: Competition, where: Mapping[str, Any], what: Mapping[str, str]) -> Iterator[str]:
    plan = competition.plan
    yield f"Median of {plan.rounds} rounds of {plan.operations:,} operations; costs per operation. Each operation of a contestant had exactly one POST and one success."
    yield "pgbench (our statements, no requests) and the requests alone (no queue, no database) are bounds, no contestants; their worker is pgbench and whoever sends."
    for standing in competition.standings:
        name = standing.contestant.name
        remark = f" ({standing.contestant.remark})" if standing.contestant.remark else ""
        if standing.problem:
            yield f"{name}{remark}: FAILED, {standing.problem}"
            continue
        yield f"{name}{remark}: best {_shown(standing.best_set_up or {})}, of"
        for trial in standing.sweep:
            yield f"    {_shown(trial.set_up)}: {trial.problem or f'{trial.per_second:,.0f}/s, ready in {trial.start_s:.1f} s'}"
    for standing in competition.standings:
        if standing.contestant.is_ours and competition.floor_per_second:
            yield f"{standing.contestant.name} against the floor: {speed(standing) / competition.floor_per_second:.3f}"
    for standing in competition.standings:
        alone = competition.alone(ours=standing.contestant.is_ours)
        if alone is not None and speed(standing) and not standing.contestant.fetches:
            yield f"{standing.contestant.name} against its requests alone: {speed(standing) / alone.per_second:.2f}"
    for part in (where, what):
        yield ", ".join(f"{name} {value}" for name, value in part.items() if name != "postgresql_settings")


def _standing(standing: Standing, best: float) -> Mapping[str, Any]:
    trial = standing.median
    return {
        "name": standing.contestant.name,
        "remark": standing.contestant.remark,
        "problem": standing.problem,
        "per_second": speed(standing),
        "vs_best_peer": _ratio(speed(standing), best),
        "set_up": standing.best_set_up,
        "median": _trial(trial) if trial is not None else None,
        "statements": standing.counted.statements if standing.counted is not None else None,
        "rounds": [_trial(found) for found in standing.rounds],
        "sweep": [_trial(found) for found in standing.sweep],
    }


def _trial(trial: Trial) -> Mapping[str, Any]:
    return {**asdict(trial), "per_second": trial.per_second}


def _ratio(figure: float, best: float) -> float:
    return round(figure / best, 3) if best else 0.0


def _shown(set_up: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value or 'unlimited'}" for name, value in set_up.items() if name != "roles")


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _revision() -> str:
    """The commit that is measured."""
    head = (ROOT / ".git" / "HEAD").read_text().strip() if (ROOT / ".git" / "HEAD").exists() else ""
    reference = ROOT / ".git" / head.removeprefix("ref: ")
    return reference.read_text().strip()[:12] if head.startswith("ref: ") and reference.exists() else head[:12]
