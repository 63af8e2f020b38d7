"""The service as a command: prints where it listens, then serves until it is asked to end."""

import asyncio
import json
import signal
from pathlib import Path
from typing import TextIO

from coatcheck.seams import Seams
from coatcheck.sim.script import Script
from coatcheck.sim.server import SimulatedService
from coatcheck.sim.settings import ServiceSettings


async def serve(
    port: int,
    seed: int,
    script_file: Path | None,
    out: TextIO,
    *,
    style: str = "genace",
    host: str = "127.0.0.1",
    api_keys: frozenset[str] | None = None,
    seams: Seams | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. The first line on `out` is `{"base_url": …}`, flushed once the socket listens.

    `style` is one of `settings.STYLES`; what the script says of it counts more.

    Raises Refused for a script that cannot be read or names what does not exist, OSError when the port is taken.
    Example: `asyncio.run(serve(0, 7, Path("script.json"), sys.stdout))`.
    """
    script = Script.load(script_file) if script_file else None
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    try:
        service = SimulatedService(
            seams=seams or Seams.real(),
            seed=seed,
            script=script,
            api_keys=api_keys,
            settings=ServiceSettings(style=style),
            host=host,
            port=port,
        )
        async with service:
            out.write(json.dumps({"base_url": service.base_url}) + "\n")
            out.flush()
            await asked.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
