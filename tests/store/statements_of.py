"""A migration's text as the statements that the server runs one after the other."""

import re

_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|;|.", re.DOTALL)


def statements_of(text: str) -> list[str]:
    """Each statement with its semicolon; quotes, dollar quotes and comments hide theirs."""
    found: list[str] = []
    begun: list[str] = []
    for token in _TOKEN.finditer(text):
        begun.append(token[0])
        if token[0] == ";":
            found.append("".join(begun))
            begun.clear()
    assert re.sub(r"--[^\n]*", "", "".join(begun)).strip() == "", "a statement without its semicolon"
    return found
