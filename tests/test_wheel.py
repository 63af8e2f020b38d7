"""What is shipped: a wheel built from the clone, installed with its demo's own dependencies into an empty environment, tells the whole story."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq"]
BIN = "Scripts" if os.name == "nt" else "bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment that holds the wheel, what its demo needs, and nothing else; not even pip."""

    folder: Path

    def run(self, *command: str) -> str:
        """Run one of its programs away from the clone, with an environment that knows nothing of it."""
        environ = {"HOME": str(self.folder), "PATH": os.defpath, "LANG": "C.UTF-8"}
        program = [str(self.folder / BIN / command[0]), *command[1:]]
        done = subprocess.run(program, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def locked() -> Iterator[Requirement]:
    """What the demo needs on this interpreter, as its lock has it."""
    text = (ROOT / "requirements" / "demo.lock").read_text()
    for line in re.findall(r"^(\S+==[^\\\n]+)", text, re.MULTILINE):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel and each distribution that the lock names, file by file as it is installed here: no index needed, nothing more."""
    folder = tmp_path_factory.mktemp("elsewhere") / "env"
    venv.create(folder, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for requirement in locked():
        distribution = metadata.distribution(requirement.name)
        assert requirement.specifier.contains(distribution.version), f"{requirement} is not what is installed here"
        for file in distribution.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(file.locate()), packages / file)
    subprocess.run(
        [*PIP, "--python", str(folder / BIN / "python"), "install", "--no-deps", "--no-index", str(wheel)], check=True
    )
    return Installed(folder=folder)


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "src"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    kept = {str((ROOT / name).relative_to(SOURCE)) for name in tracked.split("\0") if name and (ROOT / name).is_file()}
    assert kept - names == set()
    assert all(name.startswith("coatcheck/") for name in names)
    assert {Path(name).suffix for name in names} == {".py", ".sql", ".tsv", ".typed"}
    assert "coatcheck/py.typed" in names


def test_it_imports_from_where_it_was_installed_and_knows_its_version(installed: Installed, wheel: Path) -> None:
    where = installed.run("python", "-c", "import coatcheck; print(coatcheck.__file__)").strip()
    assert Path(where).is_relative_to(installed.folder)
    assert wheel.name.split("-")[1] in installed.run("coatcheck", "--version")


def test_it_runs_the_demo(installed: Installed) -> None:
    account = json.loads(installed.run("coatcheck", "demo", "--json", "--operations", "30").splitlines()[-1])
    assert (account["operations"], account["max_posts_per_operation"], account["ok"]) == (30, 1, True)
    assert account["lost"] == account["duplicated"] == account["checksum_mismatches"] == 0
