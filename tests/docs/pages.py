"""The pages as data: their tables, links, code and the names in them. What a page claims is then checked against the tree."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "coatcheck"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


class Block(NamedTuple):
    """A fenced block: its language, empty where none is given, and its text."""

    language: str
    text: str


def pages() -> list[Path]:
    """Every page that a reader meets."""
    return sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def name_of(page: Path) -> str:
    """A page's path from the root, as a test's id."""
    return str(page.relative_to(ROOT))


def read(page: Path) -> str:
    """The text of a page."""
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    """Its fenced blocks."""
    return [Block(match[1], match[2]) for match in _FENCE.finditer(read(page))]


def spans(page: Path) -> list[str]:
    """Its code between backticks, fenced blocks apart."""
    return _SPAN.findall(_FENCE.sub("", read(page)))


def prose(page: Path) -> list[str]:
    """Its lines without any code."""
    return _SPAN.sub("", _FENCE.sub("", read(page))).splitlines()


def links(page: Path) -> list[str]:
    """Where it leads, addresses of other places apart."""
    return [link for link in _LINK.findall(_FENCE.sub("", read(page))) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """The names of its headings in a link."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def rows(page: Path) -> Iterator[list[str]]:
    """The cells of every table row, heads and rules among them."""
    for line in read(page).splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def column(page: Path, head: str) -> list[str]:
    """The first cells, without backticks, of the one table whose first head is `head`."""
    found: list[str] = []
    within = False
    for line in [*read(page).splitlines(), ""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            within = False
        elif cells[0] == head:
            within = True
        elif within and not set(cells[0]) <= {"-", ":"}:
            found += _SPAN.findall(cells[0])
    return found


def named_tests(text: str) -> list[tuple[str, str]]:
    """The tests that a text names, as file and function."""
    return _NAMED_TEST.findall(text)


@cache
def functions(path: Path) -> frozenset[str]:
    """The functions that a file defines; none for a file that is not there."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def missing_tests(text: str) -> list[str]:
    """The tests that a text names and nobody wrote."""
    return [f"{file}::{name}" for file, name in named_tests(text) if name not in functions(ROOT / file)]
