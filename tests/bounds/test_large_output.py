"""An output passes through the worker in pieces: its size costs disk and time, and no memory."""

import hashlib
import subprocess
import sys
from pathlib import Path

import psycopg

import postgres
from coatcheck.sim import simulated_service

LARGE_BYTES = 200_000_000
GROWTH_KIB = 64 * 1024
PROGRAM = Path(__file__).with_name("draining_main.py")
ENQUEUE = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'ada', 'operation_key', %(prompt)s::text,
  'provider', 'genace', 'specification_text', format('{"prompt":"%%s"}', %(prompt)s::text)))
"""
DELIVERED = """
select delivery.uri, delivery.sha256, delivery.bytes
from coatcheck.deliveries as delivery
join coatcheck.operations as operation using (operation_id)
where operation.operation_key = %(prompt)s and delivery.state = 'delivered'
"""


def delivered(worker: subprocess.Popen[str], database: postgres.Database, prompt: str) -> tuple[int, Path, str, int]:
    """Have one operation rendered and delivered; the worker's peak in KiB, the file, and what is recorded of it."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with psycopg.connect(database.url) as connection:
        connection.execute(ENQUEUE, {"prompt": prompt})
    worker.stdin.write("drain\n")
    worker.stdin.flush()
    peak_kib = int(worker.stdout.readline())
    with psycopg.connect(database.url) as connection:
        [(uri, sha256, size)] = connection.execute(DELIVERED, {"prompt": prompt}).fetchall()
    return peak_kib, Path(uri.removeprefix("file://")), sha256, size


def test_an_output_of_200_mb_grows_the_worker_by_less_than_64_mb(database: postgres.Database, tmp_path: Path) -> None:
    large = {"on": "job", "prompt": "large", "outputs": [{"type": "image/png", "bytes": LARGE_BYTES}]}
    with simulated_service(seed=1) as sim:
        sim.script({"rules": [large], "service": {"queued_s": 0, "processing_s": 0.05}})
        environ = {
            "COATCHECK_HOME": str(tmp_path),
            "COATCHECK_PROVIDERS__GENACE__BASE_URL": sim.base_url,
            "COATCHECK_PROVIDERS__GENACE__API_KEY": "key-for-tests",
            "COATCHECK_PROVIDERS__GENACE__LOOK_MIN_S": "0.05",
        }
        command = [sys.executable, str(PROGRAM), database.url]
        with subprocess.Popen(
            command, env=environ, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as worker:
            small_kib, _, _, small_bytes = delivered(worker, database, "small")
            large_kib, path, sha256, large_bytes = delivered(worker, database, "large")
    assert small_bytes < large_bytes == LARGE_BYTES == path.stat().st_size
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == sha256
    path.unlink()
    assert 0 <= large_kib - small_kib < GROWTH_KIB
