"""What is done beside the messages: pauses, budgets, allowances, reports, what people read and decide, and what a failover loses."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from coatcheck.core.operation import OperationId
from coatcheck.core.steps import Boundary, Incident
from coatcheck.seams import NO_FAULTS
from coatcheck.store import doubts, orphans
from coatcheck.store.budgets import KEPT, Budget, LookReport, _wish, report_looks
from coatcheck.store.ends import end_of, installation_of
from coatcheck.store.incidents import Note, note
from coatcheck.store.operations import find, load_deliveries
from coatcheck.store.pauses import Pausable, listed, pause, resume
from coatcheck.store.statements import statement
from coatcheck.store.whereabouts import check
from coatcheck.store.workers import Account, report
from contract_store.chances import ACCOUNTS, JOBS, TENANTS, Chances
from contract_store.twin import Twin

Aside = Callable[[Twin, Chances], Awaitable[object]]


async def register(twin: Twin, names: Mapping[str, str]) -> None:
    """Make names known, as a worker's beginning does."""
    parameters = {"name": list(names), "account": list(names.values()), "kind": ["genace" for _ in names]}
    await twin.fetch(statement("store", "register_providers"), parameters)


async def limit(twin: Twin, tenant_id: str) -> None:
    """A tenant has so much and no more."""
    wish = {"tenant_id": tenant_id, "unit": "credits", "ceiling": Decimal(3), "actor": "ops"}
    await twin.fetch(statement("store", "open_allowance"), wish)


async def _registers(twin: Twin, chances: Chances) -> None:
    fresh = {f"name_{chances.random.randrange(6)}": chances.pick(("genace", "other", "third"))}
    await register(twin, {**ACCOUNTS, **fresh})
    await listed(twin)


async def _pauses(twin: Twin, chances: Chances) -> None:
    what = chances.pick(tuple(Pausable))
    await pause(twin, chances.pick(tuple(ACCOUNTS)), reason="a bill", actor="ops", what=what, faults=NO_FAULTS)


async def _resumes(twin: Twin, chances: Chances) -> None:
    what = chances.pick(tuple(Pausable))
    for name in ("genace", "other"):
        await resume(twin, name, reason="paid", actor="ops", what=what, faults=NO_FAULTS)


async def _budgets(twin: Twin, chances: Chances) -> None:
    wish = _wish(
        chances.pick(tuple(ACCOUNTS)),
        Budget(
            max_in_flight=chances.pick((KEPT, None, None, 1, 3, 100)),
            dispatches_per_s=chances.pick((KEPT, None, None, 0.2, 2.0, 50.0)),
            looks_per_s=chances.pick((KEPT, None, 0.2, 2.0, 50.0)),
            look_floor_s=chances.pick((KEPT, None, 5.0)),
            doubt_limit=chances.pick((KEPT, None, 2, 20)),
            default_estimate=chances.pick((KEPT, None, Decimal(2))),
            unit=chances.pick((None, None, "credits", "tokens")),
        ),
    )
    for name in ("change_provider", "change_budget", "wake_budgeted"):
        await twin.fetch(statement("store", name), wish)


async def _allowances(twin: Twin, chances: Chances) -> None:
    ceiling = chances.pick((None, Decimal(0), Decimal(5), Decimal(20)))
    wish = {"tenant_id": chances.pick(TENANTS), "unit": chances.pick(("credits", "credits", "tokens")), "actor": "ops"}
    changed = await twin.fetch(statement("store", "change_allowance"), {**wish, "ceiling": ceiling})
    if not changed:
        await twin.fetch(statement("store", "open_allowance"), {**wish, "ceiling": ceiling})
    await twin.fetch(statement("store", "wake_allowance"), wish)


async def _reports_looks(twin: Twin, chances: Chances) -> None:
    reports = [
        LookReport(
            operation_id=OperationId(UUID(int=number)),
            account=chances.pick(("genace", "other", "nobody")),
            leased_at=twin.at - timedelta(seconds=chances.seconds(1, 30)),
            failure=chances.pick((None, "denied", "server_error", "server_error")),
            shut_s=chances.pick((None, None, chances.seconds(5))),
            is_made=not chances.one_in(4),
        )
        for number in range(chances.random.randint(1, 8))
    ]
    await report_looks(twin, reports)


async def _reports_itself(twin: Twin, chances: Chances) -> None:
    account = Account(
        incarnation=chances.pick(("w1", "w2")),
        version="1",
        roles=("dispatch", "observe"),
        stopped=chances.one_in(3),
        stale={"mark": chances.random.randrange(5)},
        lease_renewal_failures_count=chances.random.randrange(3),
        action_ms={"observe": {"count": 1, "total_ms": 2, "max_ms": 2}},
    )
    await report(twin, account)


async def _moves_house(twin: Twin, chances: Chances) -> None:
    """The database is found on another timeline, in another cluster or loaded anew."""
    change = chances.pick((("timeline", 7), ("system_identifier", "another"), ("made_as", 42)))
    if chances.one_in(3):
        twin.put("installation", True, **dict([change]))
    await check(twin, worker="w1", promotion_is_safe=chances.one_in(2))


async def _notes(twin: Twin, chances: Chances) -> None:
    notes = [
        Note(
            operation_id=operation_id,
            incident=Incident(kind=kind, boundary=Boundary.THEIRS, detail=f"detail {chances.number()}"),
        )
        for operation_id, kind in {(each, chances.pick(("nonsense", "html"))) for each in _operations(twin, chances, 3)}
    ]
    await note(twin, notes)


async def _loses_a_mark(twin: Twin, chances: Chances) -> None:
    """A failover to a standby that was behind: a dispatch is gone, and its operation may be as it was before."""
    for row in chances.some(list(twin.memory.tables.dispatches), 1):
        operation = twin.memory.tables.operations.get(row["operation_id"])
        twin.drop("dispatches", row["dispatch_id"])
        if operation is not None and operation["phase"] == "dispatching" and chances.one_in(2):
            twin.put("operations", row["operation_id"], phase="prepared", dispatch_id=None)
        elif chances.one_in(4):
            twin.drop("operations", row["operation_id"])


def _operations(twin: Twin, chances: Chances, most: int) -> Sequence[OperationId]:
    return [OperationId(each) for each in chances.some(list(twin.memory.tables.operations.rows), most)]


async def _reads(twin: Twin, chances: Chances) -> None:
    found = _operations(twin, chances, 3)
    await load_deliveries(twin, found)
    await installation_of(twin)
    for operation_id in found:
        await find(twin, operation_id, chances.pick((None, *TENANTS)))
        parameters = {"operation_id": operation_id, "lane": chances.random.randrange(2)}
        await twin.fetch(statement("store", "load_message"), parameters)
        await twin.fetch(statement("store", "find_resting_outputs"), parameters)
        job = chances.pick((None, *JOBS))
        dispatch_id = chances.pick(
            [row["dispatch_id"] for row in twin.memory.tables.dispatches] or [chances.dispatch_id()]
        )
        await end_of(twin, operation_id=operation_id, dispatch_id=dispatch_id, account="genace", remote_job_id=job)


async def _reads_doubts(twin: Twin, chances: Chances) -> None:
    tenant_id = chances.pick((None, *TENANTS))
    async for _ in doubts.doubts(twin, tenant_id=tenant_id, with_stuck=chances.one_in(2)):
        pass
    await doubts.recorded(twin, [("genace", job) for job in JOBS])
    spans = {"since": twin.at - timedelta(seconds=60), "until": twin.at}
    await doubts.overlapping(twin, account="genace", tenant_id=chances.pick(TENANTS), **spans)
    for operation_id in _operations(twin, chances, 3):
        await doubts.load_doubt(twin, operation_id, tenant_id)
        await orphans.orphans_of(twin, operation_id)


async def _resolves_an_orphan(twin: Twin, chances: Chances) -> None:
    """Somebody deals with it, and sometimes somebody else at once again."""
    jobs = [row for row in twin.memory.tables.remote_jobs if row["role"] == "orphan" or chances.one_in(4)]
    for job in chances.some(jobs, 1) * chances.random.randint(1, 2):
        await orphans.resolve(
            twin,
            account=job["account"],
            remote_job_id=job["remote_job_id"],
            actor="ops",
            reason="refunded",
            charged=chances.pick((None, Decimal(0), Decimal(3))),
            revision=chances.pick((None, None, 2)),
        )


ALL: Sequence[Aside] = (
    *(
        _registers,
        _pauses,
        _resumes,
        _resumes,
        _budgets,
        _budgets,
        _allowances,
        _allowances,
        _reports_looks,
        _reports_looks,
    ),
    *(
        _reports_itself,
        _moves_house,
        _notes,
        _loses_a_mark,
        _reads,
        _reads,
        _reads_doubts,
        _reads_doubts,
        _resolves_an_orphan,
    ),
)
