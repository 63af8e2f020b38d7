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
from coatcheck.seams import Seams, new_loop
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


def run(arguments: list[str]) -> None:
    """The course of a process: the database's address, the strikes, and whether it ends when nothing is left to do."""
    url, strikes, until = arguments
    logging.basicConfig(level=logging.WARNING)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(url, strikes, until_idle=until == "until_idle"))


if __name__ == "__main__":
    run(sys.argv[1:])
