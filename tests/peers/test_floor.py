"""The floor sends the worker's own statements: what one of them begins to ask for, the script has to give it."""

from bench.peers.floor import _steps, _text


def test_every_statement_is_given_all_that_it_asks_for() -> None:
    texts = [_text(step) for step in _steps()]
    assert texts
    assert not [text for text in texts if "%(" in text]
