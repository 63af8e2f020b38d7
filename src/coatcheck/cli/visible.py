"""What a terminal may be shown: the one rule of `app.visible`, under the name by which the commands know it."""

from coatcheck.app.visible import visible

__all__ = ["visible"]
