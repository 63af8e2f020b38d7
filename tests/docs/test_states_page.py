"""The page of states is what the table says."""

from pathlib import Path

from docs.states_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "states.md"


def test_the_page_of_states_is_the_one_that_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"
