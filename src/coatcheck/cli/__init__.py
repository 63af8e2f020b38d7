"""The command line: data on stdout, talk on stderr, one meaning for each exit code. A command imports what it needs and no more."""

from coatcheck.cli.program import main

__all__ = ["main"]
