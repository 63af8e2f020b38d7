"""A promise without a test is a wish: every promise names its guard and tests that exist, and says which of them the laboratory alone runs."""

import re
from pathlib import Path

from docs.pages import DOCS, ROOT, SOURCE, functions, missing_tests, named_tests, rows, spans

PAGE = DOCS / "guarantees.md"
PROMISES = [row for row in rows(PAGE) if row[0].isdigit()]


def test_promises_are_numbered_without_a_gap() -> None:
    assert [int(row[0]) for row in PROMISES] == list(range(1, len(PROMISES) + 1))
    assert len(PROMISES) >= 20


def test_every_promise_has_its_guard_and_tests_that_exist() -> None:
    assert [row[0] for row in PROMISES if not row[2]] == []
    assert [row[0] for row in PROMISES if not named_tests(row[3])] == []
    assert {row[0]: missing for row in PROMISES if (missing := missing_tests(row[3]))} == {}


def test_every_guard_is_where_the_page_says() -> None:
    paths = [span for span in spans(PAGE) if span.endswith((".py", ".sql"))]
    assert len(paths) >= len(PROMISES)
    assert [path for path in paths if not (SOURCE / path).is_file() and not (ROOT / path).is_file()] == []


def test_every_guard_does_something_and_has_what_the_page_names_of_it() -> None:
    """A file that only hands names on guards nothing, and a word that no guard of the row has leads nowhere."""
    schema = "".join(path.read_text() for path in (SOURCE / "sql" / "migrations").glob("*.sql"))
    for number, _, guard, _ in PROMISES:
        named = re.findall(r"`([^`]+)`", guard)
        files = [SOURCE / name for name in named if name.endswith((".py", ".sql"))]
        assert [path for path in files if not does_something(path)] == [], number
        within = schema + "".join(path.read_text() for path in files)
        words = [name for name in named if not name.endswith((".py", ".sql"))]
        assert [word for word in words if not re.search(rf"\b{re.escape(word)}\b", within)] == [], number


def does_something(path: Path) -> bool:
    return path.suffix == ".sql" or any(not name.startswith("__") for name in functions(path))


def test_a_file_that_only_hands_names_on_is_no_guard() -> None:
    assert not does_something(SOURCE / "app" / "reconciling" / "__init__.py")
    assert does_something(SOURCE / "app" / "reconciling" / "operator.py")


def test_what_the_laboratory_alone_runs_is_marked() -> None:
    laboratory = lab_only()
    marks = {number: re.findall(r"`(tests/[\w/]+\.py)::\w+`( ᴸ)?", tests) for number, _, _, tests in PROMISES}
    assert {
        number: wrong
        for number, found in marks.items()
        if (wrong := [f for f, mark in found if bool(mark) is not (f in laboratory)])
    } == {}
    assert any(mark for found in marks.values() for _, mark in found)


def lab_only() -> frozenset[str]:
    """The files that `make test` leaves out."""
    lines = (ROOT / "Makefile").read_text().replace("\\\n", " ").splitlines()
    (listed,) = [line for line in lines if line.startswith("LAB := ")]
    found = listed.split()[2:]
    assert [name for name in found if not (ROOT / name).is_file()] == []
    return frozenset(found)
