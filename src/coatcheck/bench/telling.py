"""What a run says while it goes on: a sentence at a time, to whoever watches. Nothing is read from it."""

from collections.abc import Callable

Telling = Callable[[str], None]
"""Takes one sentence."""
