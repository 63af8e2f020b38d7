"""Scripts: which request is struck by which fault, parsed once, refused with the number of the rule and the names that exist.

A rule counts the requests that fit it and strikes those from number `nth` on, `times` of them. Rules are tried in order; the first
that strikes wins. What no rule strikes may be struck by the mix, a list of faults with probabilities.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from coatcheck.errors import Refused
from coatcheck.sim.catalogue import TRAITS
from coatcheck.sim.checks import Check, Number, checked, integer, kind_of, mapping, number, one_of, text
from coatcheck.sim.course import COURSE_CHECKS
from coatcheck.sim.faults import Fault, parse_fault
from coatcheck.sim.kinds import Role

_FAULT_NAMES = {"kind"} | {name for trait in TRAITS.values() for name in trait.parameters} | set(COURSE_CHECKS)
_RULE_CHECKS: Mapping[str, Check] = {
    "on": one_of(*Role),
    "prompt": text,
    "job": text,
    "output": integer(0),
    "nth": integer(1),
    "times": lambda value: None if value == "always" else integer(1)(value),
    "per": one_of("service", "job"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One fault and the requests it strikes. `times` None: from `nth` on, all."""

    on: Role
    fault: Fault
    prompt: str | None = field(default=None, repr=False)
    job: str | None = None
    output: int | None = None
    nth: int = 1
    times: int | None = None
    per: str = "service"

    def strikes(self, count: int) -> bool:
        """Whether the fitting request number `count` (from 1) is struck."""
        return count >= self.nth and (self.times is None or count < self.nth + self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """A fault of the mix: it strikes a request of `on` with probability `p`."""

    on: Role
    fault: Fault
    p: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Rules, mix and settings of the service. `Script.parse({"rules": [{"on": "create", "nth": 2, "kind": "cut", "at": 40}]})`."""

    rules: tuple[Rule, ...] = ()
    mix: tuple[Odds, ...] = ()
    service: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: object) -> Self:
        """A script from parsed JSON: a list of rules, or an object with rules, mix, service. Raises Refused naming the rule."""
        if isinstance(data, list):
            data = {"rules": data}
        found = mapping(data, where="script")
        if unknown := set(found) - {"rules", "mix", "service"}:
            raise Refused(f"script: unknown name {min(unknown)!r}", next="known names: rules, mix, service")
        return cls(
            rules=tuple(parse_rule(rule, where=f"rule {number + 1}") for number, rule in enumerate(_rules(found))),
            mix=parse_mix(found.get("mix", {})),
            service=dict(mapping(found.get("service", {}), where="service")),
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """The script in a JSON file. Raises Refused when it cannot be read or says something that does not exist."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refused(
                f"script {path.name}: expected a readable JSON file, got {error}", next="see docs/simulator.md"
            ) from error
        return cls.parse(data)


def _rules(found: Mapping[str, Any]) -> Sequence[object]:
    rules = found.get("rules", [])
    if not isinstance(rules, list):
        raise Refused(f"rules: expected a list, got {kind_of(rules)}", next="write it as [{…}, …]")
    return rules


def parse_rule(data: object, *, where: str, on: Role | None = None) -> Rule:
    """One rule. `on` is given where the place already says it, as in a specification's `sim` object."""
    whole = mapping(data, where=where)
    matchers = checked({n: v for n, v in whole.items() if n not in _FAULT_NAMES}, _RULE_CHECKS, where=where)
    role = _role(matchers.pop("on", on), where=where)
    fault = parse_fault({n: v for n, v in whole.items() if n in _FAULT_NAMES}, role, where=where)
    if "nth" in matchers:
        matchers.setdefault("times", 1)
    rule = Rule(on=role, fault=fault, **matchers)
    _refuse_impossible(rule, where=where)
    return rule


def _role(word: object, *, where: str) -> Role:
    if word is None:
        raise Refused(f"{where}: `on` is missing", next=f"say what it is about: {', '.join(Role)}")
    return Role(str(word))


def _refuse_impossible(rule: Rule, *, where: str) -> None:
    """Matchers that could never match are errors of the script, not rules that silently never strike."""
    if rule.output is not None and rule.on is not Role.OUTPUT:
        raise Refused(f"{where}: `output` needs on: output, got on: {rule.on}", next="leave `output` out")
    if rule.on is Role.LIST and (rule.prompt is not None or rule.job is not None or rule.per == "job"):
        raise Refused(f"{where}: a list is about no single job", next="match by nth")
    if rule.on in {Role.CREATE, Role.JOB} and (rule.job is not None or rule.per == "job"):
        raise Refused(f"{where}: no job exists before on: {rule.on}", next="match by prompt or nth")
    if TRAITS[rule.fault.kind].early and rule.prompt is not None:
        raise Refused(
            f"{where}: {rule.fault.kind} acts before the body is read, got a prompt to match", next="match by nth"
        )


def parse_mix(data: object) -> tuple[Odds, ...]:
    """The mix: a list of {on, p, kind, …}, or an object from kind (of create) or role.kind to a probability."""
    entries = (
        data if isinstance(data, list) else [_entry(name, odds) for name, odds in mapping(data, where="mix").items()]
    )
    mix = tuple(_odds(entry, where=f"mix entry {place + 1}") for place, entry in enumerate(entries))
    for role in Role:
        if (total := sum(odds.p for odds in mix if odds.on is role)) > 1 + 1e-9:
            raise Refused(f"mix: probabilities of {role} must add up to at most 1, got {total:g}", next="lower them")
    return mix


def _entry(name: str, odds: object) -> dict[str, Any]:
    role, _, kind = name.rpartition(".")
    more = odds if isinstance(odds, Mapping) else {"p": odds}
    return {"on": role or Role.CREATE.value, "kind": kind, **more}


def _odds(entry: object, *, where: str) -> Odds:
    whole = dict(mapping(entry, where=where))
    p = checked({"p": whole.pop("p", None)}, {"p": number()}, where=where)["p"]
    rule = parse_rule(whole, where=where)
    if set(whole) - _FAULT_NAMES - {"on"}:
        raise Refused(f"{where}: a mix entry has `on`, `p` and a fault, got matchers", next="write a rule instead")
    if TRAITS[rule.fault.kind].early:
        raise Refused(f"{where}: {rule.fault.kind} acts before the body is read", next="write a rule with nth instead")
    return Odds(on=rule.on, fault=rule.fault, p=p)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """What a specification's own `sim` object asks for its job."""

    create: Rule | None = None
    rules: tuple[Rule, ...] = ()
    course: Mapping[str, Any] = field(default_factory=dict)


def parse_directives(data: object) -> Directives:
    """The `sim` object of a specification. Raises Refused naming what is wrong."""
    whole = dict(mapping(data, where="sim"))
    create, looks, outputs = (_faults(whole.pop(role, []), role) for role in (Role.CREATE, Role.LOOK, Role.OUTPUT))
    if len(create) > 1 or any(TRAITS[rule.fault.kind].early for rule in create):
        raise Refused("sim: create takes one fault that acts after the body was read", next="script the others by nth")
    course = parse_fault({"kind": "course", **whole}, Role.JOB, where="sim").course
    return Directives(create=create[0] if create else None, rules=(*looks, *outputs), course=course)


def _faults(data: object, role: Role) -> list[Rule]:
    entries = data if isinstance(data, list) else [data]
    named = [{"kind": entry} if isinstance(entry, str) else entry for entry in entries]
    return [parse_rule(entry, where=f"sim.{role}", on=role) for entry in named]
