"""The simulated service on real sockets: connections in, turns out. A surprise inside ends in `stop()` raising it, never in silence."""

import asyncio
import socket
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from coatcheck.seams import Seams
from coatcheck.sim.answers import not_found
from coatcheck.sim.cancel import METHODS, cancel
from coatcheck.sim.chance import Chance
from coatcheck.sim.channel import Channel
from coatcheck.sim.control import CONTROL_PREFIX, control, jobs_json, ledger_json
from coatcheck.sim.create import arrived, create
from coatcheck.sim.director import Director
from coatcheck.sim.jobs import Job
from coatcheck.sim.ledger import Ending, Ledger
from coatcheck.sim.listing import jobs_listed
from coatcheck.sim.look import look
from coatcheck.sim.output import OUTPUTS_PREFIX, output
from coatcheck.sim.replies import error_reply
from coatcheck.sim.requests import Broken, Head
from coatcheck.sim.script import Script
from coatcheck.sim.settings import ServiceSettings
from coatcheck.sim.turn import Turn, answer, no_answer, post_answer
from coatcheck.sim.world import World

BACKLOG = 4_096


class SimulatedService:
    """A remote service that renders nothing and bills nobody.

    Example: `async with SimulatedService(seams=Seams.real(), seed=7) as service: print(service.base_url)`.
    Raises OSError from `start()` when the port is taken, Refused when a script names what does not exist.
    """

    def __init__(
        self,
        *,
        seams: Seams,
        seed: int = 0,
        script: Script | None = None,
        api_keys: frozenset[str] | None = None,
        settings: ServiceSettings | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        chance = Chance(seed=seed)
        self._world = World(
            seams=seams,
            chance=chance,
            api_keys=api_keys,
            director=Director(chance),
            settings=settings or ServiceSettings(),
        )
        self._world.install(script or Script(), replace=True)
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._surprise: BaseException | None = None

    @property
    def base_url(self) -> str:
        """`http://host:port`, known once started; a service that starts again keeps its port."""
        return self._world.base_url

    @property
    def ledger(self) -> Ledger:
        """The POST ledger; `ledger.posts` are frozen records."""
        return self._world.ledger

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs in the order of creation."""
        return tuple(self._world.jobs.values())

    @property
    def held_peak(self) -> int:
        """How many looks were held open at once, at most."""
        return self._world.holds.peak

    def script(self, rules: Script | list[dict[str, Any]] | dict[str, Any], *, replace: bool = False) -> None:
        """Add rules, mix and settings, or replace rules and mix. Raises Refused naming the rule; nothing is taken over then."""
        self._world.install(rules if isinstance(rules, Script) else Script.parse(rules), replace=replace)

    def ledger_json(self) -> dict[str, Any]:
        """What `GET /_sim/ledger` answers."""
        return ledger_json(self._world)

    async def jobs_json(self) -> list[dict[str, Any]]:
        """What `GET /_sim/jobs` answers."""
        return await jobs_json(self._world)

    async def start(self) -> None:
        """Listen. Jobs and ledger of an earlier start are kept, as they are when a real service is away for a while."""
        server = await asyncio.start_server(
            self._connected, self._host, self._port, backlog=BACKLOG, start_serving=False
        )
        listening = server.sockets[0]
        if self._world.settings.receive_buffer_bytes is not None:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._world.settings.receive_buffer_bytes)
        await server.start_serving()
        self._server = server
        self._port = listening.getsockname()[1]
        self._world.base_url = f"http://{self._host}:{self._port}"

    async def stop(self) -> None:
        """Reset what is open and stop listening. Raises what went wrong inside, if anything did."""
        if self._server is None:
            return
        self._server.close()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()
        self._server = None
        if self._surprise is not None:
            raise self._surprise

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(Channel(reader, writer, self._world.seams.sleep)))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._surprise = self._surprise or error

    async def _converse(self, channel: Channel) -> None:
        """Turn by turn, until one side ends the connection."""
        try:
            while (head := await channel.inbound.head()) is not None:
                turn = self._broken(head) if isinstance(head, Broken) else await self._turn(head, channel)
                if turn is None or not await channel.play(turn.steps, partial(self._note, turn.order)):
                    return
        finally:
            with suppress(OSError):
                channel.close()

    def _note(self, order: int | None, sent_bytes: int, ending: Ending) -> None:
        if order is not None:
            at = self._world.seams.clock.now().isoformat()
            self._world.ledger.progress(order, sent_bytes, ending, at=at)

    async def _turn(self, head: Head, channel: Channel) -> Turn | None:
        world, settings = self._world, self._world.settings
        if head.path.startswith(CONTROL_PREFIX):
            return await control(world, head, channel)
        if head.method in METHODS and (job_id := settings.cancelled_id(head.path)) is not None:
            return await cancel(world, head, channel, job_id)
        if head.method == "POST":
            return await (create if head.path == settings.create_path else self._astray)(world, head, channel)
        body = await channel.inbound.body(settings.body_limit_bytes)
        return await self._read_turn(head) if body.complete else None

    async def _read_turn(self, head: Head) -> Turn:
        """GETs; nothing here creates or bills."""
        world, settings = self._world, self._world.settings
        if head.method != "GET":
            return answer(head, error_reply(405, "method_not_allowed", "GET and POST only"))
        if head.path.startswith(OUTPUTS_PREFIX):
            return output(world, head)
        if settings.echoes and head.path == settings.create_path:
            return jobs_listed(world, head)
        if head.path.startswith(settings.job_prefix) and head.path.endswith(settings.job_suffix):
            end = len(head.path) - len(settings.job_suffix)
            return await look(world, head, head.path[len(settings.job_prefix) : end])
        return answer(head, not_found())

    @staticmethod
    async def _astray(world: World, head: Head, channel: Channel) -> Turn | None:
        """A POST to a path that creates nothing is in the ledger all the same."""
        order = arrived(world, head)
        body = await channel.inbound.body(world.settings.body_limit_bytes)
        world.ledger.body(order, body.data, complete=body.complete)
        if not body.complete:
            no_answer(world.ledger, order)
            return None
        return post_answer(world.ledger, order, head, not_found())

    def _broken(self, broken: Broken) -> Turn | None:
        """A head that never became whole: a POST among them is in the ledger, and who is still there hears why."""
        method, _, rest = broken.first.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        head = Head(method=method, target=rest.partition(" ")[0], path="", keep=False)
        order = arrived(self._world, head) if method == "POST" else None
        if broken.gone:
            if order is not None:
                no_answer(self._world.ledger, order)
            return None
        reply = error_reply(400, "bad_request", "this is not HTTP/1.1")
        return answer(head, reply) if order is None else post_answer(self._world.ledger, order, head, reply)
