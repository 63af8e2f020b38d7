"""Everything of one run, composed from its seed: loop, network, service, store, hosts, people. It is played by `simulation.run.play`.

A run has two halves. In the first all that the mix allows goes wrong; then everything is healed, and within a bounded time all that is owed
must have come about. Nothing in it knows the time of day, the machine or another run.
"""

import asyncio
import contextlib
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from coatcheck.app import asking, workplace
from coatcheck.app.operating.operator import Operator
from coatcheck.config import Settings, load_settings
from coatcheck.delivery import file_sink
from coatcheck.provider.connecting import secure_context
from coatcheck.seams import Seams
from coatcheck.sim import Script, SimulatedService
from coatcheck.spool import folder as spool_folder
from coatcheck.spool import own as spool_own
from coatcheck.store.db import Database
from memory.store import Memory
from simulation.database import DatabaseServer, SimDatabase
from simulation.disk import Disk, ProcessOs
from simulation.host import Host
from simulation.journal import Journal
from simulation.loop import VirtualLoop
from simulation.network import SimNetwork
from simulation.people import Application, Person
from simulation.process import Process
from simulation.seeded import SimClock, now_of, seams_of
from simulation.service import overheard, script_of
from simulation.strikes import PointFaults, PointsPassed
from simulation.troubles import Mix, Trouble
from simulation.weather import DrawnWeather

_TLS = secure_context()
"""Made once: reading the machine's certificates takes longer than a run may."""
_SHM = Path("/dev/shm")
PROVIDER = {
    "API_KEY": "key-for-tests",
    "BASE_URL": "http://service.example:8000",
    "SEND_S": "2",
    "TIMEOUT_S": "5",
    "SERVICE_LAG_S": "1",
    "MARGIN_S": "0.5",
    "WAIT_S": "2",
    "OBSERVE_TIMEOUT_S": "4",
    "LOOK_MIN_S": "0.2",
    "NOT_FOUND_GRACE_S": "3",
    "OBSERVE_FOR_S": "120",
}


class World:
    """One run's."""

    def __init__(self, seed: int, *, keeps: bool = False, mix: Mix | None = None) -> None:
        self.seed = seed
        chance = self.chance_of("shape")
        self.loop = VirtualLoop(limit_s=3_000, limit_steps=2_000_000)
        self.journal = Journal(self.loop, keeps=keeps)
        self.mix = mix or Mix(self.chance_of("mix"))
        self.network = SimNetwork(self.loop)
        self.loop.network = self.network
        self.loop.disk = Disk(self.mix, self.chance_of("disk"), self.journal)
        self.memory = Memory(partial(now_of, self.loop))
        self.database = DatabaseServer(self.memory, self.loop, self.mix, self.chance_of("database"), self.journal)
        self.passed = PointsPassed()
        self.folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=_SHM if _SHM.is_dir() else None))
        self.echoes = chance.random() < 0.4
        script = script_of(self.mix, self.chance_of("service"), echoes=self.echoes)
        self.settings = self._settings(cancels="cancel_path" in script["service"])
        self.service = SimulatedService(
            seams=self._seams("service"), seed=seed, script=Script.parse(script), host="service.example", port=8000
        )
        overheard(self.service, self.journal)
        self.application = Application(
            memory=self.memory,
            loop=self.loop,
            mix=self.mix,
            chance=self.chance_of("application"),
            journal=self.journal,
            count=chance.randint(5, 13),
            within_s=12.0,
        )
        self.person = self._person()
        self.hosts = [self._host(number) for number in range(chance.choice((1, 2, 2, 3)))]

    def chance_of(self, name: str) -> random.Random:
        """Chance for one purpose, which no other purpose disturbs."""
        return random.Random(f"{self.seed} {name}")

    def _settings(self, *, cancels: bool) -> Settings:
        provider = {
            **PROVIDER,
            "KIND": "echo" if self.echoes else "genace",
            **({"CANCEL_PATH": "/api/v1/jobs/{id}/cancel"} if cancels else {}),
        }
        return load_settings(
            {
                "COATCHECK_HOME": str(self.folder / "home"),
                "COATCHECK_SINK": (self.folder / "sink").as_uri(),
                "COATCHECK_WAKE": "poll",
                "COATCHECK_DELIVER_TRIES": "6",
                **{f"COATCHECK_PROVIDERS__GENACE__{name}": value for name, value in provider.items()},
            },
            self.folder,
        )

    def _seams(self, name: str) -> Seams:
        return seams_of(self.loop, self.network, self.chance_of(name), name=name)

    def _person(self) -> Person:
        line = SimDatabase(self.database, "person")

        async def opened() -> Database:
            return line

        operator = Operator("ada", settings=self.settings, seams=self._seams("person"), reading=opened, writing=opened)
        return Person(
            memory=self.memory,
            service=self.service,
            operator=operator,
            database=line,
            mix=self.mix,
            chance=self.chance_of("person's choices"),
            journal=self.journal,
        )

    def _host(self, number: int) -> Host:
        chance = self.chance_of(f"host {number}")
        booted_s = chance.uniform(0, 1e6)

        def seams_for(host: Host, process: Process) -> Seams:
            clock = SimClock(self.loop, booted_s=booted_s)
            if chance.random() < self.mix.rate(Trouble.CLOCK_WRONG):
                clock.skew_s = chance.uniform(-3_600, 3_600)
                self.journal.strike(Trouble.CLOCK_WRONG, f"{clock.skew_s:.0f} s")
            faults = PointFaults(
                process,
                loop=self.loop,
                mix=self.mix,
                chance=chance,
                journal=self.journal,
                passed=self.passed,
                drain=host.drain,
                halt=host.halt,
            )
            return seams_of(self.loop, self.network, chance, name=process.name, faults=faults, clock=clock)

        return Host(
            number,
            loop=self.loop,
            settings=self.settings,
            database=self.database,
            chance=chance,
            journal=self.journal,
            seams_for=seams_for,
        )

    def one_more(self) -> Host:
        """Another host, that was never there before."""
        self.hosts.append(self._host(len(self.hosts)))
        return self.hosts[-1]

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """While it lasts, what production asks the machine for it asks this world for."""
        system = ProcessOs()
        with contextlib.ExitStack() as stack:
            for module in (file_sink, spool_folder, spool_own):
                stack.enter_context(mock.patch.object(module, "os", system))
            for module in (workplace, asking):
                stack.enter_context(mock.patch.object(module, "secure_context", return_value=_TLS))
            yield

    def end(self) -> None:
        """Leave nothing behind."""
        self.loop.end(process for host in self.hosts for process in host.processes)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def begin(self) -> list["asyncio.Task[None]"]:
        """The service listens and the hosts begin."""
        await self.service.start()
        self.network.weather = DrawnWeather(self.mix, self.chance_of("weather"), self.journal)
        return [asyncio.create_task(host.keep_running()) for host in self.hosts]
