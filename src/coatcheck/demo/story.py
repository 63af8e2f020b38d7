"""What a reader is told at the end: why this exists, the doubts by name and what to do about them, and the account with its marks."""

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from coatcheck.core.identity import operation_text
from coatcheck.demo.account import Account, Doubt
from coatcheck.demo.orders import PRICE
from coatcheck.demo.troubles import STALL

_SHOWN_DOUBTS = 25
_JOB_CHARACTERS = 10
_WIDTH = 100
_MARKS = ("✓", "✗")
_PLAIN_MARKS = ("ok", "NO")
_USUAL_RETRIES = 2
"""Measured: common SDKs of such services send a POST twice more by default; one sends it nine times more."""


def tell(console: Console, account: Account, look_around: str) -> None:
    """Print it. `look_around` is what to type before a command that shall see this run's database."""
    console.print(_why(account))
    if account.doubts:
        console.print(_doubts(account))
        _tell_next(console, account, look_around)
    console.print(_lines(account, _MARKS if console.encoding.startswith("utf") else _PLAIN_MARKS))
    console.print(_verdict(account))


def _why(account: Account) -> RenderableType:
    created = sum(doubt.job is not None for doubt in account.doubts)
    nothing = len(account.doubts) - created
    text = Text()
    text.append(f"{account.figures['operations']} paid renders", style="bold")
    text.append(" were ordered from a service that loses replies, and a worker was killed in the middle of a POST. ")
    text.append(f"{account.figures['lost_replies']} POSTs ended without a usable reply. ", style="bold")
    text.append(f"Behind {created} of them the service had created a job, and billed it")
    text.append(f"; behind {nothing}, nothing. From outside they look alike.\n\n" if nothing else ".\n\n")
    lost, answered = account.resent.lost_count, account.resent.answered_count
    text.append(
        f"A client that sends again pays again. Common ones do after {lost} of these, and after {answered} more replies of 5xx that "
        f"named the job: {lost} + {answered} POSTs, {_USUAL_RETRIES} retries each, are up to "
        f"{_USUAL_RETRIES * (lost + answered)} more POSTs at {PRICE} credits. "
    )
    text.append("coatcheck sent none. ", style="bold green")
    text.append(
        "A mark is committed before each POST, so what may have been sent is known, and what cannot be known is "
    )
    text.append("uncertain", style="bold yellow")
    text.append(", kept with its evidence, and its money held, until somebody decides.")
    return Panel(text, title="Why this exists", title_align="left", padding=(1, 2), width=_WIDTH)


def _doubts(account: Account) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, title="Uncertain, by name", title_justify="left", title_style="bold", pad_edge=False)
    for column in ("operation", "tenant and key", "what became of the reply", "the service knows"):
        table.add_column(column, no_wrap=column == "operation")
    for doubt in account.doubts[:_SHOWN_DOUBTS]:
        table.add_row(
            operation_text(doubt.operation_id),
            f"{doubt.order.tenant_id} {doubt.order.key}",
            _cause(doubt),
            Text("no job", style="dim") if doubt.job is None else Text(f"billed {doubt.job.id[:_JOB_CHARACTERS]}…"),
        )
    if len(account.doubts) > _SHOWN_DOUBTS:
        table.caption = f"… and {len(account.doubts) - _SHOWN_DOUBTS} more"
        table.caption_justify = "left"
    return table


def _cause(doubt: Doubt) -> Text:
    if doubt.killed:
        return Text("the worker was killed", style="bold red")
    trouble = doubt.order.trouble
    if trouble is None or not trouble.loses:
        return Text(STALL.says)
    return Text(trouble.says)


def _tell_next(console: Console, account: Account, look_around: str) -> None:
    first = operation_text(account.doubts[0].operation_id)
    console.print(
        "Next: this version keeps them and shows their evidence. The commands that decide them (adopt the job, prove that there is "
        "none, dispatch again, write off) are not there yet. This run's database stays until the next demo:",
        width=_WIDTH,
    )
    for words in ("operations list --phase uncertain", f"operations show {first}"):
        # Never broken by us, so that it can be copied as it is.
        console.print(Text(f"  {look_around} {words}", style="cyan"), soft_wrap=True)


def _lines(account: Account, marks: tuple[str, str]) -> RenderableType:
    holds, fails = marks
    table = Table(box=None, title="\nThe account, checked", title_justify="left", title_style="bold", show_header=False)
    for line in account.lines:
        mark = Text(holds, style="bold green") if line.holds else Text(fails, style="bold red")
        table.add_row(mark, line.claim, Text(line.found, style="dim" if line.holds else "red"))
    return table


def _verdict(account: Account) -> RenderableType:
    if account.ok:
        return Text("Every line holds.", style="bold green")
    failed = sum(not line.holds for line in account.lines)
    return Text(f"{failed} of {len(account.lines)} lines do not hold.", style="bold red")
