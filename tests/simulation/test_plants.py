"""The negative controls: each fault that is planted in the product is found within some seeds, and by the promise that it breaks."""

import pytest

from figures import Report
from simulation.plants import PLANTS
from simulation.run import play
from simulation.troubles import Mix

WITHIN = 100
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_found(name: str, figures: Report) -> None:
    plant, promise, rates = PLANTS[name]
    with plant():
        for seed in range(2_000, 2_000 + WITHIN):
            found = play(seed, mix=Mix.only(**rates) if rates else None).findings
            if any(promise in finding for finding in found):
                figures("simulation planted faults found", 1)
                figures("simulation seeds for planted faults", seed - 1_999)
                return
    pytest.fail(f"not found within {WITHIN} seeds")
