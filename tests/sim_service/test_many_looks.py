"""A thousand looks held open at once cost little, and each is answered when its own job changes. The clock is the test's."""

import asyncio
import json
import tracemalloc
from dataclasses import dataclass
from urllib.parse import urlsplit

from coatcheck.seams import Clock, Seams
from coatcheck.sim import SimulatedService
from sim_service.raw_client import request_bytes

COUNT = 1_000


class HeldClock(Clock):
    """Stands still; whoever sleeps by it wakes when the test lets time go on."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.sleeps = 0
        self.all_asleep = asyncio.Event()
        self.goes_on = asyncio.Event()

    def boottime(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        if self.sleeps == COUNT:
            self.all_asleep.set()
        await self.goes_on.wait()

    def go_on(self, seconds: float) -> None:
        self.at += seconds
        self.goes_on.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    statuses: list[str]
    peak: int
    bytes_per_look: int
    sleeps: int


async def asked(service: SimulatedService, request: bytes) -> bytes:
    """The body of the reply, framed by its length, so that nobody's end of connection is waited for."""
    parts = urlsplit(service.base_url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0]))
    writer.close()
    await writer.wait_closed()
    return body


async def held_looks() -> Held:
    """Hold COUNT looks at ten jobs, then let the jobs change."""
    clock = HeldClock()
    async with SimulatedService(seams=Seams(clock=clock, sleep=clock.sleep)) as service:
        service.script({"service": {"queued_s": 5, "processing_s": 60}})
        jobs = []
        for number in range(10):
            body = json.dumps({"n": number}).encode()
            made = await asked(service, request_bytes("POST", "/api/v1/jobs", body, Connection="keep-alive"))
            jobs.append(json.loads(made)["job_id"])
        tracemalloc.start()
        asks = [
            request_bytes("GET", f"/api/v1/jobs/{jobs[number % 10]}?wait=30", Connection="keep-alive")
            for number in range(COUNT)
        ]
        looks = [asyncio.ensure_future(asked(service, ask)) for ask in asks]
        await clock.all_asleep.wait()
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sleeps = clock.sleeps
        clock.go_on(6)
        statuses = [json.loads(body)["status"] for body in await asyncio.gather(*looks)]
        return Held(statuses=statuses, peak=service.held_peak, bytes_per_look=memory // COUNT, sleeps=sleeps)


def test_a_thousand_looks_are_held_at_once_each_in_one_sleep() -> None:
    held = asyncio.run(held_looks())
    assert held.statuses == ["processing"] * COUNT
    assert (held.peak, held.sleeps) == (COUNT, COUNT)
    assert held.bytes_per_look < 48_000
