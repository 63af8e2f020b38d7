"""`sim`: the simulated remote service as a process of its own. Its first line on stdout says where it listens."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from coatcheck.cli.options import AsJson
from coatcheck.errors import Failed, Refused
from coatcheck.sim import serve

_LARGEST_PORT = 65_535


def sim(
    *,
    port: Annotated[int, Parameter(help="The port on the loopback interface; 0 takes a free one.")] = 0,
    seed: Annotated[int, Parameter(help="What chance is made of.")] = 0,
    style: Annotated[
        Literal["genace", "echo"], Parameter(help="echo: jobs repeat the reference of their POST, and can be listed.")
    ] = "genace",
    script: Annotated[Path | None, Parameter(help="A file that says what goes wrong, and when.")] = None,
    _as_json: AsJson = False,
) -> None:
    """Serve until told to stop. Prints {"base_url": …} as its first line."""
    if not 0 <= port <= _LARGEST_PORT:
        raise Refused(f"--port: expected 0 to {_LARGEST_PORT}, got {port}", next="--port 0 takes a free one")
    try:
        asyncio.run(serve(port, seed, script, sys.stdout, style=style))
    except OSError as error:
        raise Failed(
            f"expected to listen on port {port}, got: {error.strerror}", next="--port 0 takes a free one"
        ) from None
