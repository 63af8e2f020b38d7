"""Anything that may happen to a few operations, in any order, done to the store and to the books alike: after each step both say the same."""

from stateful.around import Around
from stateful.leasing import Leasing
from stateful.writing import Writing


class StoreMachine(Writing, Leasing, Around):
    """See the module."""
