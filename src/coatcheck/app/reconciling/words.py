"""What people give with a decision, checked before anything is read or asked: words that can be kept, ids that can be asked for."""

import unicodedata

from coatcheck.core.foreign import usable_id
from coatcheck.core.operation import RemoteJobId
from coatcheck.errors import Refused, RemoteJobInvalid

_SHOWN = 80
_WORDS_LIMIT = 2_000
"""Characters of a reason or a name: they are shown in every story for as long as the record is kept."""
_REVISION_LIMIT = 2**63
_UNSEEN = ("Cc", "Cf", "Cs", "Cn", "Co")


def words_of(name: str, text: object) -> str:
    """Text that says something, without white space at its ends: `words_of("reason", "seen on the bill")`. Raises `Refused`."""
    if not isinstance(text, str) or not _seen(text):
        raise Refused(f"{name}: expected some words, got nothing", next=f"say it in {name}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(f"{name}: expected UTF-8, got other bytes", next="use an encoding of UTF-8") from None
    if len(text) > _WORDS_LIMIT:
        raise Refused(
            f"{name}: expected at most {_WORDS_LIMIT} characters, got {len(text)}",
            next="say it shorter, and refer to the rest",
        )
    if "\0" in text:
        raise Refused(f"{name}: expected text, got a NUL character", next="remove it")
    return text.strip()


def remote_job_id_of(text: object) -> RemoteJobId:
    """An id that a service could have given. Raises `RemoteJobInvalid`."""
    found = usable_id(text)
    if found is None:
        shown = ascii(text[:_SHOWN]) if isinstance(text, str) else type(text).__name__
        raise RemoteJobInvalid(
            f"expected an id of 1 to 512 characters without control characters, got {shown}",
            next="give the id as the service's own records name the job",
        )
    return found


def revision_of(value: object) -> int | None:
    """A revision that an operation could have. Raises `Refused`."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _REVISION_LIMIT:
        raise Refused(
            f"revision: expected a whole number from 0, got {str(value)[:_SHOWN]!a}",
            next="give the revision that was shown",
        )
    return value


def is_same_person(one: str, other: str) -> bool:
    """Whether two names look alike: in another case, in other forms of the same letters, or with characters that do not show."""
    return _seen(one).casefold() == _seen(other).casefold()


def _seen(text: str) -> str:
    """What a reader sees of a text: compatible forms made one, and nothing that does not show."""
    shown = "".join(each for each in unicodedata.normalize("NFKC", text) if unicodedata.category(each) not in _UNSEEN)
    return " ".join(shown.split())
