"""The embedded PostgreSQL of demo and tests. Never production: an explicit COATCHECK_DATABASE_URL always wins over it."""

from coatcheck.devdb.alone import alone
from coatcheck.devdb.server import DevPostgres

__all__ = ["DevPostgres", "alone"]
