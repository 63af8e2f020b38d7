"""What the processes of a measurement inherit: this one's environment without coatcheck's settings, in which there are keys of the caller's."""

import os
from collections.abc import Mapping

_OURS = "COATCHECK_"


def inherited() -> Mapping[str, str]:
    """Variables by name, none of them a setting of coatcheck's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
