"""As whom the server runs: PostgreSQL refuses root, so root lends it an unprivileged account; everybody else runs it as themselves."""

import os
import pwd
from dataclasses import dataclass

from coatcheck.errors import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An entry of the account database; the server's own lookup of its name needs it to be there."""

    name: str
    uid: int
    gid: int


def borrowed(name: str) -> Account | None:
    """The account to run the server as, or None when the caller is not root and needs none.

    Raises `Failed` when the machine has no account of that name, or when it is root by another name.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise Failed(
            f"PostgreSQL does not run as root; expected an account named {name} to run it, got none",
            next="run as an ordinary user, or set COATCHECK_DATABASE_URL",
        ) from None
    if entry.pw_uid == 0:
        raise Failed(f"expected an unprivileged account, got {name}, which is root", next="name another account")
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
