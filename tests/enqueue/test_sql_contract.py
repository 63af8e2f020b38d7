"""`docs/sql.md` says what `enqueue_v1` does: its example runs, its tables name the fields that there are."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import postgres
from coatcheck.config import load_settings
from coatcheck.core.fingerprint import fingerprint
from coatcheck.enqueue import prepare
from coatcheck.enqueue.answer import read_answer
from coatcheck.errors import CoatcheckError

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sql.md").read_text()


def section(title: str) -> str:
    return re.split(r"^## ", PAGE.split(f"## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def fields(title: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", section(title), re.MULTILINE))


def ask(database: postgres.Database, request: dict[str, Any] | str) -> dict[str, Any]:
    text = request if isinstance(request, str) else json.dumps(request)
    with database.connect() as connection:
        row = connection.execute("select coatcheck.enqueue_v1(%s::jsonb)::text", (text,)).fetchone()
    assert row is not None
    answer: dict[str, Any] = json.loads(str(row[0]))
    return answer


def test_the_example_runs(database: postgres.Database) -> None:
    example = PAGE.split("```sql\n", 1)[1].split("```", 1)[0]
    with database.connect() as connection:
        connection.execute("create table orders (name text)")
        connection.execute(example.encode())
        stored = connection.execute("select specification_text from coatcheck.specifications").fetchone()
    assert stored == (fingerprint({"seed": 7, "prompt": "a red coat"}).text,)


def test_the_answer_has_the_fields_of_the_page(database: postgres.Database) -> None:
    request = prepare(tenant_id="ada", key="k", provider="genace", specification={"prompt": "coat"})
    other = prepare(tenant_id="ada", key="k", provider="genace", specification={"prompt": "hat"})
    seen = {}
    for asked in (request, request, other):
        answer = ask(database, str(asked.text))
        seen[answer["result"]] = answer
        assert set(answer) == fields("The answer") - {"reason"}
    refused = ask(database, {"v": 1})
    seen[refused["result"]] = refused
    assert set(refused) == {"result", "reason"}
    assert set(seen) == {"created", "existing", "key_reused", "refused"}
    assert seen["key_reused"]["specification_hash"] == request.specification_hash
    assert read_answer(json.dumps(seen["created"]), request).created


def test_the_request_takes_the_fields_of_the_page_and_no_other(database: postgres.Database) -> None:
    full: dict[str, Any] = {
        "v": 1,
        "tenant_id": "ada",
        "operation_key": "k",
        "provider": "genace",
        "specification_text": "{}",
        "estimate": "1.5",
        "unit": "credits",
        "priority": 1,
        "not_before_at": "2026-01-01T00:00:00Z",
        "dispatch_by_at": "2099-01-01T00:00:00+02:00",
    }
    assert set(full) == fields("The request")
    assert ask(database, full)["result"] == "created"
    assert ask(database, {**full, "dispatch_by": "2099-01-01T00:00:00Z"})["result"] == "refused"
    required = set(re.findall(r"^\| `(\w+)` \|[^|]*\| required", section("The request"), re.MULTILINE))
    for name in full:
        rest = {key: value for key, value in full.items() if key != name}
        assert (ask(database, rest)["result"] == "refused") is (name in required)


@pytest.mark.parametrize("number", ["1", "1.50", '"1.50"', "0", "-0.0", "null"])
def test_an_estimate_is_text_or_number(database: postgres.Database, number: str) -> None:
    request = f'{{"v": 1, "tenant_id": "a", "operation_key": "k", "provider": "p", "specification_text": "{{}}", "estimate": {number}}}'
    assert ask(database, request)["result"] == "created"


@pytest.mark.parametrize("hostile", ["1e400", '"NaN"', "-1", '"1e3"', "true", "[]", "{}", '""', '"1 or 1=1"', "1e18"])
def test_a_hostile_estimate_is_refused_and_nothing_raised(database: postgres.Database, hostile: str) -> None:
    request = f'{{"v": 1, "tenant_id": "a", "operation_key": "k", "provider": "p", "specification_text": "{{}}", "estimate": {hostile}}}'
    answer = ask(database, request)
    assert (answer["result"], answer["reason"][:8]) == ("refused", "estimate")


@pytest.mark.parametrize(
    "name",
    [
        *("a", "genace", "a_b", "a1_2_b3", "g" * 63, "g" + "_9" * 31),
        *("", "9a", "_a", "a_", "a__b", "A", "a-b", "a b", "é", "a\n", "a\u0661", "g" * 64, "g" + "_9" * 32),
    ],
)
def test_what_can_be_configured_can_be_enqueued_for_and_nothing_else(
    database: postgres.Database, tmp_path: Path, name: str
) -> None:
    """One rule in three places: the settings, the library and the function."""
    answer = ask(
        database, {"v": 1, "tenant_id": "ada", "operation_key": "k", "provider": name, "specification_text": "{}"}
    )
    (tmp_path / "coatcheck.toml").write_text(f"[providers.{json.dumps(name)}]\nwait_s = 1\n")
    taken = [
        answer["result"] == "created",
        attempt(lambda: load_settings({}, tmp_path)),
        attempt(lambda: prepare(tenant_id="ada", key="k", provider=name, specification={})),
    ]
    assert taken in ([True] * 3, [False] * 3)


def attempt(act: Callable[[], object]) -> bool:
    try:
        act()
    except CoatcheckError:
        return False
    return True
