"""`demo`: the story of lost replies that were not paid twice, told by a real run."""

from typing import Annotated

from cyclopts import Parameter

from coatcheck.cli.options import AsJson


def demo(
    *,
    operations: Annotated[int, Parameter(help="How many operations.")] = 240,
    seed: Annotated[int, Parameter(help="What chance is made of.")] = 7,
    as_json: AsJson = False,
) -> int:
    """Run three tenants' operations against the simulated service, kill a worker in the middle of a POST, decide the doubts, check the account."""
    from coatcheck.demo import run  # noqa: PLC0415 - only this command needs it

    return run(operations=operations, seed=seed, as_json=as_json)
