"""What a measuring command cannot do is told as by the product's own command; what nobody foresaw keeps its traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coatcheck.cli.ends import ending_of, report


@contextmanager
def told() -> Iterator[None]:
    """End in words and with their exit code where the block raises what is foreseen.

    Example: `with told(): main()`.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        ending = ending_of(error, "psycopg")
        if ending is None:
            raise
        report(ending, as_json=False)
        sys.exit(ending.exit_code)
