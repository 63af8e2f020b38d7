"""A refusal says what would be needed, so that whoever asked knows what to do next."""

import pytest

from coatcheck.core.events import EventKind as Kind
from coatcheck.core.machine import NEEDED, RULES, advance
from coatcheck.core.operation import Phase
from coatcheck.core.steps import Refusal, Refused
from core.operations import EVENTS, NOW, operation_in


def test_every_code_says_what_it_needs() -> None:
    assert set(NEEDED) == set(Refused)
    assert all(sentence.startswith("it needs ") for sentence in NEEDED.values())


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("phase", Phase)
def test_a_refusal_names_the_event_where_it_stands_and_what_would_be_needed(phase: Phase, kind: Kind) -> None:
    answer = advance(operation_in(phase), EVENTS[kind], NOW)
    if not isinstance(answer, Refusal):
        return
    assert kind in answer.detail
    _, needs = answer.detail.split("; it needs ")
    if answer.code is Refused.NOT_IN_TABLE:
        having = {rule.phase for rule in RULES if rule.kind is kind}
        assert needs == (
            "one that succeeded" if phase in having else " or ".join(each for each in Phase if each in having)
        )
    else:
        assert f"it needs {needs}" == NEEDED[answer.code]
