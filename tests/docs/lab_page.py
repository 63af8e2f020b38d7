"""Writes the page of what the laboratory counted, from the figures that `make lab` left, so that no figure is typed by hand.

python -m docs.lab_page > ../docs/lab.md
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from docs.pages import DOCS

FILE = DOCS / "lab.json"
COUNTED: Final[Sequence[tuple[str, str, int]]] = (
    ("states of the largest world, all of them looked at", "model states of the largest world", 1_000_000),
    ("CPU seconds that this took", "model CPU seconds of the largest world", 1),
    ("broken variants of the table, each refuted by its shortest story", "model variants refuted", 12),
    ("seeds of whole workers on virtual time", "simulation seeds", 1_000),
    ("faults in the product that the simulation was given, and found", "simulation planted faults found", 10),
    ("steps that two stores took alike", "contract steps", 10_000),
    ("divergences planted in one of them, and found", "contract divergences found", 12),
    ("stories of random rules against a second set of books", "stateful examples", 500),
    ("cuts of the POST's exchange, by byte and way", "wire cuts", 2_000),
    ("cuts of commits, by byte and way", "commit cuts", 1_000),
    ("processes killed", "kills", 1_000),
    ("of these in pairs, one after the other in one operation", "kill pairs", 100),
    ("processes stopped for longer than their leases, then continued", "stops", 60),
    ("processes told to end", "terminations", 60),
    ("operations that went on after one of these, each with one POST", "recovered", 1_000),
    ("crashes of PostgreSQL", "crash restarts", 20),
    ("sessions that PostgreSQL ended", "backend kills", 50),
    ("errors injected, at every statement", "injected SQLSTATEs", 300),
    ("planner settings under which claims were tried", "planner settings tried", 100),
    ("failovers to a synchronous standby", "failovers", 20),
    ("writes acknowledged before these, none of them lost", "acknowledged enqueues through failovers", 1_000),
    ("failovers to an asynchronous one, whose losses were seen", "control failovers with losses seen", 3),
    ("split brains, fenced", "split brains", 1),
    ("mutants of the product, each killed", "mutants killed", 25),
)
"""What is told of each figure, its name in the file, and how many it must at least be."""


def told() -> Mapping[str, Any]:
    """What the last `make lab` left."""
    found: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def page() -> str:
    """The whole page."""
    lab = told()
    figures, files = lab["figures"], lab["files"]
    outcomes = ", ".join(f"{count:,.0f} {outcome}" for outcome, count in sorted(lab["tests"].items()))
    p99 = [figures[f"claim p99 {when} ms"] for when in ("without", "with held snapshot")]
    faults = sum(value for name, value in figures.items() if name.startswith("simulation faults: "))
    disks = [name.removeprefix("full disks: ") for name in figures if name.startswith("full disks: ")]
    return "\n".join(
        [
            "# What the laboratory counted",
            "",
            f"By `make lab` on {lab['cores']} cores with Python {lab['python']}: {len(files)} files, {outcomes}. Each file's last run counts, with its",
            "commit, in [lab.json](lab.json); this page is made from it by `make docs`.",
            "",
            "| commit | files | test seconds | at |",
            "|---|---|---|---|",
            *_runs(files),
            "",
            "| figure | counted |",
            "|---|---|",
            *(f"| {label} | {figures[name]:,.0f} |" for label, name, _ in COUNTED),
            f"| faults that the seeds were given, of {_classes(figures)} classes | {faults:,.0f} |",
            f"| p99 of a claim while a snapshot was held, and without, ms | {p99[1]:.0f}, {p99[0]:.0f} |",
            f"| what was full when the disk was | {', '.join(sorted(disks))} |",
            "",
            "Counts are of what was tried and met, not of what was meant to be. What they are worth is said under",
            "[Not promised](guarantees.md#not-promised): they bound failure rates under these faults, and the exhaustive ones hold within their bounds.",
            "",
        ]
    )


def _runs(files: Mapping[str, Any]) -> Iterator[str]:
    for commit, at in sorted({(each["commit"], each["at"]) for each in files.values()}, key=lambda run: run[1]):
        same = [each for each in files.values() if (each["commit"], each["at"]) == (commit, at)]
        yield f"| `{commit}` | {len(same)} | {sum(each['seconds'] for each in same):,.0f} | {at} |"


def _classes(figures: Mapping[str, float]) -> int:
    return sum(name.startswith("simulation faults: ") for name in figures)


if __name__ == "__main__":
    sys.stdout.write(page())
