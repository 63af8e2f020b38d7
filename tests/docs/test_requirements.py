"""Every sentence of the requirement has its row, and a row says nothing that the tree does not hold."""

import re

from docs.pages import DOCS, ROOT, SOURCE, missing_tests, named_tests, read, rows

PAGE = DOCS / "requirements.md"
TEXTS = {"The job store": 33, "The transactional outbox": 32, "The visibility timeout": 34}
"""Sentences of each text, its examples of SQL and of a message among them."""
_COMES = re.compile(r"`tests/[\w/]+\.py::\w+`|comes with: [a-z][\w ,'-]+$")
ROWS = [row for row in rows(PAGE) if row[0].isdigit()]


def test_every_sentence_has_its_row_and_no_number_is_missing() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, sum(TEXTS.values()) + 1))
    sections = re.split(r"^## ", read(PAGE), flags=re.MULTILINE)[1:]
    counted = {part.splitlines()[0]: len(re.findall(r"^\| \d+ \|", part, re.MULTILINE)) for part in sections}
    assert counted == TEXTS


def test_a_row_has_a_point_a_place_and_a_test_or_what_it_comes_with() -> None:
    assert [row[0] for row in ROWS if not row[1] or not row[2]] == []
    assert [row[0] for row in ROWS if not named_tests(row[3]) and not re.search(r"comes with: \w", row[3])] == []


def test_the_tests_that_a_row_names_exist() -> None:
    assert {row[0]: missing for row in ROWS if (missing := missing_tests(row[3]))} == {}


def test_a_row_names_nothing_beside_tests_but_what_comes_later() -> None:
    assert {row[0]: left for row in ROWS if (left := _COMES.sub("", row[3]).strip(" ,;"))} == {}


def test_the_places_that_a_row_names_exist() -> None:
    paths = {row[0]: re.findall(r"`([\w./-]+(?:/|\.py|\.md|\.sql))`", row[2]) for row in ROWS}
    missing = {
        number: [path for path in named if not (SOURCE / path).exists() and not (ROOT / path).exists()]
        for number, named in paths.items()
    }
    assert {number: path for number, path in missing.items() if path} == {}
    assert sum(map(len, paths.values())) > len(ROWS) / 2
