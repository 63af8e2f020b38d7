"""Which process serves a data folder, read from the file that it keeps there. A number alone proves nothing: numbers are used again."""

import os
from pathlib import Path


def running(data: Path) -> int | None:
    """The process id of the server of `data`, or None when its file is missing, or left by a server that is gone."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
    return pid if _serves(pid, data) else None


def socket_folder(data: Path) -> Path:
    """Where the running server of `data` listens."""
    return Path((data / "postmaster.pid").read_text().splitlines()[4])


def forget(data: Path, sockets: Path) -> None:
    """Remove the traces of a server that is gone; its number may belong to another process by now, and would stop a start."""
    (data / "postmaster.pid").unlink(missing_ok=True)
    for trace in sockets.glob(".s.PGSQL.*"):
        trace.unlink(missing_ok=True)


def _serves(pid: int, data: Path) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # alive, and another account's
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists()  # no such folder at all: the number is all there is to go by
    return os.fsencode(data) in command.split(b"\0")
