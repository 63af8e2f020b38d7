"""A worker process for tests: for each line on its input it works until nothing is left, then prints the most memory it ever held, in KiB."""

import asyncio
import re
import sys
from pathlib import Path

from coatcheck.app.workplace import worker_of
from coatcheck.config import load_settings
from coatcheck.seams import Seams


async def drain(url: str) -> None:
    """Work until idle."""
    async with worker_of(load_settings(), url, seams=Seams.real()) as (worker, _):
        await worker.run(until_idle=True)


def peak_kib() -> int:
    """VmHWM: the peak of this process's resident memory."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    for _ in sys.stdin:
        asyncio.run(drain(sys.argv[1]))
        sys.stdout.write(f"{peak_kib()}\n")
        sys.stdout.flush()
