"""Brings the programs where the server's account can execute them: a virtual environment below root's home is closed to it.

A copy is complete or absent under its name: it grows under another name and is renamed, under a lock.
"""

import fcntl
import os
import shutil
from dataclasses import replace
from pathlib import Path

from coatcheck.devdb.binaries import Binaries
from coatcheck.devdb.place import roots_own
from coatcheck.devdb.programs import Programs
from coatcheck.errors import Failed

LEFT_OUT = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a", "*.py", "__pycache__")


def executable(programs: Programs) -> Programs:
    """The same programs at a place where their account can execute them. Raises `Failed` when there is none."""
    if _executes(programs):
        return programs
    if programs.account is not None and programs.binaries.movable:
        moved = replace(programs, binaries=_copied(programs.binaries))
        if _executes(moved):
            return moved
    raise Failed(
        f"expected to run the programs in {programs.binaries.bin_dir}"
        f"{f' as {programs.account.name}' if programs.account else ''}, got a refusal of the system",
        next="use an installation that this account can execute, or set COATCHECK_DATABASE_URL",
    )


def _executes(programs: Programs) -> bool:
    """Found out by trying: modes alone do not tell about mount options or access lists."""
    try:
        programs.major_version()
    except (OSError, Failed):
        return False
    return True


def _copied(binaries: Binaries) -> Binaries:
    folder = roots_own() / "programs"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / binaries.name
        if not complete.is_dir():
            _grown(binaries, folder / f"{binaries.name}.partial").rename(complete)
    finally:
        os.close(lock)
    return binaries.moved_to(complete)


def _grown(binaries: Binaries, partial: Path) -> Path:
    shutil.rmtree(partial, ignore_errors=True)
    for source in binaries.movable:
        shutil.copytree(source, partial / source.name, symlinks=True, ignore=LEFT_OUT)
    for path in (partial, *partial.rglob("*")):
        if not path.is_symlink():  # a strict umask closed the copies to others
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return partial
