"""A promise without a test is a wish: every promise names its guard and tests that exist."""

from docs.pages import DOCS, ROOT, SOURCE, missing_tests, named_tests, rows, spans

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
