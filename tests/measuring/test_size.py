"""`python -m bench.size`: the crowd that it makes is sound, and everything is asked of it."""

import os
import subprocess
import sys

from docs.pages import ROOT

SMALL = {
    "operations": 1200,
    "live": 300,
    "rounds": 5,
    "audit": 500,
    "retire": 1000,
    "inflow": 100,
    "moves": 2000,
    "lives": 60,
}


def test_a_small_store_answers_everything_and_the_audit_finds_nothing() -> None:
    words = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    ended = subprocess.run(
        [sys.executable, "-m", "bench.size", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    figures = {line[:70].strip(): float(line[70:].replace(",", "")) for line in ended.stdout.splitlines()}
    assert figures["audit, findings"] == 0
    assert figures["audit, operations"] >= SMALL["audit"]
    assert figures["claim of 100, p99, ms"] > 0
    assert figures["claim under a held snapshot, fifth 5 of 2000 moves, p50, ms"] > 0
    assert figures["retention beside 100 enqueues a second, retired a second"] > 0
    assert figures["lives a second on the full one"] > 0
    assert figures["claim of 100 by time alone, p50, ms"] > 0
    assert figures["vacuum of outbox, ms"] > 0
    assert figures["history, bytes an operation"] > 100
