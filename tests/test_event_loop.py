"""A worker runs on the faster event loop where it is installed, and on the standard one without it."""

import asyncio
import sys

import pytest

from coatcheck.seams import new_loop


def _made_in() -> str:
    loop = new_loop()
    loop.close()
    return type(loop).__module__.partition(".")[0]


def test_the_loop_is_uvloops_where_that_is_installed() -> None:
    assert _made_in() == "uvloop"


def test_without_it_the_loop_is_the_standard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert _made_in() == asyncio.__name__
