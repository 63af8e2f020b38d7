"""Writes docs/states.md from the table in `core.machine`, so that the page cannot say anything else than the code.

`python -m docs.states_page` in `tests/` prints it; `make docs` puts it in its place.
"""

import re
import sys
from collections.abc import Iterator

from coatcheck.core.machine import RULES, Rule
from coatcheck.core.operation import Phase
from coatcheck.core.steps import Refused

_HEAD = """# The life of an operation

Generated from `src/coatcheck/core/machine.py` by `make docs`; a test compares the two.

An operation has three axes that are never merged: its **phase** (what was done about the one billable POST), its **render state** (what the
service says) and its **delivery state** (where the outputs are). This page is the phase axis and every event that means something in it.
A pair of phase and event that is not here is refused. The first row of a pair whose condition holds applies.

"""


def page() -> str:
    """The whole page."""
    return _HEAD + "\n".join((*_drawing(), "", *_tables())) + "\n"


def _drawing() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {Phase.PREPARED}: generation_requested"
    for (source, target), names in sorted(_arrows().items()):
        yield f"    {source} --> {target}: {', '.join(names)}"
    yield "```"


def _arrows() -> dict[tuple[Phase, Phase], list[str]]:
    arrows: dict[tuple[Phase, Phase], list[str]] = {}
    for rule in RULES:
        if rule.to is not None:
            names = arrows.setdefault((rule.phase, rule.to), [])
            if rule.name not in names:
                names.append(rule.name)
    return arrows


def _tables() -> Iterator[str]:
    for phase in Phase:
        yield f"## {phase}"
        yield ""
        yield "| event | when | then | history event |"
        yield "|---|---|---|---|"
        yield from (_row(rule) for rule in RULES if rule.phase is phase)
        yield ""


def _row(rule: Rule) -> str:
    when = _sentence(rule.when.__doc__) if rule.when is not None else ""
    if isinstance(rule.do, Refused):
        return f"| {rule.kind} | {when} | refused: {rule.do} | |"
    then = f"**{rule.to}**" if rule.to is not None else "phase stays"
    return f"| {rule.kind} | {when} | {then}: {_sentence(rule.do.__doc__)} | {rule.name} |"


def _sentence(docstring: str | None) -> str:
    first = re.split(r"(?<=[.])\s", (docstring or "").strip(), maxsplit=1)[0]
    return " ".join(first.split()).rstrip(".")


if __name__ == "__main__":
    sys.stdout.write(page())
