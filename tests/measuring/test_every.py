"""Every measurement of `coatcheck bench` comes to its end at a small size, on an embedded PostgreSQL of its own, and nothing is left of it."""

from pathlib import Path

import pytest

from coatcheck.bench import MEASUREMENTS
from measuring.ground import measured

MAY_BE_LESS = ("images", "memory of each", "statements of an idle")
"""Figures that are small enough, in a small run, to be nothing."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MEASUREMENTS)
def test_every_measurement_brings_figures_and_what_limits_them(name: str, tmp_path: Path) -> None:
    ended = measured(tmp_path, name)
    assert ended.code == 0, ended.error
    assert ended.figures
    for figure in ended.figures.values():
        assert figure["limited_by"]
        assert figure["value"] is not None
        assert figure["value"] > 0 or figure["name"].startswith(MAY_BE_LESS)
    assert list(tmp_path.iterdir()) == []
