"""The promises that every checker judges alike, over the rows of one operation at rest and over the sink. None shares a statement with what it checks.

What a checker knows beyond the rows stays with it: which POSTs are whose, when marks were committed, whom a person gave up.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

Row = Mapping[str, Any]
NOT_SPENT: Final = frozenset({"not_sent", "throttled", "proven_absent"})
"""Outcomes by which the authorisation of a dispatch may be used again."""
FINAL: Final = frozenset({"succeeded", "failed", "moderated", "cancelled", "expired"})
KNOWN_JOB: Final = frozenset({"accepted", "submission_failed"})
CLOSED: Final = frozenset({"rejected", "cancelled", "abandoned"})


def authorisations(operation: Row, dispatches: Sequence[Row]) -> Iterator[str]:
    """S2: an authorisation was given, and is spent at most once."""
    spent = Counter(
        row["authorisation"] for row in dispatches if row["outcome"] not in NOT_SPENT and not row["displaced"]
    )
    for authorisation, count in spent.items():
        if count > 1:
            yield f"duplicated: S2: authorisation {authorisation} was spent {count} times"
    for row in dispatches:
        if row["authorisation"] > operation["authorisation"] or row["number"] > operation["dispatch_count"]:
            yield f"duplicated: S2: dispatch {row['number']} under authorisation {row['authorisation']}, which nobody gave"
    if operation["phase"] == "dispatching":
        yield "S1: still dispatching when all is at rest"


def revisions(operation: Row, history: Sequence[Row]) -> Iterator[str]:
    """S7: revisions without a gap, each beginning where the last ended. S6: nothing after a final state but itself."""
    if [row["revision"] for row in history] != list(range(operation["revision"] + 1)):
        yield f"S7: revisions {[row['revision'] for row in history]} of an operation at {operation['revision']}"
    for axis in ("phase", "render_state", "delivery_state"):
        for before, after in pairwise(history):
            if before[f"to_{axis}"] != after[f"from_{axis}"]:
                yield f"S7: {axis} jumps at revision {after['revision']}"
        if history and history[-1][f"to_{axis}"] != operation[axis]:
            yield f"S7: the history ends with {axis} {history[-1][f'to_{axis}']}, the operation says {operation[axis]}"
    for row in history:
        if row["from_render_state"] in FINAL and row["to_render_state"] != row["from_render_state"]:
            yield f"S6: the final {row['from_render_state']} became {row['to_render_state']}"
        if row["from_delivery_state"] == "delivered" and row["to_delivery_state"] != "delivered":
            yield "S6: delivered was undone"


def lanes(operation: Row, outbox: Iterable[Row], deliveries: Iterable[Row]) -> Iterator[str]:
    """S12: whoever still waits for something has a lane, whoever is closed has none, and nobody keeps a lease."""
    numbers = {row["lane"] for row in outbox}
    for row in outbox:
        if row["leased_by"] is not None:
            yield f"left behind: lane {row['lane']} is leased by {row['leased_by']}"
    if operation["phase"] in CLOSED:
        yield from (f"S12: {operation['phase']} and lane {lane} is there" for lane in sorted(numbers))
    elif operation["render_state"] not in FINAL and 0 not in numbers:
        yield f"lost: S12: {operation['phase']}, {operation['render_state']}, and no lane"
    for output in deliveries:
        owed = operation["render_state"] == "succeeded" and operation["phase"] != "abandoned"
        if owed and output["state"] != "delivered" and output["output_index"] + 1 not in numbers:
            yield f"lost: S12: output {output['output_index']} is {output['state']} and has no lane"


def outputs(operation: Row, deliveries: Sequence[Row], made: Callable[[int], str | None]) -> Iterator[str]:
    """What is delivered lies in the sink, is what the service made, and is counted. `made` tells the digest of an output by its index."""
    counts = Counter(row["state"] for row in deliveries)
    told = (operation["output_count"], operation["delivered_count"], operation["failed_count"])
    if told != (len(deliveries), counts["delivered"], counts["failed"]):
        yield f"wrong: the operation counts {told}, its outputs are {dict(counts)}"
    for row in deliveries:
        if row["state"] == "delivered":
            path, index = path_of(row["uri"]), row["output_index"]
            kept = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
            if not made(index) == kept == row["sha256"]:
                yield f"wrong: output {index} is {kept}, recorded as {row['sha256']}, made as {made(index)}"


def objects(sink: Path, deliveries: Iterable[Row], *, excused: Callable[[Path], bool]) -> Iterator[str]:
    """Every object of the sink is somebody's, once. `excused` says of which it is known why nobody names it."""
    named = [path_of(row["uri"]) for row in deliveries if row["state"] == "delivered"]
    if len(named) != len(set(named)):
        yield "wrong: two outputs share an object"
    kept = {path.resolve() for path in sink.rglob("*") if path.is_file() and ".incoming" not in path.parts}
    for path in sorted(kept - set(named)):
        if not excused(path):
            yield f"left behind: {path.name} is nobody's"


def path_of(uri: str) -> Path:
    """Where the file of a recorded place lies."""
    return Path(unquote(urlsplit(uri).path)).resolve()
