"""What the shop orders and what will go wrong with each order: a pure function of count and seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coatcheck.core.fingerprint import Fingerprint, fingerprint
from coatcheck.demo.troubles import STALL, TROUBLES, VANISHED, Trouble
from coatcheck.sim.chance import Chance

TENANTS = ("atelier", "gallery", "studio")
PERSON = "ada"
"""Who sets the tenants' allowances and is on call."""
PROVIDER = "genace"
PRICE = 5
"""Credits that one render costs."""
_SHARE_OF = 240
_FIRST_STALL = 6
_STALLS_APART = 7
_QUIET = 30
_LATE = 3
"""So many orders before the end comes a POST of which the service made nothing: whoever wants to prove that is too early at first."""

_SUBJECTS = (
    "a lighthouse",
    "an otter",
    "a night train",
    "a glass city",
    "an old cinema",
    "a paper whale",
    "two chairs",
    "a comet",
)
_MANNERS = (
    "in fog",
    "as a woodcut",
    "at dawn",
    "in watercolour",
    "after the rain",
    "from above",
    "as a stamp",
    "by candlelight",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order of one tenant. `trouble` is None for those that go well."""

    number: int
    tenant_id: str
    key: str
    title: str
    specification: Fingerprint = field(repr=False)
    trouble: Trouble | None


def drawn(count: int, seed: int) -> tuple[Order, ...]:
    """`count` orders, as `drawn(240, 7)`: the same for the same seed."""
    chance = Chance(seed=seed)
    troubles = _placed(count, chance)
    return tuple(_order(number, chance, troubles.get(number)) for number in range(1, count + 1))


def _order(number: int, chance: Chance, trouble: Trouble | None) -> Order:
    tenant_id = TENANTS[(number - 1) % len(TENANTS)]
    subject = _SUBJECTS[int(chance.draw("subject", number) * len(_SUBJECTS))]
    manner = _MANNERS[int(chance.draw("manner", number) * len(_MANNERS))]
    title = f"{subject} {manner}"
    specification: dict[str, Any] = {"model": "genace-image-1", "prompt": f"{title}, no. {number}"}
    if trouble is not None:
        # The simulated service reads what it shall do from here; a real one would ignore the name.
        specification["sim"] = dict(trouble.sim)
    return Order(
        number=number,
        tenant_id=tenant_id,
        key=f"order-{number:04}",
        title=title,
        specification=fingerprint(specification),
        trouble=trouble,
    )


def _placed(count: int, chance: Chance) -> dict[int, Trouble]:
    """Which order meets which trouble: at most every second one does.

    Stalls come early, one after the other, and the orders around them go well: what the killed worker had in hand comes back late, when
    its leases end, and needs no second try then.
    """
    quiet = min(_QUIET, count // 4)
    first = min(_FIRST_STALL, max(1, count // 5))
    stalls = [first + _STALLS_APART * turn for turn in range(STALL.share) if first + _STALLS_APART * turn <= count]
    fixed = dict.fromkeys(stalls, STALL) | {count - _LATE: VANISHED}
    free = sorted(set(range(quiet + 1, count + 1)) - set(fixed), key=lambda number: chance.draw("place", number))
    troubles = list(_dealt(count))[: max(0, count // 2 - len(fixed))]
    return fixed | dict(zip(free, troubles, strict=False))


def _dealt(count: int) -> Iterator[Trouble]:
    """Every trouble once, then again in turn until each has had its share of `count`."""
    shares = [(trouble, max(1, round(trouble.share * count / _SHARE_OF))) for trouble in TROUBLES]
    for turn in range(max(share for _, share in shares)):
        yield from (trouble for trouble, share in shares if turn < share)
