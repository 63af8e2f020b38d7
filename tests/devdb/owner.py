"""Another process that owns or shares an embedded server, to be stopped, killed, or run as another account."""

import os
import signal
import subprocess
import sys
from pathlib import Path

# Given a folder of programs, it becomes the account that owns the home's parent, after it read what only root may be able to read.
PROGRAM = """
import os
import sys
from pathlib import Path
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams

home = Path(sys.argv[1])
bin_dir = None
if len(sys.argv) > 2:
    bin_dir = Path(sys.argv[2])
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(home.parent.stat().st_gid)
        os.setuid(home.parent.stat().st_uid)
server = DevPostgres(home, seams=Seams.real(), bin_dir=bin_dir, settings={"fsync": "off"}).start()
print(server.pid, server.url(), server.data_dir, flush=True)
sys.stdin.read()
server.stop()
"""


class Owner:
    """Runs until told to stop; says who serves it, and where, once the server accepts connections."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ready(self) -> tuple[int, str, Path]:
        """Wait for the server: its process id, its address, its data folder."""
        assert self._process.stdout is not None
        pid, url, data = self._process.stdout.readline().decode().split()
        return int(pid), url, Path(data)

    def stop(self) -> int:
        """Let it stop using the server; its exit code."""
        self._process.communicate()
        return self._process.returncode

    def kill(self) -> None:
        """SIGKILL: it runs no line more."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and was not yet collected by its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True
