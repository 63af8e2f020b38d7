"""The page of late truth is what the oracle says that the store is tried against."""

from pathlib import Path

from docs.late_truth_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "late-truth.md"


def test_the_page_of_late_truth_is_the_one_that_the_oracle_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"
