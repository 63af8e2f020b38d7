"""Short leases on messages, and nothing else: who may work on a lane for a while, never who may change an operation."""
