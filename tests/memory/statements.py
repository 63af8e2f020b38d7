"""Which statement is carried out by which function, and which are not, each with the reason."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from coatcheck.store.statements import statement
from memory import (
    claiming,
    concluding,
    deciding,
    delivering,
    doubting,
    keeping,
    leases,
    looking,
    marking,
    operating,
    reading,
)
from memory.tables import Row, Tables

Effect = Callable[[Tables, Mapping[str, Any]], list[Row]]

EFFECTS: Final[Mapping[str, Effect]] = {
    "queue/acknowledge": leases.acknowledge,
    "queue/claim": claiming.claim,
    "queue/left": leases.left,
    "queue/park": leases.park,
    "queue/release": leases.release,
    "queue/renew": leases.renew,
    "queue/retry_waiting": leases.retry_waiting,
    "queue/sleep": leases.sleep,
    "queue/suspects": leases.suspects,
    "store/change_allowance": operating.change_allowance,
    "store/change_budget": operating.change_budget,
    "store/change_provider": operating.change_provider,
    "store/check_installation": keeping.check_installation,
    "store/conclude": concluding.conclude,
    "store/decide": deciding.decide,
    "store/deliver": delivering.deliver,
    "store/find": reading.find,
    "store/find_jobs": reading.find_jobs,
    "store/find_overlaps": reading.find_overlaps,
    "store/find_resting_outputs": reading.find_resting_outputs,
    "store/list_doubts": doubting.list_doubts,
    "store/list_providers": operating.list_providers,
    "store/load": reading.load,
    "store/load_deliveries": reading.load_deliveries,
    "store/load_doubt": doubting.load_doubt,
    "store/load_message": reading.load_message,
    "store/load_subjects": reading.load_subjects,
    "store/mark": marking.mark,
    "store/note_incidents": keeping.note_incidents,
    "store/open_allowance": operating.open_allowance,
    "store/orphans_of": doubting.orphans_of,
    "store/pause_observation": operating.pause_observation,
    "store/pause_provider": operating.pause_provider,
    "store/read_installation": keeping.read_installation,
    "store/register_providers": operating.register_providers,
    "store/report_looks": keeping.report_looks,
    "store/report_worker": keeping.report_worker,
    "store/resolve": reading.resolve,
    "store/resolve_orphan": doubting.resolve_orphan,
    "store/resume_observation": operating.resume_observation,
    "store/resume_provider": operating.resume_provider,
    "store/snapshot": looking.snapshot,
    "store/trace_end": reading.trace_end,
    "store/wake_allowance": operating.wake_allowance,
    "store/wake_budgeted": operating.wake_budgeted,
}

_SHOWN = "a report for people, which no decision rests on"
_OVER = "is of operations that no worker touches any more"
_OWN = "asks the server about itself, and there is none"
OUT_OF_SCOPE: Final[Mapping[str, str]] = {
    "store/count_retirable": _OVER,
    "store/retire": _OVER,
    "store/ask_for_confirmation": "asks a standby, and there is none",
    "store/discard_plans": "says how PostgreSQL plans, and there is no planner",
    "store/find_sessions": "nothing is carried out after its connection broke",
    "store/inspect_connection_room": _OWN,
    "store/inspect_server": _OWN,
    "store/inspect_sessions": _OWN,
    "store/is_known": _SHOWN,
    "store/list": _SHOWN,
    "store/list_allowances": _SHOWN,
    "store/list_incidents": _SHOWN,
    "store/list_messages": _SHOWN,
    "store/list_of_tenant": _SHOWN,
    "store/list_orphans": _SHOWN,
    "store/list_parked": _SHOWN,
    "store/plan_for_any": "says how PostgreSQL plans, and there is no planner",
    "store/read_catalogue": _OWN,
    "store/read_stats": _SHOWN,
    "store/report_charges": _SHOWN,
    "store/show_dispatches": _SHOWN,
    "store/show_history": _SHOWN,
    "store/show_incidents": _SHOWN,
    "store/show_messages": _SHOWN,
}


@cache
def names() -> Mapping[str, str]:
    """The name of every statement of the rooms `store` and `queue`, by its text."""
    found = {}
    for room in ("queue", "store"):
        for file in (files("coatcheck") / "sql" / "statements" / room).iterdir():
            name = file.name.removesuffix(".sql")
            found[statement(room, name)] = f"{room}/{name}"
    return found
