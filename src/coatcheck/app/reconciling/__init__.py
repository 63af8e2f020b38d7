"""Deciding what nobody can know: every doubt with its evidence, and the decisions, each with actor and reason and under a revision.

What a decision does to the operation, `core.machine` says; what must hold before it, the modules here.
"""

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
