"""How often Python looks for cycles in a process that works for long: seldom, since reference counts free nearly all that a worker makes."""

import gc
from typing import Final

GARBAGE: Final = 20_000
"""So many more objects than before, and Python looks for cycles among them."""


def collect_seldom() -> None:
    """Leave alone what is loaded, and look at what is new less often: Python's own pace takes a twentieth of a busy worker's time (decision 33)."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
