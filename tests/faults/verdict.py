"""What came of a group of trials: what applications heard of their enqueues, beside both books, sorted by what it would mean for them.

Nothing may be lost, duplicated, unexpected or wrong; whoever was struck has to be recovered; what nobody heard of may be there or not.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args
from uuid import UUID

from faults.checker import Record, Row, findings
from promises import CLOSED, FINAL

Answer = Literal["ok", "unknown", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an application heard of one enqueue: that it is there, that it is not, or nothing."""

    key: str
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Findings by kind, and counts. `recovered`: operations that were in the hands of whoever was struck, or of which nobody heard that
    they were enqueued, and that are at their end all the same: delivered, closed, or in doubt for a person."""

    lost: tuple[str, ...]
    duplicated: tuple[str, ...]
    unexpected: tuple[str, ...]
    wrong: tuple[str, ...]
    recovered: int
    answers: Counter[str]
    ends: Counter[str]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.unexpected or self.wrong)

    def __str__(self) -> str:
        kinds = {name: getattr(self, name) for name in ("lost", "duplicated", "unexpected", "wrong")}
        counts = {**{name: len(found) for name, found in kinds.items()}, "recovered": self.recovered}
        told = ", ".join(
            f"{count} {name}" for name, count in [*counts.items(), *self.answers.items(), *self.ends.items()]
        )
        return "\n".join([told, *(finding for found in kinds.values() for finding in found)])


def logged(path: Path) -> list[Asked]:
    """What applications heard, by their log: what was asked for and has no answer is unknown. An answer counts more than an earlier silence."""
    heard: dict[str, Answer] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        word, _, key = line.partition(" ")
        if word in get_args(Answer):
            heard[key] = "ok" if word == "ok" else "failed"
        else:
            heard.setdefault(key, "unknown")
    return [Asked(key=key, answer=answer) for key, answer in heard.items()]


def judged(record: Record, asked: Sequence[Asked], struck: Collection[UUID] = ()) -> Verdict:
    """Compare all that is known. `struck`: operations that somebody had in hand who was killed, stopped or told to end."""
    found = [*(each for ask in OF_ENQUEUES for each in ask(record, asked)), *findings(record)]
    kinds = {
        kind: tuple(each for each in found if f"{kind}: " in each) for kind in ("lost", "duplicated", "unexpected")
    }
    known = {each for of_kind in kinds.values() for each in of_kind}
    unheard = {each.key for each in asked if each.answer == "unknown"}
    in_peril = [each for each in record.operations.values() if _is_among(each, struck, unheard)]
    return Verdict(
        **kinds,
        wrong=tuple(each for each in found if each not in known),
        recovered=sum(map(is_settled, in_peril)),
        answers=Counter(f"asked {each.answer}" for each in asked),
        ends=Counter(f"at {each['phase']}" for each in record.operations.values()),
    )


def _is_among(operation: Row, struck: Collection[UUID], unheard: Collection[str]) -> bool:
    return operation["operation_id"] in struck or operation["operation_key"] in unheard


def is_settled(operation: Row) -> bool:
    """Whether nothing is left to do but by a person, or because time passes."""
    if operation["phase"] in CLOSED or operation["phase"] == "uncertain":
        return True
    return operation["render_state"] in FINAL and operation["delivery_state"] != "pending"


def _enqueues(record: Record, asked: Sequence[Asked]) -> Iterator[str]:
    """S5, S13: what was acknowledged is there once, what failed is not, and nothing is there that nobody asked for."""
    kept = Counter(operation["operation_key"] for operation in record.operations.values())
    for key, count in kept.items():
        if count > 1:
            yield f"duplicated: {count} operations of the key {key}"
    for each in asked:
        if each.answer == "ok" and not kept[each.key]:
            yield f"lost: the enqueue of {each.key} was acknowledged, and no operation is there"
        if each.answer == "failed" and kept[each.key]:
            yield f"unexpected: the enqueue of {each.key} failed, and its operation is there"
    for key in kept.keys() - {each.key for each in asked}:
        yield f"unexpected: nobody asked for the operation of {key}"


def _unsettled(record: Record, _: Sequence[Asked]) -> Iterator[str]:
    """L1: whatever was enqueued comes to its end once faults are over."""
    for operation in record.operations.values():
        if not is_settled(operation):
            state = f"{operation['phase']}, {operation['render_state']}, {operation['delivery_state']}"
            yield f"lost: {operation['operation_key']} stays at {state} when all is at rest"


OF_ENQUEUES: Final = (_enqueues, _unsettled)
"""Asked of the record beside what applications heard."""
