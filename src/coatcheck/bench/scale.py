"""How much is measured: one value for everything that costs time, so that a quick look and a serious one run the same code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`operations` fill the queue, `renders` are in flight at once, `rows` are the sizes at which claims are measured; rates are offered for `seconds`.

    `is_hurried`: windows and leases are short instead of the defaults, where a measurement would only wait for their end.
    """

    operations: int
    renders: int
    rows: tuple[int, ...]
    seconds: float
    is_hurried: bool


WHOLE = Scale(operations=5_000, renders=10_000, rows=(10_000, 1_000_000), seconds=10, is_hurried=False)
QUICK = Scale(operations=300, renders=200, rows=(10_000,), seconds=2, is_hurried=True)
