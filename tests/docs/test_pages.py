"""What the pages tell a reader to click, type and write works: links, paths, commands with their options, settings and examples."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from cli.terminal import Terminal, plain_environ
from coatcheck import Coatcheck
from coatcheck.cli.program import COMMANDS
from coatcheck.config.table import CONCURRENCY, CONFIG, LEASE, PROVIDER, TOP
from docs.pages import DOCS, ROOT, SOURCE, anchors, blocks, links, name_of, pages, read, spans

TYPED = {"console", "", "sh", "bash"}
SNIPPETS = [
    pytest.param(block.text, id=f"{name_of(page)}-{number}")
    for page in pages()
    for number, block in enumerate(blocks(page))
    if block.language == "python"
]


@pytest.fixture(params=pages(), ids=name_of)
def page(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def typed(page: Path) -> list[str]:
    """What a page tells to type: lines of its blocks, and code in its sentences."""
    lines = [line for block in blocks(page) if block.language in TYPED for line in block.text.splitlines()]
    return [re.split(r" {2,}| # ", line.removeprefix("$ "))[0].strip() for line in [*lines, *spans(page)]]


@cache
def help_of(command: str) -> str:
    ended = Terminal(folder=ROOT, environ=plain_environ()).run(*command.split(), "--help")
    assert ended.code == 0, ended.err
    return ended.out


def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_paths_in_code_exist(page: Path) -> None:
    paths = [span for span in spans(page) if re.fullmatch(r"[\w][\w./-]*/[\w.-]+\.(py|sql|md|toml|lock)", span)]
    places = (page.parent, ROOT, SOURCE)
    assert [path for path in paths if "NNNN" not in path and not any((place / path).exists() for place in places)] == []


def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read_makefile(), re.MULTILINE))
    named = [
        word for line in typed(page) if line.startswith("make ") for word in re.sub(r"\w+=\S+", "", line).split()[1:]
    ]
    assert set(named) <= targets


def read_makefile() -> str:
    return (ROOT / "Makefile").read_text()


def test_commands_and_their_options_exist(page: Path) -> None:
    for line in typed(page):
        if not re.match(r"coatcheck [a-z]", line):
            continue
        for command, options in read_commands(line):
            assert command in COMMANDS, line
            for option in options:
                assert option in help_of(command), line


def read_commands(line: str) -> list[tuple[str, list[str]]]:
    """The commands that a line names, as `providers pause|resume NAME --reason R` names two."""
    first, *rest = re.split(r"[ ]", line.removeprefix("coatcheck "))
    groups = {words.split()[0] for words in COMMANDS if " " in words}
    options = re.findall(r"--[a-z-]+", line)
    if first in groups and not rest:
        return []
    names = [f"{first} {second}" for second in rest[0].split("|")] if first in groups else [first]
    return [(name, options) for name in names]


def test_settings_exist(page: Path) -> None:
    known = {f"COATCHECK_{each.name.upper()}" for each in TOP} | {CONFIG}
    known |= {f"COATCHECK_PROVIDERS__<NAME>__{each.name.upper()}" for each in PROVIDER}
    known |= {f"COATCHECK_LEASE__{each.name.upper()}" for each in LEASE}
    known |= {f"COATCHECK_CONCURRENCY__{each.name.upper()}" for each in CONCURRENCY}
    named = re.findall(r"COATCHECK_[A-Z][A-Z_]*(?:<NAME>[A-Z_]*)?", read(page))
    general = {re.sub(r"^(COATCHECK_PROVIDERS__)[A-Z]+?(__)", r"\1<NAME>\2", name) for name in named}
    assert {name for name in general if not name.endswith("_")} <= known
    if page == DOCS / "settings.md":
        assert known <= general


@pytest.mark.parametrize("text", SNIPPETS)
def test_python_compiles_and_finds_what_it_imports(text: str) -> None:
    compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = import_module(node.module or "")
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []
        if isinstance(node, ast.Import):
            assert [import_module(name.name) for name in node.names]


def test_python_calls_the_library_as_it_is() -> None:
    called = 0
    for snippet in SNIPPETS:
        for node in ast.walk(ast.parse(str(snippet.values[0]))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and hasattr(Coatcheck, node.func.attr)
            ):
                method = getattr(Coatcheck, node.func.attr)
                assert {keyword.arg for keyword in node.keywords} <= set(method.__kwdefaults__ or {}) | set(
                    method.__code__.co_varnames
                )
                called += 1
    assert called >= 2
