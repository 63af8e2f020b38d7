"""One word per idea, and none without its page: what the code can say is documented, and the pages do not call it something else."""

import ast
import enum
import re
from pathlib import Path

import pytest

from coatcheck import errors
from coatcheck.core.actions import Action, ParkReason, WaitReason
from coatcheck.core.evidence import Stage
from coatcheck.core.machine import RULES
from coatcheck.core.operation import DeliveryState, Outcome, Phase, RenderState
from coatcheck.core.steps import Boundary
from coatcheck.delivery.outcome import Reason
from coatcheck.store.audit import CHECKS
from coatcheck.store.remedies import REMEDIES
from docs.pages import DOCS, ROOT, SOURCE, column, pages, prose, read

AUDIT, GLOSSARY, OPERATING, STATES = (DOCS / f"{name}.md" for name in ("audit", "glossary", "operating", "states"))
SQL = SOURCE / "sql"

# Words of other systems that are never ours. `prompt`, `job` or `status` are not here: they have a meaning of their own beside ours.
NEVER = r"payloads?|e-?tags?|external ids?|render ids?|poll results?|nack\w*|heartbeats?|consumers?|dead[- ]letters?|retry|retries|params"
MAY_SPEAK_OF_OTHERS = {
    "requirements.md",  # says in our words what a text by somebody else asks for
    "CONTRIBUTING.md",  # names what an adapter must not hide
    "simulator.md",  # speaks of a service and of clients that are not ours
}


def subclasses(kind: type[errors.CoatcheckError]) -> set[type[errors.CoatcheckError]]:
    below = set(kind.__subclasses__())
    return below.union(*(subclasses(each) for each in below))


def incident_kinds() -> set[str]:
    """Every kind of incident that Python or SQL can write."""
    kinds = set()
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "sim") or path.is_relative_to(SOURCE / "demo"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Incident", "Nonsense"}:
                kinds |= {
                    keyword.value.value
                    for keyword in node.keywords
                    if keyword.arg == "kind" and isinstance(keyword.value, ast.Constant)
                }
    for path in SQL.rglob("*.sql"):
        side = rf"(?:'(?:{'|'.join(Boundary)})'|\w+\.boundary)"
        kinds |= set(re.findall(rf"'(\w+)',\s*{side}", path.read_text()))
    return {str(kind) for kind in kinds} - set(Boundary)


@pytest.mark.parametrize(
    ("head", "words", "page"),
    [
        ("render_state", RenderState, GLOSSARY),
        ("delivery_state", DeliveryState, GLOSSARY),
        ("outcome", Outcome, GLOSSARY),
        ("action", Action, GLOSSARY),
        ("wait_reason", WaitReason, OPERATING),
        ("park_reason", ParkReason, OPERATING),
        ("cause", Reason, OPERATING),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_table_of_a_word_has_a_row_for_each_of_its_values_and_no_other(
    head: str, words: type[enum.StrEnum], page: Path
) -> None:
    assert sorted(column(page, head)) == sorted(words)


def test_every_phase_and_every_rule_is_on_the_page_of_states() -> None:
    text = read(STATES)
    assert [phase for phase in Phase if f"\n## {phase}\n" not in text] == []
    assert [
        rule.name for rule in RULES if not rule.name.startswith("late_") and rule.to and rule.name not in text
    ] == []


def test_every_incident_is_explained_and_none_that_cannot_happen() -> None:
    assert set(column(OPERATING, "kind")) == incident_kinds()


def test_every_finding_of_the_audit_is_explained_and_none_that_there_is_not() -> None:
    assert sorted(column(AUDIT, "check")) == sorted(CHECKS)
    assert sorted(column(AUDIT, "kind")) == sorted(REMEDIES)


def test_every_stage_of_a_post_is_named_where_its_evidence_is_read() -> None:
    assert [stage for stage in Stage if not re.search(rf"\b{stage}\b", read(OPERATING))] == []


def test_every_code_of_an_error_is_documented() -> None:
    text = "\n".join(read(page) for page in pages())
    codes = {kind.code for kind in subclasses(errors.CoatcheckError)}
    assert [code for code in sorted(codes) if f"`{code}`" not in text] == []


def test_every_column_of_an_operation_is_in_the_glossary() -> None:
    table = re.search(
        r"create table coatcheck\.operations \((.*?)constraint",
        (SQL / "migrations" / "0001_tables.sql").read_text(),
        re.DOTALL,
    )
    assert table is not None
    columns = re.findall(r"^  (\w+) ", table[1], re.MULTILINE)
    assert len(columns) > 25
    assert [name for name in columns if f"`{name}`" not in read(GLOSSARY)] == []


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.name not in MAY_SPEAK_OF_OTHERS], ids=lambda page: page.name
)
def test_no_page_uses_another_systems_word_for_one_of_ours(page: Path) -> None:
    assert [line for line in prose(page) if re.search(rf"\b(?:{NEVER})\b(?!-After)", line, re.IGNORECASE)] == []


def test_exactly_once_is_never_claimed() -> None:
    claims = [
        (page.name, line)
        for page in [*pages(), *(ROOT / "src").rglob("*.py")]
        for line in read(page).splitlines()
        if re.search(r"exactly[- ]once", line, re.IGNORECASE)
        # "{id} exactly once" counts a text, and a numbered line belongs to the list of what is not promised
        and not re.search(r"\b(?:no|not|never|claims)\b|^\d+\. |contains", line, re.IGNORECASE)
    ]
    assert claims == []
