"""The command line as a course of the nursery: all that any command loads is loaded, and nothing of it was used."""

import sys
from importlib import import_module, util

from coatcheck.cli import main
from coatcheck.cli.program import COMMANDS

LATER = (
    *("coatcheck.cli.tables", "coatcheck.cli.logs", "coatcheck.devdb", "coatcheck.store.failures", "coatcheck.version"),
    "coatcheck.cli.running",
    *("cyclopts.help", "cyclopts.help.formatters.default", "docstring_parser", "rich._emoji_codes"),
    *("encodings.idna", "importlib.resources.readers"),
)
"""What commands load while they run."""

for path, _ in COMMANDS.values():
    import_module(path.partition(":")[0])
for name in LATER:
    import_module(name)

PROGRAM = util.find_spec("coatcheck.__main__")


def run(arguments: list[str]) -> None:
    """What `python -m coatcheck` does, with the same `sys.argv`."""
    assert PROGRAM is not None
    sys.argv = [str(PROGRAM.origin), *arguments]
    sys.exit(main())
