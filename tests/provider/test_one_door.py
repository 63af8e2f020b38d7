"""Who can spend money: one module sends the POST and one module asks for it (S1, S9). Read from the source, so that no caller hides."""

import ast
from collections.abc import Iterator
from pathlib import Path

import coatcheck

ROOT = Path(coatcheck.__file__).parent
SPENDER = "workers/dispatch.py"


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """Every dotted name that a module imports, names out of modules included."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def importers(name: str) -> set[str]:
    return {
        place
        for place, tree in modules()
        if any(found == name or found.startswith(f"{name}.") for found in imported(tree))
    }


def test_only_dispatch_can_reach_the_post() -> None:
    assert importers("coatcheck.provider.wire") == {SPENDER}


def test_only_the_wire_opens_a_line_and_only_http_keeps_connections_and_names() -> None:
    assert importers("coatcheck.provider.line") == {"provider/connecting.py", "provider/wire.py"}
    assert importers("coatcheck.provider.kept") == {"provider/http.py"}
    assert importers("coatcheck.provider.names") == {"provider/http.py"}
    assert not {place for place in importers("aiohttp") if place.startswith(("provider/", "workers/"))}
    assert {place for place in importers("h11") if place.startswith(("provider/", "workers/"))} == {
        "provider/heading.py",
        "provider/reply.py",
    }


def test_only_dispatch_asks_an_adapter_to_create() -> None:
    callers = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "create"
    }
    assert {place for place in callers if place.startswith(("provider/", "workers/", "app", "cli", "web"))} == {SPENDER}


def test_the_half_of_the_port_that_spends_is_handed_to_dispatch_alone() -> None:
    named = {place for place, tree in modules() if "coatcheck.provider.port.CreatePort" in imported(tree)}
    assert named == {SPENDER}
