"""Names, addresses and dialling in the simulated world. What befalls a connection is decided when it is made, by `Weather`."""

import asyncio
import contextvars
import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from coatcheck.seams import Connect, Socket
from simulation.loop import VirtualLoop, passing
from simulation.transport import SimTransport
from simulation.wire import SimSocket, Way, connected

ADDRESS = "127.0.0.1"
_SYN_S = 127.0
"""How long a kernel tries to connect to who does not answer."""


@dataclass(slots=True, kw_only=True)
class Fate:
    """What befalls one connection: `dialling` is ok, refused or silence; `to` and `back` are its two ways."""

    dialling: str = "ok"
    to: Way = field(default_factory=lambda: Way(latency_s=0.002))
    back: Way = field(default_factory=lambda: Way(latency_s=0.002))


class Weather:
    """Fair: names are known, everybody is reached in a moment."""

    def resolving(self, host: str) -> float:
        """After how many seconds a name is known; raises OSError for one that is not."""
        return 0.001

    def fate(self) -> Fate:
        """Of the next connection."""
        return Fate()


class _Server(asyncio.AbstractServer):
    """Somebody who listens; only the port makes a difference."""

    def __init__(
        self,
        network: "SimNetwork",
        factory: Callable[[], asyncio.BaseProtocol],
        port: int,
        context: contextvars.Context,
    ) -> None:
        self.network = network
        self.factory = factory
        self.port = port
        self.context = context

    @property
    def sockets(self) -> list["_Server"]:
        return [self]

    def getsockname(self) -> tuple[str, int]:
        return ADDRESS, self.port

    async def start_serving(self) -> None:
        self.network.servers[self.port] = self

    def close(self) -> None:
        self.network.servers.pop(self.port, None)

    async def wait_closed(self) -> None:
        """Its connections are its owner's."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.network.loop

    def is_serving(self) -> bool:
        return self.network.servers.get(self.port) is self

    async def serve_forever(self) -> None:
        await self.start_serving()


class SimNetwork:
    """All sockets of one world."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.weather = Weather()
        self.servers: dict[int, _Server] = {}
        self.loop = loop
        self._sockets: dict[int, SimSocket] = {}
        self._number = 1 << 20

    def socket(self) -> SimSocket:
        """A fresh one, of the process that asks."""
        self._number += 1
        made = self._sockets[self._number] = SimSocket(self.loop, self._number)
        return made

    async def resolve(self, host: str, port: int) -> list[tuple[Any, ...]]:
        """Every name is this one address."""
        await passing(self.weather.resolving(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (ADDRESS, port))]

    async def connect(self, made: SimSocket, address: tuple[str, int]) -> None:
        """Dial. The other side learns of it in its own process."""
        fate = self.weather.fate()
        if fate.dialling == "silence":
            await passing(_SYN_S)
            raise TimeoutError(errno.ETIMEDOUT, "timed out")
        await passing(fate.to.latency_s + fate.back.latency_s)
        server = self.servers.get(address[1])
        if fate.dialling == "refused" or server is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
        if made.closed:
            raise OSError(errno.EBADF, "closed")
        made.way = fate.to
        server.context.run(self._accept, server, made, fate.back)

    def _accept(self, server: _Server, client: SimSocket, back: Way) -> None:
        end = self.socket()
        end.way = back
        connected(client, end)
        SimTransport(self.loop, end, server.factory(), server.context)

    async def transport(self, factory: Callable[[], asyncio.BaseProtocol], made: SimSocket) -> tuple[Any, Any]:
        protocol = factory()
        transport = SimTransport(self.loop, made, protocol, contextvars.copy_context())
        await asyncio.sleep(0)
        return transport, protocol

    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> asyncio.AbstractServer:
        """Listen on a port, the given one or a free one."""
        self._number += 1
        return _Server(self, factory, port or self._number % 40_000 + 10_000, contextvars.copy_context())

    def watch(self, descriptor: int, wake: Callable[[], None], *, sending: bool) -> None:
        end = self._sockets[descriptor]
        if sending:
            end.on_room = wake
            if end.room or end.broken is not None:
                wake()
        else:
            end.on_news = wake
            if end.has_news:
                wake()

    def unwatch(self, descriptor: int, *, sending: bool) -> bool:
        end = self._sockets.get(descriptor)
        if end is not None and sending:
            end.on_room = None
        elif end is not None:
            end.on_news = None
        return end is not None


class SimConnect(Connect):
    """The seam through which production makes its sockets."""

    def __init__(self, network: SimNetwork) -> None:
        self._network = network

    def socket(self, family: socket.AddressFamily) -> socket.socket:
        return cast("socket.socket", self._network.socket())

    async def dial(self, fresh: Socket, address: tuple[str, int]) -> None:
        await self._network.connect(cast("SimSocket", fresh), address)
