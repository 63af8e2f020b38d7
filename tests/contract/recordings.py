"""Recorded replies, one exchange to a file: taken from the simulated service and dressed as a gateway would, since Genace publishes none."""

import base64
import json
from pathlib import Path
from typing import Any

from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import RemoteJobId

FOLDER = Path(__file__).with_name("recorded")


def recorded(name: str) -> tuple[Exchange, RemoteJobId]:
    """The exchange in a file and the id of the job it is about. A body that is no text stands in `body_base64`."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    body = base64.b64decode(found["body_base64"]) if "body_base64" in found else found["body"].encode()
    exchange = Exchange(
        stage=Stage(found["stage"]),
        bytes_sent=found["bytes_sent"],
        bytes_received=found["bytes_received"],
        status=found["status"],
        headers=tuple((header, value) for header, value in found["headers"]),
        body=body,
        complete=found["complete"],
        framed=any(header.lower() in {"content-length", "transfer-encoding"} for header, _ in found["headers"]),
        failure=found["failure"],
    )
    return exchange, RemoteJobId(found["remote_job_id"])
