"""A durable checkroom for billable remote render jobs: never paid for twice, never lost, never handed to the wrong guest.

The public names are loaded when they are asked for, so that an import costs nothing that is not used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.app.library import Coatcheck
    from coatcheck.app.views import EnqueuedOperation, Operation, Output
    from coatcheck.config import Settings, load_settings
    from coatcheck.core.operation import DeliveryState, Phase, RenderState
    from coatcheck.errors import (
        AdoptionRefused,
        CandidateExists,
        CoatcheckError,
        CommitUnknown,
        Failed,
        KeyReused,
        LeaseTooShort,
        MissingExtra,
        NotCancellable,
        NotFound,
        NotQuiescent,
        NoTransaction,
        OrphanResolved,
        OtherReference,
        OutsideWindow,
        Overlap,
        Refused,
        RemoteJobElsewhere,
        RemoteJobInvalid,
        RemoteJobOwned,
        RemoteJobUnknown,
        RemoteJobUnreadable,
        SchemaMismatch,
        SecondPerson,
        SettingInvalid,
        SettingUnknown,
        SpecificationInvalid,
        Stale,
        StaleLease,
        StaleRevision,
        StillLooking,
        Unavailable,
        Unconfirmed,
        WrongPhase,
    )

    __version__: str

__all__ = [
    "AdoptionRefused",
    "CandidateExists",
    "Coatcheck",
    "CoatcheckError",
    "CommitUnknown",
    "DeliveryState",
    "EnqueuedOperation",
    "Failed",
    "KeyReused",
    "LeaseTooShort",
    "MissingExtra",
    "NoTransaction",
    "NotCancellable",
    "NotFound",
    "NotQuiescent",
    "Operation",
    "OrphanResolved",
    "OtherReference",
    "Output",
    "OutsideWindow",
    "Overlap",
    "Phase",
    "Refused",
    "RemoteJobElsewhere",
    "RemoteJobInvalid",
    "RemoteJobOwned",
    "RemoteJobUnknown",
    "RemoteJobUnreadable",
    "RenderState",
    "SchemaMismatch",
    "SecondPerson",
    "SettingInvalid",
    "SettingUnknown",
    "Settings",
    "SpecificationInvalid",
    "Stale",
    "StaleLease",
    "StaleRevision",
    "StillLooking",
    "Unavailable",
    "Unconfirmed",
    "WrongPhase",
    "__version__",
    "load_settings",
]

_ERRORS = "coatcheck.errors"
_ELSEWHERE = {
    "Coatcheck": "coatcheck.app.library",
    "EnqueuedOperation": "coatcheck.app.views",
    "Operation": "coatcheck.app.views",
    "Output": "coatcheck.app.views",
    "Settings": "coatcheck.config",
    "load_settings": "coatcheck.config",
    "DeliveryState": "coatcheck.core.operation",
    "Phase": "coatcheck.core.operation",
    "RenderState": "coatcheck.core.operation",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        found: object = import_module("coatcheck.version").VERSION
    elif name in __all__:
        found = getattr(import_module(_ELSEWHERE.get(name, _ERRORS)), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
