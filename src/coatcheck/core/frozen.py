"""Frozen dataclasses that are made as quickly as open ones, for the values that each operation makes anew.

What `dataclass(frozen=True)` makes sets each field with `object.__setattr__`, which takes several times as long as an assignment. Here the fields
are assigned to an open value, which then is frozen for good: its class becomes one that refuses.
"""

from dataclasses import FrozenInstanceError, dataclass, field
from inspect import signature
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A dataclass as `dataclass(frozen=True, slots=True, kw_only=True)` makes it, to which nothing can be added by inheritance.

    Raises TypeError for a class with a base or a `__post_init__`.

    Example: `@frozen class Waited: since_at: datetime`.
    """
    if cls.__bases__ != (object,) or hasattr(cls, "__post_init__"):
        raise TypeError(f"expected no base and no __post_init__ of {cls.__name__}; use dataclass(frozen=True) for it")

    def freeze(self: Any) -> None:
        self.__class__ = closed

    vars_of: Any = cls
    vars_of.__post_init__, vars_of.__reduce__ = freeze, _reduced
    opened = dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
    # to call the class is to make an open value
    kind = type(cls.__name__, (type,), {"__call__": opened})
    closed: type[T] = kind(
        cls.__name__,
        (opened,),
        {
            "__slots__": (),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__signature__": signature(opened),
            "__setattr__": _refuse,
            "__delattr__": _refuse,
            "__init_subclass__": _refuse_heir,
        },
    )
    return closed


def _refuse(_: object, name: str, *__: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _refuse_heir(_: object, **__: object) -> NoReturn:
    raise TypeError("expected no class that is derived from a frozen one; use dataclass(frozen=True) for its base")


def _reduced(self: Any) -> tuple[Any, ...]:
    """How to copy or pickle it: with its fields, made anew."""
    opened: Any = type(self).__base__
    return _made, (type(self), {name: getattr(self, name) for name in opened.__slots__})


def _made(cls: type[T], told: dict[str, Any]) -> T:
    return cls(**told)
