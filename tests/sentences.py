"""What a checker can say, sentence by sentence: each is a `yield` in it. A negative control counts for the sentence that it made the checker say."""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import GeneratorType, ModuleType
from typing import Any


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Sentence:
    """A `yield`, by its predicate and its line in the source."""

    predicate: str
    line: int


def said(words: Iterable[str]) -> Iterator[tuple[Sentence, str]]:
    """What a predicate says, with the place where it says it."""
    assert isinstance(words, GeneratorType)
    for text in words:
        frame = words.gi_frame
        assert frame is not None
        yield Sentence(predicate=frame.f_code.co_name, line=frame.f_lineno), text


def sentences(module: ModuleType) -> set[Sentence]:
    """All that the predicates of a module can say."""
    tree = ast.parse(inspect.getsource(module))
    return {
        Sentence(predicate=function.name, line=node.lineno)
        for function in tree.body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Yield | ast.YieldFrom)
    }


def names(predicates: Iterable[Callable[..., Any]]) -> list[str]:
    """What predicates are called."""
    return [each.__name__ for each in predicates]
