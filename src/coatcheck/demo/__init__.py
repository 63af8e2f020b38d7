"""The demo: a shop with three tenants, a service that loses replies, a worker that is killed, and a person who decides what is in doubt.

Nothing is simulated but the service and the person's eyes: real PostgreSQL, real HTTP, real worker processes, a real SIGKILL, the decisions
of the library. After each of the two acts an account compares two books, the service's ledger and coatcheck's store, and the demo fails when
they disagree.
"""

from coatcheck.demo.command import run

__all__ = ["run"]
