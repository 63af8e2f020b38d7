"""`coatcheck bench`: what coatcheck costs on this machine, measured of the real worker with a service and a PostgreSQL beside it.

A figure names what limited it, as far as that was seen: the processor time of each party, flushes, waiting. Nothing here asserts a time; what
can be asserted (a POST for each operation, and every operation delivered) is, and without it there is no figure.
"""

from coatcheck.bench.catalogue import MEASUREMENTS, chosen
from coatcheck.bench.command import Report, run, shown
from coatcheck.bench.scale import QUICK, WHOLE, Scale

__all__ = ["MEASUREMENTS", "QUICK", "WHOLE", "Report", "Scale", "chosen", "run", "shown"]
