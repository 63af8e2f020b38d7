"""A process that tells what it finds itself in: as a course of the nursery, and as a program of its own."""

import atexit
import gc
import json
import os
import random
import signal
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path

SIGNALS = ("SigBlk", "SigIgn", "SigCgt")


def run(arguments: list[str]) -> None:
    """Tell it, and end as the arguments say."""
    sys.stdout.write(f"{json.dumps(found(), sort_keys=True)}\n")
    sys.stderr.write(sys.stdin.read())
    end, *_ = arguments
    match end:
        case "code":
            sys.exit(7)
        case "words":
            sys.exit("words")
        case "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        case "surprise":
            raise ValueError(end)
        case "interrupt":
            raise KeyboardInterrupt
        case "late":
            atexit.register(sys.stdout.write, "the last word\n")
            threading.Timer(0.05, sys.stdout.write, ["a thread's word\n"]).start()
        case _:
            assert end == "end"


def found() -> dict[str, object]:
    """What has to be as in a fresh process, and what may never be as in another."""
    status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return {
        "environ": dict(os.environ),
        "folder": os.fspath(Path.cwd()),
        "signals": {name: status[name] for name in SIGNALS},
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "threads": threading.active_count(),
        "group": os.getpgid(0),
        "session": os.getsid(0),
        "open": open_files(),
        "collects": gc.isenabled(),
        "own": [os.getpid(), random.random(), str(uuid.uuid4())],
    }


def open_files() -> dict[int, str]:
    """What is open beside the three streams."""
    left = {}
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself, while it is read
            left[int(path.name)] = os.fspath(path.readlink())
    return {number: what for number, what in left.items() if number > 2}


if __name__ == "__main__":
    run(sys.argv[1:])
