"""How long to wait, as arithmetic: given counts, ages and chance, never asking for them."""

FIRST_S = 1.0
CAP_S = 60.0
_AGE_SHARE = 0.1
_LOOK_CAP_S = 60.0
_SPREAD = 0.2


def backoff_s(count: int, chance: float, *, first_s: float = FIRST_S, cap_s: float = CAP_S) -> float:
    """Doubling from `first_s` to `cap_s` with the number of tries in a row; `chance` in [0, 1] takes up to a fifth away."""
    grown: float = min(cap_s, first_s * 2.0 ** min(count, 30))
    return grown * (1 - _SPREAD * chance)


def look_delay_s(age_s: float, floor_s: float, chance: float) -> float:
    """Until the next look at a render of this age: a tenth of the age, between the service's floor and a minute, spread by chance."""
    wanted = max(floor_s, min(_LOOK_CAP_S, age_s * _AGE_SHARE))
    return wanted * (1 + _SPREAD * chance)
