"""Who takes part, and in which set-ups: every set-up is tried in the sweep, and each contestant is judged by its best one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
UNLIMITED = 0
_SUCCEEDED = "select count(*) from coatcheck.operations where render_state = 'succeeded'"
_DELIVERED = "select count(*) from coatcheck.operations where delivery_state = 'delivered'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One contestant. `done` counts the operations whose success is recorded, `saved` those whose remote id is, in its own tables."""

    name: str
    requirements: str
    package: str
    program: Path
    set_ups: Sequence[Mapping[str, Any]]
    done: str
    saved: str
    remark: str = ""
    fetches: bool = False
    """Whether it also fetches outputs, which is no request of the workflow."""

    @property
    def is_ours(self) -> bool:
        """Whether it is coatcheck, in whatever set-up."""
        return self.requirements == "coatcheck"


def _coatcheck(name: str, *, tenants: int = 1, delivers: bool = False, remark: str) -> Contestant:
    roles = "dispatch,observe,deliver,reconcile" if delivers else "dispatch,observe,reconcile"
    return Contestant(
        name=name,
        requirements="coatcheck",
        package="coatcheck",
        program=PROGRAMS / "on_coatcheck.py",
        set_ups=[{"concurrency": at_once, "roles": roles, "tenants": tenants} for at_once in (100, 200, 400, 800)],
        done=_DELIVERED if delivers else _SUCCEEDED,
        saved="select count(distinct remote_job_id) from coatcheck.operations",
        remark=remark,
        fetches=delivers,
    )


CONTESTANTS: Sequence[Contestant] = (
    _coatcheck("coatcheck", remark="the workflow of the peers: the output is queued for delivery and not fetched"),
    _coatcheck(
        "coatcheck, three tenants",
        tenants=3,
        remark="does more: three tenants take turns, and less is begun at once so that none of them waits for another's crowd",
    ),
    _coatcheck(
        "coatcheck, delivering", delivers=True, remark="does more: fetches each output and stores it in a durable file"
    ),
    Contestant(
        name="pgqueuer",
        requirements="pgqueuer",
        package="pgqueuer",
        program=PROGRAMS / "on_pgqueuer.py",
        set_ups=[
            {"concurrency": at_once, "batch_size": batch_size, "driver": driver}
            for at_once, batch_size, driver in (
                (100, 25, "connection"),
                (200, 50, "connection"),
                (400, 100, "connection"),
                (400, 200, "connection"),
                (UNLIMITED, 10, "connection"),
                (UNLIMITED, 50, "connection"),
                (UNLIMITED, 100, "connection"),
                (400, 100, "pool"),
                (UNLIMITED, 50, "pool"),
            )
        ],
        done="select count(*) from pgqueuer_log where status = 'successful'",
        saved="select count(distinct remote_job_id) from renders",
    ),
    Contestant(
        name="oban-py",
        requirements="oban",
        package="oban",
        program=PROGRAMS / "on_oban.py",
        set_ups=[{"concurrency": at_once} for at_once in (50, 100, 200, 400)],
        done="select count(*) from oban_jobs where state = 'completed'",
        saved="select count(distinct remote_job_id) from renders",
    ),
    Contestant(
        name="DBOS",
        requirements="dbos",
        package="dbos",
        program=PROGRAMS / "on_dbos.py",
        set_ups=[
            {"concurrency": at_once, "pool_size": pool_size, "polling_s": polling_s}
            for at_once, pool_size, polling_s in (
                (50, 20, 0.05),
                (100, 20, 0.05),
                (200, 20, 0.05),
                (400, 20, 0.05),
                (UNLIMITED, 20, 1.0),
                (100, 50, 0.05),
            )
        ],
        done="select count(*) from dbos.workflow_status where status = 'SUCCESS'",
        saved="select count(distinct output) from dbos.operation_outputs where function_name like '%submit'",
    ),
)
