"""One operation told to somebody who never saw the code: what happened, what is known of it, what it may cost, what can be done now.

Pure: rows in, sentences out. Whatever others wrote stands in quotation marks with every character that does not print written out.

The names are loaded when they are asked for: lists need the words for amounts and instants, and no story.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.app.story.telling import Chapter, Kept
    from coatcheck.app.story.whole import flat, tell

__all__ = ["Chapter", "Kept", "flat", "tell"]

_ROOMS = {"Chapter": "telling", "Kept": "telling", "flat": "whole", "tell": "whole"}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
