"""The simulated remote service: real HTTP on real sockets, faults to the byte, and a ledger of what would have been billed.

Shared by demo, tests and users' own tests. Nothing here knows how coatcheck works; it only plays the other side.
"""

from coatcheck.sim.kinds import End, Kind, Role
from coatcheck.sim.ledger import Ending, Ledger, PostRecord
from coatcheck.sim.script import Rule, Script
from coatcheck.sim.serve import serve
from coatcheck.sim.server import SimulatedService
from coatcheck.sim.settings import ServiceSettings
from coatcheck.sim.threaded import ThreadedService, simulated_service

__all__ = [
    "End",
    "Ending",
    "Kind",
    "Ledger",
    "PostRecord",
    "Role",
    "Rule",
    "Script",
    "ServiceSettings",
    "SimulatedService",
    "ThreadedService",
    "serve",
    "simulated_service",
]
