"""Where the processor time of whole lives goes: `python -m bench.lifecycle`. What they cost otherwise, `coatcheck bench` tells.

One worker in this process, on the loop and with the pace of collecting that `coatcheck worker` has, under a profiler that counts the processor's time and
slows it down: shares can be compared, times cannot.
"""

import argparse
import asyncio
import cProfile
import pstats
import sys
import tempfile
import time  # noqa: TID251 - for the profiler's own clock
from pathlib import Path

from bench.refusals import told
from coatcheck.app.workplace import worker_of
from coatcheck.bench import QUICK
from coatcheck.bench.ground import Ground, opened
from coatcheck.bench.lifecycle import verified
from coatcheck.bench.service import Service
from coatcheck.cli.collecting import collect_seldom
from coatcheck.config import load_settings
from coatcheck.seams import Seams, new_loop

HOTTEST = 25


async def lived(ground: Ground, service: Service, seams: Seams) -> None:
    """Work until nothing is left."""
    settings = load_settings(ground.environ(service), ground.home)
    async with worker_of(settings, ground.url, seams=seams) as (worker, _):
        await worker.run(until_idle=True)


def main() -> None:
    """Fill the queue, profile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1000)
    asked = parser.parse_args()
    seams, profile = Seams.real(), cProfile.Profile(time.process_time)
    collect_seldom()
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(Path(folder) / "bench", url=None, scale=QUICK, seams=seams, telling=lambda _: None) as ground,
        ground.serving() as service,
        ground.books() as books,
    ):
        books.enqueue("life", asked.operations)
        began = seams.clock.boottime()
        with profile, asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(lived(ground, service, seams))
        sys.stdout.write(f"{asked.operations / (seams.clock.boottime() - began):.0f} operations per second, profiled\n")
        verified(books, asked.operations)
        service.check_posts(asked.operations)
    pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(HOTTEST)


if __name__ == "__main__":
    with told():
        main()
