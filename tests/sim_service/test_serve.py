"""The service as a process: its first line says where it is, and a signal ends it cleanly."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sim_service.raw_client import exchange, request_bytes

PROGRAM = """
import asyncio, sys
from pathlib import Path
from coatcheck.sim import serve
asyncio.run(serve(0, int(sys.argv[1]), Path(sys.argv[2]), sys.stdout))
"""


@contextmanager
def served(seed: int, script: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    arguments = [sys.executable, "-W", "error", "-c", PROGRAM, str(seed), str(script)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["base_url"], process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_plays_its_script_and_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps({"rules": [{"on": "create", "nth": 2, "kind": "status", "status": 503}]}), encoding="utf-8"
    )
    with served(3, script) as (base_url, process):
        statuses = [exchange(base_url, request_bytes("POST", "/api/v1/jobs", b"{}")).status for _ in range(3)]
        ledger = exchange(base_url, request_bytes("GET", "/_sim/ledger", Authorization="")).json()
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=20)
    assert statuses == [201, 503, 201]
    assert ledger["totals"] == {
        "posts": 3,
        "complete": 3,
        "created": 2,
        "billed": 10,
        "refunded": 0,
        "net": 10,
        "most_posts_per_body": 3,
        "most_jobs_per_body": 2,
    }
    assert [record["fault"] for record in ledger["posts"]] == [None, "status", None]
    assert (process.returncode, out, err) == (0, "", "")
