"""A worker in a process of its own, as the command line composes it, except that its faults strike. Started by the tests beside it."""

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from coatcheck.app.workplace import worker_of
from coatcheck.config import load_settings
from coatcheck.seams import Seams
from faults.strike import Striking, read


async def main(url: str, strikes: str, *, until_idle: bool) -> None:
    settings = load_settings(os.environ, Path.cwd())
    faults = Striking(read(strikes))
    async with worker_of(settings, url, seams=replace(Seams.real(), faults=faults)) as (worker, incarnation):

        def drain() -> None:
            faults.draining = True
            worker.drain()
            sys.stderr.write("draining\n")

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drain)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, worker.stop)
        sys.stderr.write(f"ready {incarnation}\n")
        await worker.run(until_idle=until_idle)
    sys.stdout.write(json.dumps({"while_draining": faults.while_draining}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(sys.argv[1], sys.argv[2], until_idle=sys.argv[3] == "until_idle"))
