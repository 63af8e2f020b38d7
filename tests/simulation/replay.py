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
    for line in lines[-asked.last :]:
        print(line)
    print(f"seed {asked.seed}: {outcome.events} events, {outcome.steps} steps, hash {outcome.digest}", file=sys.stderr)
    for finding in outcome.findings:
        print(finding, file=sys.stderr)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
