"""The one statement of enqueue, in each driver's way of writing a parameter.

The request travels as text and is cast on the server, and so is the answer: whatever codecs for JSON the owner of the connection has
registered, they never see it. The name is qualified, for the search path is the owner's, too.
"""

from typing import LiteralString

from coatcheck.errors import NoTransaction

PSYCOPG: LiteralString = "select cast(coatcheck.enqueue_v1(cast(cast(%s as text) as jsonb)) as text)"
ASYNCPG: LiteralString = "select cast(coatcheck.enqueue_v1(cast(cast($1 as text) as jsonb)) as text)"
SQLALCHEMY: LiteralString = "select cast(coatcheck.enqueue_v1(cast(cast(:request as text) as jsonb)) as text)"


def no_transaction(remedy: str) -> NoTransaction:
    """The refusal of a connection that would commit the intent on its own; `remedy` is the code that opens a transaction."""
    return NoTransaction(
        "expected a connection with an open transaction, got one in autocommit: the intent would not be atomic with your own writes",
        next=f"open a transaction around both:\n{remedy}",
    )
