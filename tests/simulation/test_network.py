"""The real wire, the real GETs and the real simulated service, talking over a network that is simulated too."""

import contextvars
import json
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from coatcheck.core.evidence import Exchange, Request, Stage
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.http import Gets
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Seams
from coatcheck.sim import SimulatedService
from simulation.loop import VirtualLoop, passing
from simulation.network import Fate, SimNetwork, Weather
from simulation.process import PROCESS, Process
from simulation.seeded import seams_of
from simulation.wire import Way

TLS = secure_context()
BODY = json.dumps({"prompt": "a red bird", "sim": {"queued_s": 1, "processing_s": 600}}).encode()
HEADERS = (("Authorization", "Bearer key"), ("Content-Type", "application/json"))


class Scene:
    """A loop, a network and a service on it."""

    def __init__(self, weather: Weather | None = None) -> None:
        self.loop = VirtualLoop()
        self.network = SimNetwork(self.loop)
        self.loop.network = self.network
        self.seams = seams_of(self.loop, self.network, random.Random(7), name="test")
        self.service = SimulatedService(seams=self.seams, host="service.example", seed=7)
        self.weather = weather
        self.processes: list[Process] = []

    def play(self, story: Callable[["Scene"], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            async with self.service:
                if self.weather is not None:
                    self.network.weather = self.weather
                await story(self)

        try:
            self.loop.run_until_complete(whole())
            assert not self.loop.surprises
        finally:
            self.loop.end(self.processes)

    async def post(self, *, limit_s: float = 10.0, seams: Seams | None = None) -> Exchange:
        seams = seams or self.seams
        request = Request(method="POST", url=f"{self.service.base_url}/api/v1/jobs", headers=HEADERS, body=BODY)
        window = SendWindow(send_by=seams.clock.boottime() + 5, limit_s=limit_s)
        return await post(request, window=window, progress=Progress(seams.clock), tls=TLS, seams=seams)


class Bad(Weather):
    """Every connection meets the same."""

    def __init__(self, dialling: str = "ok", **way: Any) -> None:
        self._dialling = dialling
        self._back = way.pop("back", {})
        self._to = way

    def fate(self) -> Fate:
        to, back = Way(latency_s=0.01, **self._to), Way(latency_s=0.01, **self._back)
        return Fate(dialling=self._dialling, to=to, back=back)


def test_a_post_creates_and_a_look_is_held_until_something_happens() -> None:
    async def story(scene: Scene) -> None:
        exchange = await scene.post()
        assert (exchange.status, exchange.complete) == (201, True)
        job = json.loads(exchange.body)["job_id"]
        began = scene.loop.time()
        async with Gets(tls=TLS, seams=scene.seams) as gets:
            url = f"{scene.service.base_url}/api/v1/jobs/{job}?wait=500"
            looks = [await gets.get(Request(method="GET", url=url, headers=HEADERS), timeout_s=30) for _ in range(3)]
        assert looks[0].status == 200
        assert json.loads(looks[0].body)["status"] == "processing"
        assert [look.failure for look in looks[1:]] == ["timeout", "timeout"]
        assert 60 < scene.loop.time() - began < 62

    Scene().play(story)


@pytest.mark.parametrize(
    ("weather", "failure", "stage", "posts"),
    [
        (Bad("refused"), "refused", Stage.CONNECTING, 0),
        (Bad("silence"), "connect_timeout", Stage.CONNECTING, 0),
        (Bad(cut_at=0), "reset", Stage.BODY_SENT, 0),
        (Bad(cut_at=200), "reset", Stage.BODY_SENT, 1),
        (Bad(back={"cut_at": 0}), "reset", Stage.BODY_SENT, 1),
        (Bad(back={"cut_at": 40, "cut_end": "fin"}), "closed", Stage.BODY_SENT, 1),
        (Bad(back={"stall_at": 0, "stall_s": 1_000}), "timeout", Stage.BODY_SENT, 1),
        (Bad(stall_at=0, stall_s=1_000), "timeout", Stage.BODY_SENT, 0),
    ],
)
def test_faults_on_the_way_end_the_post_with_what_really_happened(
    weather: Bad, failure: str, stage: Stage, posts: int
) -> None:
    async def story(scene: Scene) -> None:
        exchange = await scene.post()
        assert (exchange.failure, exchange.stage) == (failure, stage)
        await passing(2_000)
        assert len(scene.service.ledger.posts) == posts

    Scene(weather).play(story)


def test_a_silence_that_is_shorter_than_the_limit_only_delays() -> None:
    async def story(scene: Scene) -> None:
        began = scene.loop.time()
        assert (await scene.post()).status == 201
        assert 4 < scene.loop.time() - began < 5

    Scene(Bad(stall_at=0, stall_s=4)).play(story)


@pytest.mark.parametrize(("stall_s", "posts"), [(0.0, 1), (5.0, 0)])
def test_a_killed_sender_s_bytes_arrive_if_they_were_on_the_line_and_are_dropped_if_they_waited(
    stall_s: float, posts: int
) -> None:
    async def story(scene: Scene) -> None:
        sender, context = Process("sender"), contextvars.copy_context()
        scene.processes.append(sender)
        context.run(PROCESS.set, sender)
        scene.loop.create_task(scene.post(), context=context)
        while not any(end.way.count for end in scene.network._sockets.values()):
            await passing(0.001)
        sender.kill()
        await passing(100)
        assert len(scene.service.ledger.posts) == posts

    Scene(Bad(stall_at=0 if stall_s else None, stall_s=stall_s)).play(story)
