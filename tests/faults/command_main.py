"""The command line in a process of its own, except that faults strike wherever a command asks for the real seams. Started by the tests beside it."""

import sys
from importlib import import_module
from unittest import mock

from coatcheck.cli import main
from coatcheck.cli.program import COMMANDS
from coatcheck.seams import Seams
from faults.strike import Striking, read

for path, _ in COMMANDS.values():
    import_module(path.partition(":")[0])


def run(arguments: list[str]) -> None:
    """The course of a process: the strikes, then the words of the command."""
    strikes, *words = arguments
    sys.argv = ["coatcheck", *words]
    with mock.patch.object(Seams, "real", return_value=Seams(faults=Striking(read(strikes)))):
        sys.exit(main())


if __name__ == "__main__":
    run(sys.argv[1:])
