"""What an outcome proves is the same for the machine and for the schema."""

import pytest

from coatcheck.core.operation import Outcome
from store.ground import Ground


@pytest.mark.parametrize("outcome", Outcome)
def test_an_outcome_has_the_rank_that_the_schema_gives_it(ground: Ground, outcome: Outcome) -> None:
    assert ground.sql("select coatcheck.outcome_rank(%s) as rank", outcome) == [{"rank": outcome.rank}]
