"""Plays one seed again, shows every event and says what was found: `python -m simulation.replay --seed 7`, from the folder of the tests."""

import argparse
import logging
import sys
from collections.abc import Sequence

from simulation.run import Outcome, play

LEGEND = f"{'seconds':>12} {'step':>7} {'process':8} event (** is a fault)"


def main(arguments: Sequence[str]) -> int:
    """The exit status is 1 where something was found."""
    asked = _asked(arguments)
    logging.disable(logging.CRITICAL)
    outcome = play(asked.seed, keeps=True)
    sys.stdout.writelines(f"{line}\n" for line in shown(outcome.lines, about=asked.about, last=asked.last))
    # both may be one file, where the verdict has to come last
    sys.stdout.flush()
    sys.stderr.writelines(f"{line}\n" for line in verdict(outcome))
    return 1 if outcome.findings else 0


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulation.replay", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--about", default="", help="show only events that contain this text")
    parser.add_argument(
        "--last", type=_count, help="show only so many events, the last ones; 0 shows the verdict alone"
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, got {text!a}")
    return int(text)


def shown(lines: Sequence[str], *, about: str, last: int | None) -> list[str]:
    """The events that were asked for, under the names of their columns."""
    found = [line for line in lines if about in line]
    chosen = found if last is None else found[max(0, len(found) - last) :]
    return [LEGEND, *chosen] if chosen else []


def verdict(outcome: Outcome) -> list[str]:
    """How far the seed went, and what was found, or that nothing was."""
    count = len(outcome.findings)
    told = "nothing found" if count == 0 else f"{count} finding{'' if count == 1 else 's'}:"
    return [
        f"seed {outcome.seed}: {outcome.events} events, {outcome.steps} steps, hash {outcome.digest}",
        told,
        *outcome.findings,
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
