"""Where a server's files lie: in folders that only its account and root can enter, at paths short enough for a socket.

An ordinary user's server lives in the home that was given. Root's server runs as another account, which cannot enter root's private
folders; its files lie under /var/lib/coatcheck, where only root can create names, and the home keeps a pointer. Only folders made here
are given away or made private, and root writes no file in a folder that it gave away.

No password guards the database. Its socket is the only way in, and the socket lies in a folder with mode 0700, so the kernel admits the
server's account and root and nobody else; a password file beside it would have the same readers.
"""

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coatcheck.devdb.account import Account
from coatcheck.errors import Failed

ROOTS_OWN = Path("/var/lib/coatcheck")
SOCKET_PATH_BYTES = 103  # sun_path holds 104 bytes with its NUL on macOS and 108 on Linux
SOCKET_FILE = ".s.PGSQL.5432.lock"  # the longest name that the server makes beside its socket


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folders of one server. `pointer` is where the home remembers a root that lies elsewhere."""

    root: Path
    sockets: Path
    account: Account | None
    pointer: Path | None = None

    @property
    def data(self) -> Path:
        """PGDATA; it exists only when complete."""
        return self.root / "data"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.root / "log"

    @property
    def settings(self) -> Path:
        """The server's configuration file."""
        return self.root / "settings.conf"

    def of_deleted_home(self) -> bool:
        """Whether what lies here belonged to a home that was deleted since: the new one does not point here yet."""
        return self.pointer is not None and not self.pointer.exists()

    def ready(self) -> None:
        """Make what must be there before the server starts. Raises `Failed` when another account owns part of it."""
        private(self.sockets, self.account)
        if not self.log.exists():
            self.log.touch(mode=0o600)
            give(self.log, self.account)
        if self.pointer is not None:
            self.pointer.write_text(str(self.root))

    def discard(self, locks: Path) -> None:
        """Delete the server's files and the folder of its locks. The server must have ended.

        Whoever is killed half-way leaves nothing that looks like a data folder: the next start clears it away as it does what is unfinished.
        """
        if self.data.exists():
            self.data.rename(self.root / "making-nothing")
        for doomed in (self.sockets, self.root, locks):
            shutil.rmtree(doomed, ignore_errors=True)


def locks_folder(home: Path) -> Path:
    """The private folder in `home` that holds locks, pointer and, for an ordinary user, the server; made on demand.

    Raises `Failed` when it cannot be written, as after a run by another account.
    """
    folder = home.resolve() / "postgres"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _not_ours(folder) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise _not_ours(folder)
    return folder


def chosen(folder: Path, account: Account | None) -> Place:
    """The place of the server whose locks folder is `folder`."""
    pointer = None if account is None else folder / "place"
    if pointer is None:
        root = folder
    else:
        root = Path(pointer.read_text()) if pointer.exists() else roots_own() / _key(folder)
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        root.chmod(0o711)
    sockets = root / "run"
    if not _fits(sockets):
        sockets = Path(tempfile.gettempdir()) / f"coatcheck-{os.geteuid()}-{_key(folder)}"
    return Place(root=root, sockets=sockets, account=account, pointer=pointer)


def roots_own() -> Path:
    """The folder in which root keeps servers and copies of programs; root's alone to write, everybody's to pass through."""
    if not ROOTS_OWN.exists():
        ROOTS_OWN.mkdir(parents=True)
        ROOTS_OWN.chmod(0o755)
    found = ROOTS_OWN.lstat()
    if found.st_uid != 0 or found.st_mode & 0o022:
        raise Failed(f"expected {ROOTS_OWN} to be root's alone to write, got another owner or mode", next="remove it")
    return ROOTS_OWN


def private(folder: Path, account: Account | None) -> None:
    """Make `folder` with mode 0700 for the account; one that is there already must be just so."""
    uid = os.geteuid() if account is None else account.uid
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if found.st_uid not in {uid, os.geteuid()} or found.st_mode & 0o077:
            raise _not_ours(folder) from None
    give(folder, account)


def give(path: Path, account: Account | None) -> None:
    """Hand something that was made here to the account, if the server has one of its own."""
    if account is not None:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def _fits(sockets: Path) -> bool:
    """Whether every client takes the path: short enough for the kernel, and nothing in it that a URL or a list would split."""
    plain = re.fullmatch(r"[\w./+-]+", str(sockets), re.ASCII)
    return plain is not None and len(os.fsencode(sockets / SOCKET_FILE)) <= SOCKET_PATH_BYTES


def _not_ours(folder: Path) -> Failed:
    return Failed(
        f"expected {folder} to be a private folder of the account that runs the server, got another account's",
        next="remove it, or choose another COATCHECK_HOME",
    )


def _key(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
