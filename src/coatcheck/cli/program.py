"""Every command there is and how each one ends. Commands are named here and loaded when they are called, so `enqueue` stays cheap."""

import gc
import logging
import sys

from cyclopts import App

from coatcheck.cli.ends import Ends

COMMANDS = {
    "demo": ("coatcheck.cli.demo:demo", "Run the whole story on the embedded PostgreSQL and a simulated service."),
    "migrate up": ("coatcheck.cli.migrate:up", "Bring the database's schema to this version."),
    "migrate status": ("coatcheck.cli.migrate:status", "Show every migration and whether it is applied."),
    "migrate sql": ("coatcheck.cli.migrate:sql", "Print the migrations for a process of your own."),
    "migrate check": ("coatcheck.cli.migrate:check", "Compare the schema with this version's."),
    "enqueue": ("coatcheck.cli.enqueue:enqueue", "Enqueue one operation in a transaction of its own."),
    "operations list": ("coatcheck.cli.operations:list_operations", "List operations, oldest first."),
    "operations show": ("coatcheck.cli.operations:show", "Show one operation and all that is known about it."),
    "operations cancel": ("coatcheck.cli.operating:cancel", "Cancel what was not sent yet."),
    "operations reobserve": ("coatcheck.cli.operating:reobserve", "Look at a remote job again. Free."),
    "operations redeliver": ("coatcheck.cli.operating:redeliver", "Store outputs again that failed. Free."),
    "messages list": ("coatcheck.cli.messages:list_messages", "List what is to be done, and what it waits for."),
    "messages parked": ("coatcheck.cli.messages:list_parked", "List what was set aside for a person."),
    "messages resume": ("coatcheck.cli.messages:resume", "Take up what was set aside. Free."),
    "incidents list": ("coatcheck.cli.incidents:list_incidents", "List what went against the protocol."),
    "reconcile list": ("coatcheck.cli.reconcile:list_doubts", "List what is in doubt, and the money at risk."),
    "reconcile show": ("coatcheck.cli.reconcile:show", "Show the evidence about one operation."),
    "reconcile adopt": ("coatcheck.cli.decisions:adopt", "Say which remote job is an operation's."),
    "reconcile prove-absent": ("coatcheck.cli.decisions:prove_absent", "Say that the service made no job."),
    "reconcile redispatch": ("coatcheck.cli.decisions:redispatch", "Spend again. COSTS MONEY."),
    "reconcile write-off": ("coatcheck.cli.decisions:write_off", "Give up on an operation."),
    "reconcile note": ("coatcheck.cli.decisions:note", "Keep with an operation what you found out."),
    "orphans list": ("coatcheck.cli.orphans:list_orphans", "List paid jobs that no operation could take."),
    "orphans resolve": ("coatcheck.cli.orphans:resolve", "Mark an orphan as dealt with."),
    "worker": ("coatcheck.cli.worker:worker", "Dispatch, observe and deliver until told to stop."),
    "providers list": ("coatcheck.cli.providers:list_providers", "List providers and their pauses."),
    "providers set": ("coatcheck.cli.providers:set_provider", "Set what an account may be asked for."),
    "providers pause": ("coatcheck.cli.providers:pause", "Stop an account's dispatches, or its looks."),
    "providers resume": ("coatcheck.cli.providers:resume", "Let an account dispatch, or be looked at, again."),
    "allowance set": ("coatcheck.cli.allowance:set_limit", "Set what a tenant may spend."),
    "allowance show": ("coatcheck.cli.allowance:show", "Show what tenants may spend, hold and spent."),
    "charges report": ("coatcheck.cli.charges:report", "Add up what was spent and is held."),
    "stats": ("coatcheck.cli.stats:stats", "Measures that tell the cause of a backlog."),
    "top": ("coatcheck.cli.top:top", "Show the same, over and over."),
    "retention run": ("coatcheck.cli.retention:run", "Remove what nobody needs of operations that are over."),
    "audit": ("coatcheck.cli.audit:audit", "Check the invariants on live data, reading only."),
    "doctor": ("coatcheck.cli.doctor:doctor", "Check settings, database, schema, leases and sink."),
    "sim": ("coatcheck.cli.sim:sim", "Run the simulated remote service."),
    "bench": ("coatcheck.cli.bench:bench", "Measure what coatcheck costs on this machine."),
}
"""Each command with the function that runs it and its line in the help."""

_GROUPS = {
    "migrate": "The schema of the database.",
    "operations": "Read operations, cancel them, look and deliver again.",
    "messages": "What is to be done, and what was set aside.",
    "incidents": "What went against the protocol.",
    "reconcile": "Decide about operations that are in doubt.",
    "orphans": "Paid jobs that no operation could take.",
    "providers": "Providers, their budgets and pauses.",
    "allowance": "What tenants may spend.",
    "charges": "What was spent.",
    "retention": "What is kept of operations that are over.",
}


def app() -> App:
    """The commands, none of them loaded yet."""
    root = App(
        name="coatcheck",
        help="A durable checkroom for billable remote render jobs.",
        help_format="plaintext",
        version=_version,
        version_flags=["--version"],
    )
    groups = {name: App(name=name, help=text) for name, text in _GROUPS.items()}
    for group in groups.values():
        root.command(group)
    for words, (path, text) in COMMANDS.items():
        *above, name = words.split()
        (groups[above[0]] if above else root).command(path, name=name, help=text)
    return root


def _version() -> str:
    from coatcheck.version import VERSION  # noqa: PLC0415 - reading it takes longer than some commands

    return f"coatcheck {VERSION}"


def run() -> int:
    """Run `sys.argv` and return the exit code."""
    arguments = sys.argv[1:]
    # Without a handler of anybody's, the standard library would print what other libraries say.
    logging.getLogger().addHandler(logging.NullHandler())
    with Ends(arguments) as ends:
        command, bound, _ = app().parse_args(arguments, exit_on_error=False, print_error=False)
        gc.enable()
        code = command(*bound.args, **bound.kwargs)
        sys.stdout.flush()
        ends.exit_code = code if isinstance(code, int) else 0
    return ends.exit_code
