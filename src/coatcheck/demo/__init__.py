"""The demo: a shop with three tenants, a service that loses replies, a worker that is killed, and an account that is checked.

Nothing is simulated but the service: real PostgreSQL, real HTTP, real worker processes, a real SIGKILL. The account compares two books,
the service's ledger and coatcheck's store, and the demo fails when they disagree.
"""

from coatcheck.demo.command import run

__all__ = ["run"]
