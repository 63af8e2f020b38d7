"""`operations show` as a story: told to people above the record, to programs as a list, to a tenant without the evidence."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

import postgres
from cli.conftest import API_KEY
from cli.terminal import COATCHECK, Terminal
from cli.test_on_a_terminal import on_a_terminal
from coatcheck.sim import ThreadedService

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u2066"
EVIDENCE = {"request_ids", "candidate_id", "reply"}


@pytest.fixture
def lost(provided: Terminal, service: ThreadedService) -> str:
    """An operation whose reply was cut between the job's id and the end."""
    provided.enqueue("whole")
    assert provided.run("worker", "--until-idle").code == 0
    (whole,) = service.posts
    service.script([{"on": "create", "nth": 1, "kind": "cut", "at": whole.reply_bytes - 10, "end": "fin"}])
    operation_id: str = provided.enqueue("cut", "--estimate", "5")["operation_id"]
    assert provided.run("worker", "--until-idle").code == 0
    return operation_id


def test_a_cut_reply_is_told_to_people_with_its_candidate_and_the_ways_out(
    provided: Terminal, service: ThreadedService, lost: str
) -> None:
    created = str(service.posts[1].created)
    told = provided.run("operations", "show", lost).out
    assert told.startswith(f"{lost} is uncertain: nobody knows whether the service made a job for it\n")
    assert "5 credits are at risk" in told
    assert f'the job id "{created}". That is a hint and no acceptance' in told
    assert f"    coatcheck reconcile adopt {lost} {created} --reason REASON\n" in told
    assert f'    | {{"job_id":"{created}",' in told
    assert "never            the reply's body was here to its end" in told
    # the story stands above what it is told from
    assert told.index("What you can do") < told.index("the record") < told.index("history")
    assert API_KEY not in told


def test_programs_get_the_evidence_apart_and_the_story_as_a_list(
    provided: Terminal, service: ThreadedService, lost: str
) -> None:
    shown = provided.run("operations", "show", lost, "--json").object
    (dispatch,) = shown["dispatches"]
    created = service.posts[1].created
    assert set(dispatch["evidence"]) == EVIDENCE
    assert dispatch["evidence"]["candidate_id"] == created
    assert dispatch["evidence"]["reply"].startswith(f'{{"job_id":"{created}"')
    assert dispatch["remote_job_id"] is shown["remote_job_id"] is None
    assert EVIDENCE.isdisjoint(dispatch)
    assert {"cause", "begun_at", "send_by_at", "quiescent_at", "marks_ms", "worker"} <= set(dispatch)
    assert shown["story"][0].startswith(f"{lost} is uncertain")
    assert all(isinstance(line, str) and "\n" not in line for line in shown["story"])


def test_a_tenant_sees_neither_bytes_nor_ids_of_a_reply(
    provided: Terminal, service: ThreadedService, database: postgres.Database, lost: str
) -> None:
    with database.connect() as connection:
        connection.execute('update coatcheck.dispatches set request_ids = \'{"x-request-id": "req-canary"}\'')
    seen = [provided.run("operations", "show", lost, "--tenant", "t1", *words).out for words in ([], ["--json"])]
    for out in seen:
        assert "may have reached the service" in out
        assert str(service.posts[1].created) not in out
        assert "req-canary" not in out
        assert "coatcheck reconcile" not in out
    dispatches = provided.run("operations", "show", lost, "--tenant", "t1", "--json").object["dispatches"]
    assert {"evidence", *EVIDENCE}.isdisjoint(dispatches[0])
    operator = provided.run("operations", "show", lost).out
    assert '"x-request-id": "req-canary"' in operator
    foreign = provided.run("operations", "show", lost, "--tenant", "t2", "--json")
    assert foreign.code == 3


def test_on_a_terminal_sentences_fold_and_commands_do_not(provided: Terminal, lost: str) -> None:
    environ = {**provided.environ, "TERM": "xterm", "COLUMNS": "70", "NO_COLOR": "1"}
    code, shown = on_a_terminal(*COATCHECK, "operations", "show", lost, environ=environ)
    assert code == 0
    told = re.sub(r"\x1b\[\d*m", "", shown).replace("\r", "").partition("the record")[0].splitlines()
    commands = [line for line in told if line.startswith("    coatcheck ")]
    assert [line.split()[2] for line in commands] == ["adopt", "prove-absent", "redispatch", "write-off"]
    assert all(line.endswith("--reason REASON") for line in commands)
    folded = [line for line in told if not line.startswith(("    ", lost))]
    assert max(map(len, folded)) <= 70


def test_what_a_service_wrote_is_never_obeyed(provided: Terminal, database: postgres.Database, lost: str) -> None:
    with database.connect() as connection:
        connection.execute(
            "update coatcheck.dispatches set candidate_id = %(text)s, reply = convert_to(%(text)s, 'UTF8') || '\\xff', cause = %(text)s,"
            " worker = %(text)s, request_ids = jsonb_build_object('x-request-id', %(text)s::text)",
            {"text": HOSTILE},
        )
    environ = {**provided.environ, "TERM": "xterm", "COLUMNS": "90", "NO_COLOR": "1"}
    _, shown = on_a_terminal(*COATCHECK, "operations", "show", lost, environ=environ)
    plain = re.sub(r"\x1b\[\d*m", "", shown)
    for out in (
        plain,
        provided.run("operations", "show", lost).out,
        provided.run("operations", "show", lost, "--json").out,
    ):
        assert not [mark for mark in ("\x1b", "\x07", "\u202e", "\u2066") if mark in out]
    assert f"coatcheck reconcile adopt {lost} JOB --reason REASON" in plain


def test_what_names_a_request_is_kept_and_a_key_in_it_is_not(provided: Terminal) -> None:
    """A service that echoes our key in a header and in a body that it does not end."""
    with echoing_service() as base_url:
        operation_id = provided.enqueue("k1")["operation_id"]
        assert provided.run("worker", "--until-idle", COATCHECK_PROVIDERS__GENACE__BASE_URL=base_url).code == 0
    (dispatch,) = provided.run("operations", "show", operation_id, "--json").object["dispatches"]
    assert dispatch["evidence"] == {
        "request_ids": {"x-request-id": "req-1 Bearer [redacted]"},
        "candidate_id": None,
        "reply": "your key: [redacted]",
    }
    told = provided.run("operations", "show", operation_id).out
    assert '"x-request-id": "req-1 Bearer [redacted]"' in told
    assert "    | your key: [redacted]\n" in told


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(500)
        self.send_header("X-Request-Id", f"req-1 {self.headers['Authorization']}")
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(f"your key: {API_KEY[:9]}".encode())
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def echoing_service() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
