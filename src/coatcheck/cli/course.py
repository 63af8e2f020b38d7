"""How one worker process is to run; known without loading what runs it."""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.core.actions import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """`number` is its own among several, None for one alone; `health_port` None: it answers no machine."""

    roles: Sequence[Action]
    until_idle: bool
    health_host: str
    health_port: int | None
    number: int | None
