"""`bench`: what coatcheck costs on this machine, measured."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from coatcheck.cli.collecting import collect_seldom
from coatcheck.cli.descriptors import raise_limit
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say, write_object
from coatcheck.cli.tables import show_rows
from coatcheck.errors import Refused

if TYPE_CHECKING:
    from coatcheck.bench import Report, Scale

_HELD = "held"
"""The measurement in which each render is an open file of the worker, and of the service."""
_LEAST_OPERATIONS, _LEAST_RENDERS, _LEAST_ROWS = 50, 10, 1_000


def bench(
    *names: Annotated[str, Parameter(help="Which measurements; without a name, all of them.")],
    list_: Annotated[bool, Parameter(name="--list", negative="", help="Name the measurements and take none.")] = False,
    quick: Annotated[bool, Parameter(negative="", help="Small sizes and short windows: to see that it works.")] = False,
    database_url: Annotated[
        str | None, Parameter(help="An empty database to measure on; without it, an embedded PostgreSQL of its own.")
    ] = None,
    operations: Annotated[int | None, Parameter(help="How many operations fill the queue.")] = None,
    renders: Annotated[int | None, Parameter(help="How many renders are in flight at once.")] = None,
    rows: Annotated[
        list[int] | None, Parameter(negative="", help="A size of the store at which claims are measured.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Measure the real worker with a service and a PostgreSQL beside it. Says how far it is on stderr; each line says what limits it."""
    from coatcheck.bench import QUICK, WHOLE, chosen, run  # noqa: PLC0415 - only this command needs it

    if list_:
        show_measurements({name: each.summary for name, each in chosen(names).items()}, as_json=as_json)
        return 0
    scale = _scaled(QUICK if quick else WHOLE, operations, renders, rows)
    needed, limit = raise_limit(scale.renders)
    if needed > limit and (not names or _HELD in names):
        raise Refused(
            f"--renders: expected at most {limit - needed + scale.renders}, the limit of open files, got {scale.renders}",
            next="raise the limit, or name other measurements: polled renders are no open files",
        )
    if quick:
        say("quick: the sizes are small, and the figures only show that it works")
    # what is measured in this process has a worker's pace, too
    collect_seldom()
    show(run(names, scale=scale, database_url=database_url, telling=say), scale, as_json=as_json)
    return 0


def _scaled(scale: "Scale", operations: int | None, renders: int | None, rows: list[int] | None) -> "Scale":
    """What was asked for in place of the usual. Raises `Refused` for less than a measurement takes."""
    asked = (
        ("--operations", _LEAST_OPERATIONS, [scale.operations if operations is None else operations]),
        ("--renders", _LEAST_RENDERS, [scale.renders if renders is None else renders]),
        ("--rows", _LEAST_ROWS, list(rows or scale.rows)),
    )
    for name, least, values in asked:
        if min(values) < least:
            raise Refused(f"{name}: expected at least {least}, got {min(values)}", next="coatcheck bench --quick")
    (operations,), (renders,), sizes = (values for _, _, values in asked)
    return replace(scale, operations=operations, renders=renders, rows=tuple(sizes))


def show_measurements(summaries: dict[str, str], *, as_json: bool) -> None:
    """What there is to be measured."""
    if as_json:
        for name, summary in summaries.items():
            write_object({"name": name, "summary": summary})
    else:
        show_rows(("measurement", "what it tells"), list(summaries.items()))


def show(report: "Report", scale: "Scale", *, as_json: bool) -> None:
    """What was measured: for programs as one object, with the sizes at which it was, for people as a table."""
    from coatcheck.bench import shown  # noqa: PLC0415 - as above

    if as_json:
        figures = [asdict(figure) for figure in report.figures]
        write_object({"machine": asdict(report.machine), "scale": asdict(scale), "figures": figures})
        return
    columns = ("figure", "value", "unit", "limited by")
    show_rows(columns, [(each.name, shown(each.value), each.unit, each.limited_by) for each in report.figures])
