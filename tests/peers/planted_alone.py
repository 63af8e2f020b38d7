"""The requests of the workflow with the standard library, and wrong if it is told to."""

import sys

from bench.peers.programs import workload

from peers.planted_main import asked, submitted


def work(order: workload.Order) -> None:
    fault = order.settings["fault"]
    for prompt in order.prompts():
        remote_job_id = submitted(order, prompt)
        for _ in range({"looked once": 1, "looked thrice": 3}.get(fault, 2)):
            asked(order, f"/{remote_job_id}")
    # until it is killed
    sys.stdin.read()


if __name__ == "__main__":
    workload.ready()
    work(workload.order())
