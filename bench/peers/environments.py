"""Each contestant's own virtual environment, made from its lock and made again when the lock or the interpreter changes."""

import hashlib
import os
import shutil
import subprocess  # noqa: TID251 - for the word DEVNULL; the seams spawn
import sys
from collections.abc import Iterator
from pathlib import Path

from coatcheck.errors import Failed, Refused
from coatcheck.seams import Seams

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench"
LOCKS = Path(__file__).parent / "requirements"
VERSIONS = ("3.13", "3.12", "3.14")
"""One interpreter for all: oban-py needs 3.12 or newer."""


def interpreter(seams: Seams, asked: str | None) -> str:
    """The Python of every environment. Raises `Refused` where none is found."""
    for candidate in _candidates(asked):
        if _ended(seams, [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]) == 0:
            return candidate
    if asked is not None:
        raise Refused(f"expected Python 3.12 or newer as --python, got {asked!r}", next="name another one")
    raise Refused("expected Python 3.12 or newer, found none", next="install one, or name it with --python")


def ready(seams: Seams, name: str, python: str) -> str:
    """The interpreter of the environment `name`, which is made where it is missing. Raises `Failed` when it cannot be."""
    folder, lock = HOME / name, LOCKS / f"{name}.lock"
    stamp, made_of = folder / "made-of", hashlib.sha256(lock.read_bytes() + python.encode()).hexdigest()
    own = str(folder / "bin" / "python")
    if stamp.exists() and stamp.read_text() == made_of:
        return own
    sys.stderr.write(f"Installing {lock.relative_to(ROOT)} into {folder.relative_to(ROOT)}\n")
    uv = os.fspath(Path(sys.executable).with_name("uv"))
    if not os.access(uv, os.X_OK):
        raise Refused(
            f"expected uv beside {sys.executable}, found none", next="make the environment with scripts/set-up dev"
        )
    for command in (
        [uv, "venv", "--quiet", "--clear", "--python", python, os.fspath(folder)],
        [uv, "pip", "sync", "--quiet", "--require-hashes", "--python", own, os.fspath(lock)],
    ):
        if _ended(seams, command, quiet=False) != 0:
            raise Failed(f"expected an environment from {lock.name}, and uv failed", next="see what it said above")
    stamp.write_text(made_of)
    return own


def _candidates(asked: str | None) -> Iterator[str]:
    if asked is not None:
        yield shutil.which(asked) or asked
        return
    # A version manager's interpreters need not be on the PATH.
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        if found := shutil.which(f"python{version}"):
            yield found
        yield from (os.fspath(path) for path in sorted(managed.glob(f"{version}.*/bin/python")))


def _ended(seams: Seams, command: list[str], *, quiet: bool = True) -> int:
    try:
        process = seams.spawn(command, stderr=subprocess.DEVNULL if quiet else None)
    except OSError:
        return 1
    return process.wait()
