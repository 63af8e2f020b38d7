"""coatcheck, as its users run it: the command `worker`, in this very process so that its imports are made before the word go."""

import os
import sys

import psycopg
import workload

from coatcheck.cli import main, program, running, worker
from coatcheck.store.schema import migrate_up

ENQUEUE = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'tenant ' || mod(n, %s), 'operation_key', 'picture ' || n,
  'provider', 'genace', 'specification_text', '{"prompt":"picture ' || n || '"}'))
from generate_series(1, %s) as n
"""
IMPORTED = (program, worker, running)
"""What the command would import itself."""


def fill(order: workload.Order) -> None:
    """Migrate and enqueue everything in one transaction, for so many tenants."""
    with psycopg.connect(order.database_url) as connection:
        migrate_up(connection)
        connection.execute(ENQUEUE, (order.settings["tenants"], order.operations))


def work(order: workload.Order) -> None:
    """Work until killed."""
    os.environ |= {
        "COATCHECK_DATABASE_URL": order.database_url,
        "COATCHECK_HOME": order.settings["home"],
        "COATCHECK_PROVIDERS__GENACE__BASE_URL": order.service_url,
        "COATCHECK_PROVIDERS__GENACE__API_KEY": "bench-key",
        # the peers look again at once
        "COATCHECK_PROVIDERS__GENACE__LOOK_MIN_S": "0.001",
        "COATCHECK_CONCURRENCY__DISPATCH": str(order.concurrency),
    }
    workload.ready()
    sys.argv = ["coatcheck", "worker", "--roles", order.settings["roles"]]
    sys.exit(main())


if __name__ == "__main__":
    if workload.is_filling():
        fill(workload.order())
    else:
        work(workload.order())
