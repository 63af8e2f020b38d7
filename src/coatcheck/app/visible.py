"""Text of others among our own: whatever would move a cursor, colour, reorder or hide is written out instead of obeyed."""


def visible(text: str) -> str:
    r"""The text with every character that does not print as an escape, as `visible("a\x1b[2J")` is `a\x1b[2J` in plain letters."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
