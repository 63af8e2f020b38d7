"""A worker with `--health-port` tells machines that it lives, that it takes work, and its measures; `top` tells people."""

import asyncio
import json
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import postgres
from cli.terminal import Running, Terminal
from coatcheck.app.exposition import CONTENT_TYPE, exposition
from coatcheck.app.health import ASKED_EVERY_S, Lately
from coatcheck.seams import Clock
from coatcheck.sim import ThreadedService
from coatcheck.workers.tally import Tally
from waiting import until

SAMPLE = re.compile(r'(coatcheck_[a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (-?[0-9.e+-]+)')


@pytest.fixture
def asked(provided: Terminal) -> Iterator[Running]:
    """A worker that answers on a free port."""
    with provided.started("worker", "--health-port", "0") as running:
        running.said("ready ")
        yield running


def port_of(running: Running) -> int:
    """The port that it said it took."""
    lines = [json.loads(line) for line in running.err.read_text().splitlines() if line.startswith("{")]
    (port,) = [line["port"] for line in lines if line["event"] == "health"]
    return int(port)


def get(running: Running, path: str) -> tuple[int, str, str]:
    """Status, kind and text of an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port_of(running)}/{path}", timeout=10) as reply:
            return reply.status, reply.headers["Content-Type"], reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def samples(text: str) -> dict[str, float]:
    """Each sample with its labels as one name; every line is a comment or a sample, and every sample's family has a help and a type."""
    found = {}
    families = set(re.findall(r"^# TYPE (\S+) (?:counter|gauge|summary)$", text, re.MULTILINE))
    assert families == set(re.findall(r"^# HELP (\S+) \S.*$", text, re.MULTILINE))
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] in families or re.sub(r"_(sum|count)$", "", match[1]) in families, line
        assert line.rsplit(" ", 1)[0] not in found, line
        found[line.rsplit(" ", 1)[0]] = float(match[3])
    return found


def test_a_worker_lives_is_ready_and_measures(provided: Terminal, service: ThreadedService, asked: Running) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "accept_then_drop"}])
    limit = ("providers", "set", "genace", "--max-in-flight", "9", "--looks-per-s", "50", "--reason", "their rules")
    assert provided.run(*limit).code == 0
    assert get(asked, "healthz")[::2] == (200, "ok\n")
    assert get(asked, "readyz")[::2] == (200, "ready\n")
    assert get(asked, "secrets")[0] == 404
    for number in range(2):
        provided.enqueue(f"k{number}", "--estimate", "2.5")
    until(lambda: samples(get(asked, "metrics")[2]).get("coatcheck_uncertain_operations") == 1)
    until(lambda: 'coatcheck_worker_action_seconds_count{action="deliver"}' in samples(get(asked, "metrics")[2]))
    until(lambda: samples(get(asked, "metrics")[2])['coatcheck_account_in_flight{account="genace"}'] == 1)
    status, kind, text = get(asked, "metrics")
    assert (status, kind) == (200, CONTENT_TYPE)
    found = samples(text)
    assert found["coatcheck_database_up"] == 1
    assert found['coatcheck_uncertain_held_amount{unit="credits"}'] == 2.5
    assert found['coatcheck_parked_messages{reason="uncertain"}'] == 1
    assert found['coatcheck_account_in_flight_limit{account="genace"}'] == 9
    assert found['coatcheck_account_looks_per_second_limit{account="genace"}'] == 50
    assert 'coatcheck_account_dispatches_per_second_limit{account="genace"}' not in found
    assert found['coatcheck_account_paused{account="genace",of="observation"}'] == 0
    assert found['coatcheck_worker_action_seconds_count{action="dispatch"}'] == 2
    assert found['coatcheck_worker_action_seconds_sum{action="dispatch"}'] > 0
    assert found['coatcheck_queue_age_seconds{action="dispatch"}'] == 0
    assert found["coatcheck_workers"] == 1
    assert found["coatcheck_worker_lease_renewal_failures_total"] == 0


def test_a_worker_whose_database_is_away_lives_and_is_not_ready(asked: Running, database: postgres.Database) -> None:
    """The database refuses whoever comes and ends who is there."""
    assert get(asked, "readyz")[0] == 200
    name = sql.Identifier(database.name)
    with psycopg.connect(make_conninfo(database.url, dbname="postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("alter database {} allow_connections false").format(name))
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [database.name])
    until(lambda: get(asked, "readyz")[0] == 503)
    assert "the database does not answer" in get(asked, "readyz")[2]
    assert get(asked, "healthz")[0] == 200
    until(lambda: samples(get(asked, "metrics")[2])["coatcheck_database_up"] == 0)
    found = samples(get(asked, "metrics")[2])
    assert "coatcheck_uncertain_operations" not in found
    assert "coatcheck_worker_lease_renewal_failures_total" in found


def test_a_worker_that_drains_is_not_ready(provided: Terminal, service: ThreadedService, asked: Running) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "stall", "seconds": 3}])
    provided.enqueue("k1")
    until(lambda: service.posts)
    asked.process.send_signal(signal.SIGTERM)
    asked.said("draining")
    assert get(asked, "readyz")[::2] == (503, "draining\n")
    assert get(asked, "healthz")[0] == 200
    assert asked.ended().code == 0


class HandClock(Clock):
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.at = 0.0

    def boottime(self) -> float:
        return self.at


def test_the_database_is_asked_every_few_seconds_however_often_somebody_asks() -> None:
    clock, asked = HandClock(), []

    async def ask() -> int:
        asked.append(clock.at)
        if len(asked) == 2:
            raise psycopg.OperationalError
        return len(asked)

    async def course() -> list[int | None]:
        lately, found = Lately(ask, clock), list[int | None]()
        for at in (0.0, 0.0, ASKED_EVERY_S - 0.1, ASKED_EVERY_S, ASKED_EVERY_S, 2 * ASKED_EVERY_S):
            clock.at = at
            found.extend(await asyncio.gather(lately.answer(), lately.answer()))
        return found

    assert asyncio.run(course()) == [1] * 6 + [None] * 4 + [3] * 2
    assert asked == [0.0, ASKED_EVERY_S, 2 * ASKED_EVERY_S]


def test_a_port_that_is_taken_or_none_is_refused(provided: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = provided.run("worker", "--health-port", str(taken.getsockname()[1]), "--until-idle", "--json")
    assert (ended.code, ended.error["code"]) == (1, "failed")
    assert "--health-port" in ended.error["message"]
    ended = provided.run("worker", "--health-port", "65536", "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")


def test_no_port_is_opened_unasked(provided: Terminal) -> None:
    with provided.started("worker") as running:
        running.said("ready ")
        sockets = {path.readlink().name for path in Path(f"/proc/{running.process.pid}/fd").iterdir()}
        listening = {
            line.split()[9]
            for line in Path(f"/proc/{running.process.pid}/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        }
        assert sockets
        assert {f"socket:[{inode}]" for inode in listening} & sockets == set()


def test_labels_are_escaped() -> None:
    tally = Tally()
    tally.stale['a "quoted"\n\\cause'] += 1
    assert r'coatcheck_worker_stale_total{cause="a \"quoted\"\n\\cause"} 1' in exposition("w", "1", tally, None)
    assert samples(exposition('w"\\\n', "1", tally, None))["coatcheck_database_up"] == 0


def test_top_shows_the_measures_over_and_over_until_it_is_interrupted(terminal: Terminal) -> None:
    with terminal.started("top", "--json") as running:
        until(lambda: running.out.read_text().count("\n") > 1)
        running.process.send_signal(signal.SIGINT)
        ended = running.ended()
    assert ended.code == 130
    assert {tuple(each) for each in ended.objects} == {tuple(terminal.run("stats", "--json").object)}


def test_top_once_is_one_table(terminal: Terminal) -> None:
    ended = terminal.run("top", "--once")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("uncertain_count") == 1
