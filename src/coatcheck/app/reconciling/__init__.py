"""Deciding what nobody can know: every doubt with its evidence, and the decisions, each with actor and reason and under a revision.

What a decision does to the operation, `core.machine` says; what must hold before it, the modules here. The names are loaded when they are
asked for, so that a list of doubts loads nothing that decides.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.app.reconciling.operator import OperatorDecisions
    from coatcheck.app.reconciling.views import Candidate, Choice, Cost, Decision, Doubt, Evidence, Resolution
    from coatcheck.store.orphans import Orphan

__all__ = [
    "Candidate",
    "Choice",
    "Cost",
    "Decision",
    "Doubt",
    "Evidence",
    "OperatorDecisions",
    "Orphan",
    "Resolution",
]

_ELSEWHERE = {"OperatorDecisions": f"{__name__}.operator", "Orphan": "coatcheck.store.orphans"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, f"{__name__}.views")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
