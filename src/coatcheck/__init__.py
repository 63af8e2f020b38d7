"""A durable checkroom for billable remote render jobs: never paid for twice, never lost, never handed to the wrong guest."""
