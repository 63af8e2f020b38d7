"""Negative controls run stories of other folders, so their markers are known here, too."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "breaks(*names): the invariants that a story breaks on purpose")
