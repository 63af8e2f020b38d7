"""What one operation cost when the baseline was written, and what may grow: `python -m counters.baseline` writes it anew.

Statements are exact: the course makes the same ones each time. Rows and log may grow a little, because a worker reports on itself every few
seconds (a row each), and because PostgreSQL prunes a page or splits one a little earlier or later (measured: under 0.2 % of the log).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from counters.course import OPERATIONS, Cost, counted

FILE = Path(__file__).resolve().parent.parent.parent / "bench" / "baseline.json"
ROWS, LOG = 0.01, 0.02
"""By which share each may grow."""


def grown(before: Mapping[str, Any], cost: Cost) -> Sequence[str]:
    """Each counter that grew beyond its tolerance, in words; nothing where all is well."""
    found = [
        f"{name}: {number} statements for {cost.operations} operations, {before['statements'].get(name, 0)} in the baseline"
        for name, number in cost.statements.items()
        if number > before["statements"].get(name, 0)
    ]
    for name, tolerance in (("rows", ROWS), ("wal_bytes", LOG), ("final_wal_bytes", LOG)):
        is_now, was = getattr(cost, name) / cost.operations, before[name] / before["operations"]
        if is_now > was * (1 + tolerance):
            found.append(
                f"{name}: {is_now:.1f} for an operation, {was:.1f} in the baseline and {tolerance:.0%} more allowed"
            )
    return found


def read() -> Mapping[str, Mapping[str, Any]]:
    """The baseline, by the manner of the run."""
    found: Mapping[str, Mapping[str, Any]] = json.loads(FILE.read_text())
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps({manner: asdict(counted(manner)) for manner in OPERATIONS}, indent=2) + "\n")
