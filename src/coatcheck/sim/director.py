"""Chooses the fault that strikes a request: the specification's own wishes first, then the script's rules, then the mix.

Counting depends on the order of requests alone and the mix on the seed alone, so the same requests in the same order meet the same faults.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coatcheck.sim.catalogue import TRAITS
from coatcheck.sim.chance import Chance
from coatcheck.sim.faults import Fault
from coatcheck.sim.kinds import Role
from coatcheck.sim.script import Odds, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A request as rules see it. `draw` names its chance: what it is, not when it came."""

    role: Role
    prompt: str | None = field(default=None, repr=False)
    job: str | None = None
    output: int | None = None
    told_final: bool = False
    draw: tuple[str | int, ...] = ()


class Director:
    """Holds the rules, the mix and the counts."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._rules: tuple[Rule, ...] = ()
        self._mix: tuple[Odds, ...] = ()
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def install(self, rules: Iterable[Rule], mix: Iterable[Odds], *, replace: bool) -> None:
        """Add rules and mix after the present ones, or replace all and forget the counts."""
        if replace:
            self._counts.clear()
        self._rules = (*(() if replace else self._rules), *rules)
        self._mix = (*(() if replace else self._mix), *mix)

    def early(self) -> Fault | None:
        """The fault that strikes a POST whose body has not been read yet."""
        rules = [(place, rule) for place, rule in enumerate(self._rules) if TRAITS[rule.fault.kind].early]
        return self._struck(rules, "script", Situation(role=Role.CREATE))

    def choose(self, situation: Situation, own: tuple[Rule, ...] = ()) -> Fault | None:
        """The fault that strikes this request, `own` being the rules of its job's specification."""
        scripted = [(place, rule) for place, rule in enumerate(self._rules) if not TRAITS[rule.fault.kind].early]
        of_own = self._struck(enumerate(own), f"own:{situation.job}", situation)
        of_script = self._struck(scripted, "script", situation)
        return of_own or of_script or self._drawn(situation)

    def _struck(self, rules: Iterable[tuple[int, Rule]], scope: str, situation: Situation) -> Fault | None:
        """The first rule that strikes; every fitting rule counts the request, also behind the first."""
        struck: Fault | None = None
        for place, rule in rules:
            if not _fits(rule, situation):
                continue
            count = (scope, situation.job or "" if rule.per == "job" else "", place)
            self._counts[count] += 1
            if struck is None and rule.strikes(self._counts[count]):
                struck = rule.fault
        return struck

    def _drawn(self, situation: Situation) -> Fault | None:
        odds = [entry for entry in self._mix if entry.on is situation.role]
        point = self._chance.draw("mix", situation.role, *situation.draw) if odds else 1.0
        for entry in odds:
            if point < entry.p:
                return entry.fault if _in_season(entry.fault, situation) else None
            point -= entry.p
        return None


def _fits(rule: Rule, situation: Situation) -> bool:
    return (
        rule.on is situation.role
        and (rule.prompt is None or (situation.prompt is not None and rule.prompt in situation.prompt))
        and (rule.job is None or rule.job == situation.job)
        and (rule.output is None or rule.output == situation.output)
        and _in_season(rule.fault, situation)
    )


def _in_season(fault: Fault, situation: Situation) -> bool:
    return situation.told_final or not TRAITS[fault.kind].after_final
