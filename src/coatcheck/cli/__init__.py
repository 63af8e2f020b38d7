"""The command line: data on stdout, talk on stderr, one meaning for each exit code. A command imports what it needs and no more."""

import gc

__all__ = ["main"]


def main() -> int:
    """Run `sys.argv` and return the exit code."""
    # What is loaded lives to the end, so collecting it on the way and once more at the exit is a fifth of a short command's time (measured).
    gc.disable()
    from coatcheck.cli.program import run  # noqa: PLC0415 - loaded without the collector

    code = run()
    gc.freeze()
    return code
