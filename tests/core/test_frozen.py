"""A value of a `frozen` class is a frozen dataclass in every respect but the time that it takes to make."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace

import pytest

from coatcheck.core.frozen import frozen


@frozen
class Point:
    """Where it is."""

    x: int
    y: int = 2
    secret: str = field(default="s3cret", repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The same, as everyone makes it."""

    x: int
    y: int = 2
    secret: str = field(default="s3cret", repr=False, compare=False)


POINT = Point(x=1)


def test_it_is_of_its_class_which_has_name_and_place() -> None:
    assert type(POINT) is Point
    assert (Point.__name__, Point.__qualname__, Point.__module__, Point.__doc__) == (
        "Point",
        "Point",
        __name__,
        "Where it is.",
    )


@pytest.mark.parametrize("name", ["x", "secret", "unheard_of"])
def test_nothing_of_it_changes(name: str) -> None:
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(POINT, name, 3)
    with pytest.raises(FrozenInstanceError, match=name):
        delattr(POINT, name)
    assert (POINT.x, POINT.y, POINT.secret) == (1, 2, "s3cret")


def test_it_has_slots_and_no_dictionary() -> None:
    assert not hasattr(POINT, "__dict__")


def test_it_shows_compares_and_hashes_as_usual() -> None:
    usual = Usual(x=1)
    assert repr(POINT) == repr(usual).replace("Usual", "Point") == "Point(x=1, y=2)"
    other: object = usual
    assert Point(x=1, secret="another") == POINT
    assert POINT not in (Point(x=2), other)
    assert hash(POINT) == hash(Point(x=1, secret="another")) == hash(usual)


def test_another_is_made_of_it() -> None:
    moved = replace(POINT, y=5)
    assert (type(moved), moved.x, moved.y) == (Point, 1, 5)
    with pytest.raises(FrozenInstanceError):
        moved.y = 6  # type: ignore[misc] # which is what is tried


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_it_is_copied_and_pickled(way: object) -> None:
    assert callable(way)
    again = way(Point(x=1, secret="told"))
    assert (type(again), again, again.secret) == (Point, POINT, "told")
    with pytest.raises(FrozenInstanceError):
        again.x = 3


def test_it_takes_what_its_fields_say_and_by_name_only() -> None:
    assert [each.name for each in fields(Point)] == ["x", "y", "secret"]
    assert is_dataclass(Point)
    assert str(inspect.signature(Point)) == str(inspect.signature(Usual))
    for wrong in ((1,), ()):
        with pytest.raises(TypeError):
            Point(*wrong)
    with pytest.raises(TypeError, match="unheard_of"):
        Point(x=1, unheard_of=2)  # type: ignore[call-arg] # which is what is tried


def test_a_pattern_finds_it() -> None:
    match POINT:
        case Point(x=1, y=found):
            assert found == 2
        case _:
            pytest.fail("expected a match")


def test_nothing_is_derived_from_it() -> None:
    with pytest.raises(TypeError, match="derived"):

        class Heir(Point):
            pass


def test_what_it_cannot_make_is_refused() -> None:
    with pytest.raises(TypeError, match="no base"):

        @frozen
        class Derived(Usual):
            pass

    with pytest.raises(TypeError, match="no __post_init__"):

        @frozen
        class Checked:
            x: int

            def __post_init__(self) -> None:
                raise AssertionError
