"""`python -m bench.peers`: sets up the environments that are missing, holds the competition, and prints it. Minutes, and a quiet machine."""

import argparse
import json
import signal
import sys

from bench.peers import environments, report
from bench.peers.alone import ALONE
from bench.peers.competition import Plan, Standing, held
from bench.peers.contestants import CONTESTANTS
from bench.peers.stage import staged
from bench.refusals import told
from coatcheck.seams import Seams


def main() -> int:
    """Run it; 1 if any contestant failed."""
    asked = _asked()
    # who is told to end clears the stage away, as after an interrupt
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seams = Seams.real()
    python = environments.interpreter(seams, asked.python)
    wanted = [one for one in CONTESTANTS if not asked.only or one.name in asked.only]
    standings = [Standing(contestant=one, python=environments.ready(seams, one.requirements, python)) for one in wanted]
    requests = {each.requirements: environments.ready(seams, each.requirements, python) for each in ALONE}
    if asked.set_up:
        return 0
    plan = Plan(
        operations=asked.operations,
        sweep_operations=min(asked.sweep_operations, asked.operations),
        rounds=asked.rounds,
    )
    with staged(seams) as stage:
        where = report.machine(stage, seams)
        competition = held(stage, standings, plan, requests, _tell)
    what = report.versions(standings, python)
    if asked.json:
        sys.stdout.write(json.dumps(report.as_json(competition, where, what), indent=2) + "\n")
    else:
        sys.stdout.write(report.as_table(competition, where, what))
    return int(any(standing.problem for standing in competition.standings))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--operations", type=int, default=5000, help="of each round")
    parser.add_argument("--sweep-operations", type=int, default=2000, help="of each run that chooses a set-up")
    parser.add_argument("--rounds", type=int, default=3, help="of each contestant's best set-up; their median counts")
    parser.add_argument("--only", action="append", choices=[one.name for one in CONTESTANTS], help="may be repeated")
    parser.add_argument("--python", help="the interpreter of every environment, 3.12 or newer")
    parser.add_argument("--set-up", action="store_true", help="make the environments and run nothing")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    with told():
        sys.exit(main())
