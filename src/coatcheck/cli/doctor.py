"""`doctor`: what can work and what cannot, with the reading, the limit and the remedy. Findings are exit code 5."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from coatcheck.app.check import Check, Verdict
from coatcheck.app.checkup import database_checks, provider_checks, settings_checks
from coatcheck.app.place import database_of
from coatcheck.cli.ends import FINDINGS
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import write_object
from coatcheck.config import Settings, load_settings
from coatcheck.seams import Seams
from coatcheck.store.db import opened

_MARKS = {Verdict.OK: "✓", Verdict.WARNING: "!", Verdict.FAILED: "✗"}


def doctor(*, as_json: AsJson = False) -> int:
    """Check database, role, schema, pooler, clock, workers, leases, providers, sink and spool. Changes nothing."""
    settings, seams = load_settings(), Seams.real()
    found = [*asyncio.run(_asked(settings, seams)), *settings_checks(settings, seams)]
    is_sound = all(each.verdict is not Verdict.FAILED for each in found)
    if as_json:
        write_object({"ok": is_sound, "checks": [asdict(each) for each in found]})
    else:
        _print(found)
    return 0 if is_sound else FINDINGS


async def _asked(settings: Settings, seams: Seams) -> list[Check]:
    with database_of(settings, seams) as url:
        async with opened(url, seams=seams, name="doctor") as database:
            found = await database_checks(settings, url, database, seams)
    return [*found, *await provider_checks(settings, seams)]


def _print(found: Sequence[Check]) -> None:
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    rows = [(_MARKS[each.verdict], each.name, each.reading, each.limit, each.remedy) for each in found]
    show(table(("", "check", "reading", "limit", "remedy"), rows))
