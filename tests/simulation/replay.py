"""Plays one seed again and shows every event: `python -m simulation.replay --seed 7`, from the folder of the tests."""

import argparse
import logging
import sys

from simulation.run import play


def main() -> int:
    """The exit status is 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m simulation.replay", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--about", default="", help="show only events that contain this text")
    parser.add_argument("--last", type=int, default=0, help="show only so many events")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    outcome = play(asked.seed, keeps=True)
    lines = [line for line in outcome.lines if asked.about in line]
    sys.stdout.writelines(f"{line}\n" for line in lines[-asked.last :])
    told = f"seed {asked.seed}: {outcome.events} events, {outcome.steps} steps, hash {outcome.digest}"
    sys.stderr.writelines(f"{line}\n" for line in (told, *outcome.findings))
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
