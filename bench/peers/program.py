"""A contestant's program in the interpreter of its own environment; whatever happens, it is gone at the end of the block."""

import json
import os
import subprocess  # noqa: TID251 - for the word PIPE; the seams spawn
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.peers.contestants import Contestant
from bench.peers.environments import ROOT
from bench.peers.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be run."""

    contestant: Contestant
    python: str
    set_up: Mapping[str, Any]
    operations: int
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that runs."""

    process: subprocess.Popen[bytes]
    word: IO[bytes]
    errors: Path

    @property
    def is_ready(self) -> bool:
        """Whether it has imported everything and waits for the word; blocks until it says so or ends."""
        return self.process.stdout is not None and self.process.stdout.readline() == b"ready\n"

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self.process.poll() is not None

    def go(self) -> None:
        """Say the word."""
        self.word.write(b"go\n")
        self.word.flush()

    def last_words(self) -> str:
        """The last line that it wrote on stderr."""
        return (self.errors.read_text(errors="replace").strip().splitlines() or ["nothing said"])[-1]


@contextmanager
def running(stage: Stage, task: Task, step: str, *, database_url: str, service_url: str = "") -> Iterator[Program]:
    """The contestant's program at its `step`, fill or work."""
    home = stage.home / task.database
    home.mkdir(exist_ok=True)
    order = {
        "database_url": database_url,
        "service_url": service_url,
        "operations": task.operations,
        "settings": {**task.set_up, "home": os.fspath(home)},
    }
    environ = {**os.environ, **({"PYTHONPATH": os.fspath(ROOT / "src")} if task.contestant.is_ours else {})}
    command = [task.python, os.fspath(task.contestant.program), step, json.dumps(order)]
    ends = os.pipe()
    with os.fdopen(ends[0], "rb") as ear, os.fdopen(ends[1], "wb") as word, (home / f"{step}.err").open("wb") as errors:
        process = stage.seams.spawn(
            command, stdin=ear, stdout=subprocess.PIPE, stderr=errors, env=environ, cwd=os.fspath(home)
        )
        try:
            yield Program(process=process, word=word, errors=home / f"{step}.err")
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
