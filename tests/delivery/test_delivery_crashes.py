"""A process killed at any point of a delivery leaves no object or a whole one, and the next try ends with exactly one."""

import asyncio
import hashlib
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from coatcheck.delivery.file_sink import FileSink
from coatcheck.delivery.outcome import OutputSource, Stored
from coatcheck.seams import Point, Seams
from delivery.origin import PNG, Origin, deliver, final_objects, response, sending, serving, temporaries

CHILD = Path(__file__).with_name("doomed.py")
BODY = PNG + os.urandom(3_000_000)
# V1, V2 and V9 to V11 belong to the handler, which knows messages and the database.
OURS = [point for point in Point if point.value.startswith("V") and 3 <= int(point.value[1:]) <= 8]
STRIKES = [(point, 0) for point in OURS] + [(Point.V5_BODY_BYTES, count) for count in (4096, 1_500_000, len(BODY))]
CALLS = 21
"""Of the system by the sink for a small output, and some more for a large one."""


async def child(root: Path, origin: Origin, outputs: list[OutputSource], *strike: str) -> tuple[int, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        os.fspath(CHILD),
        os.fspath(root),
        str(origin.port),
        json.dumps([asdict(output) for output in outputs]),
        *strike,
        stdout=asyncio.subprocess.PIPE,
    )
    stdout, _ = await process.communicate()
    return process.returncode or 0, json.loads(stdout or b"{}")


@pytest.mark.parametrize(("point", "count"), STRIKES)
def test_a_kill_leaves_no_object_or_a_whole_one_and_the_next_try_ends_with_one(
    point: Point, count: int, tmp_path: Path
) -> None:
    async def story() -> None:
        left = await killed(tmp_path, BODY, point, str(count))
        assert len(left) == (point == Point.V8_PUBLISHED)
        # what is poured is in a temporary, until the object has it
        if point in {Point.V6_BODY_COMPLETE, Point.V7_VERIFIED, Point.V8_PUBLISHED}:
            assert len(temporaries(tmp_path)) == (point != Point.V8_PUBLISHED)
        await recovered(tmp_path, BODY)

    asyncio.run(story())


@pytest.mark.parametrize("body", [PNG, BODY], ids=["small", "large"])
@pytest.mark.parametrize("nth", range(CALLS))
def test_a_kill_between_two_calls_of_the_system_leaves_no_object_or_a_whole_one(
    nth: int, body: bytes, tmp_path: Path
) -> None:
    async def story() -> None:
        assert len(await killed(tmp_path, body, "call", str(nth))) <= 1
        await recovered(tmp_path, body)

    asyncio.run(story())


async def killed(root: Path, body: bytes, *strike: str) -> list[Path]:
    """What a delivery that dies leaves of the object."""
    async with serving(sending(response(body))) as origin:
        code, _ = await child(root, origin, [origin.output()], *strike)
    assert code == -signal.SIGKILL
    left = final_objects(root)
    assert all(found.read_bytes() == body for found in left)
    return left


async def recovered(root: Path, body: bytes) -> None:
    """The next try ends with the one object, and what was left beside it can be swept."""
    async with serving(sending(response(body))) as origin:
        result = await deliver(origin.output(), root, origin.policy)
    assert isinstance(result, Stored)
    assert result.sha256 == hashlib.sha256(body).hexdigest()
    (found,) = final_objects(root)
    assert len(temporaries(root)) <= 1
    await FileSink(root, seams=Seams.real()).sweep(-60)
    assert temporaries(root) == []
    assert final_objects(root) == [found]
    assert found.read_bytes() == body


def test_two_processes_at_once_end_with_one_object(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(sending(response(BODY))) as origin:
            both = await asyncio.gather(*(child(tmp_path, origin, [origin.output()]) for _ in range(2)))
        digest = hashlib.sha256(BODY).hexdigest()
        assert [report["stored"] for _, report in both] == [[digest], [digest]]
        (found,) = final_objects(tmp_path)
        assert found.read_bytes() == BODY
        assert temporaries(tmp_path) == []

    asyncio.run(story())


def test_an_output_of_200_megabytes_grows_the_process_by_less_than_64(tmp_path: Path) -> None:
    megabyte = os.urandom(1_000_000)
    count = 200
    digest = hashlib.sha256(PNG + megabyte * count).hexdigest()

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        if path.startswith("/small"):
            writer.write(response())
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(PNG) + len(megabyte) * count) + PNG)
        for _ in range(count):
            writer.write(megabyte)
            await writer.drain()

    async def story() -> None:
        async with serving(answer) as origin:
            small = origin.output(url=origin.url("/small"), index=0)
            large = origin.output(url=origin.url("/large"), index=1, sha256=digest)
            code, report = await child(tmp_path, origin, [small, large])
        assert code == 0
        assert report["stored"][1] == digest
        before, after = report["peaks"]
        assert after - before < 64_000_000

    asyncio.run(story())
