"""What a reader is told at the end: why this exists, the doubts by name, what a person decided, and both accounts with their marks."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from coatcheck.core.identity import operation_text
from coatcheck.demo.account import Account, Doubt, Line
from coatcheck.demo.balance import Balance
from coatcheck.demo.orders import PERSON, PRICE
from coatcheck.demo.person import Verdict
from coatcheck.demo.troubles import STALL

_SHOWN_DOUBTS = 25
_JOB_CHARACTERS = 8
_WIDTH = 100
_MARKS = ("✓", "✗")
_PLAIN_MARKS = ("ok", "NO")
_USUAL_RETRIES = 2
"""Measured: common SDKs of such services send a POST twice more by default; one sends it nine times more."""


def tell(console: Console, account: Account, balance: Balance, look_around: str) -> None:
    """Print it. `look_around` is what to type before a command that shall see this run's database."""
    marks = _MARKS if console.encoding.startswith("utf") else _PLAIN_MARKS
    console.print(_why(account))
    if account.doubts:
        console.print(_doubts(account, balance))
        console.print(_decisions(balance))
    console.print(_lines("The account before anybody decided, checked", account.lines, marks))
    console.print(_lines("The account after the decisions, checked", balance.lines, marks))
    console.print(_verdict((*account.lines, *balance.lines)))
    _tell_next(console, balance, look_around)


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


def _doubts(account: Account, balance: Balance) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, title="Uncertain, by name", title_justify="left", title_style="bold", pad_edge=False)
    for column in ("operation", "tenant and key", "what became of the reply", "adopted job"):
        table.add_column(column, no_wrap=column == "operation")
    for doubt in account.doubts[:_SHOWN_DOUBTS]:
        table.add_row(
            operation_text(doubt.operation_id),
            f"{doubt.order.tenant_id} {doubt.order.key}",
            _cause(doubt),
            _decided(balance.verdicts.get(doubt.operation_id)),
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


def _decided(verdict: Verdict | None) -> Text:
    if verdict is None:
        return Text("not decided", style="bold red")
    if verdict.remote_job_id is None:
        return Text("none: 1 more POST")
    return Text(f"{verdict.remote_job_id[:_JOB_CHARACTERS]}…{' --force' if verdict.is_forced else ''}")


def _decisions(balance: Balance) -> RenderableType:
    verdicts = balance.verdicts.values()
    adopted = [each for each in verdicts if not each.proves_absence]
    proven = [each for each in verdicts if each.proves_absence]
    forced_count, early_count = (
        sum(each.is_forced for each in adopted),
        sum(each.refusal is not None for each in proven),
    )
    text = Text(f"{PERSON} is on call, with coatcheck's evidence and the service's own ledger. ")
    text.append(f"{len(adopted)} had a job: adopted", style="bold green")
    text.append(", so a worker looked at it and delivered it, and nothing was paid for a second time. ")
    if forced_count:
        text.append(
            f"{forced_count} of these coatcheck refused at first: another tenant's dispatch was open at the same time, and the job could have "
            f"been that one's. The ledger says whose it is, hence --force. "
        )
    if proven:
        text.append(f"{len(proven)} had none: proven absent", style="bold green")
        text.append(", which authorises one more POST. ")
    if early_count:
        text.append(
            f"{early_count} of these coatcheck refused, too, until the instant after which nothing of the first POST could arrive any more. "
        )
    if proven:
        text.append(f"The service got {balance.figures['posts_authorised_again']} more POSTs in all.")
    return Panel(text, title="What a person decided", title_align="left", padding=(1, 2), width=_WIDTH)


def _lines(title: str, lines: Sequence[Line], marks: tuple[str, str]) -> RenderableType:
    holds, fails = marks
    table = Table(box=None, title=f"\n{title}", title_justify="left", title_style="bold", show_header=False)
    for line in lines:
        mark = Text(holds, style="bold green") if line.holds else Text(fails, style="bold red")
        table.add_row(mark, line.claim, Text(line.found, style="dim" if line.holds else "red"))
    return table


def _verdict(lines: Sequence[Line]) -> RenderableType:
    failed = sum(not line.holds for line in lines)
    if not failed:
        return Text("Every line holds.", style="bold green")
    return Text(f"{failed} of {len(lines)} lines do not hold.", style="bold red")


def _tell_next(console: Console, balance: Balance, look_around: str) -> None:
    """One example of each decision, then the money."""
    examples = {each.proves_absence: operation_text(each.operation_id) for each in balance.verdicts.values()}
    shows = [f"operations show {examples[kind]}" for kind in sorted(examples)]
    console.print("\nLook around: this run's database stays until the next demo.", style="bold")
    for words in (*shows, "charges report --by tenant", "allowance show", "audit"):
        # Never broken by us, so that it can be copied as it is.
        console.print(Text(f"  {look_around} {words}", style="cyan"), soft_wrap=True)
