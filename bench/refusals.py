"""What a measuring command cannot do is told in a sentence, as by the product's own command, and not as a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coatcheck.errors import CoatcheckError


@contextmanager
def told() -> Iterator[None]:
    """End with exit code 1 and what is to be done where the block raises an error of coatcheck's.

    Example: `with told(): main()`.
    """
    try:
        yield
    except CoatcheckError as error:
        sys.exit("\n".join(word for word in (error.message, error.next) if word))
