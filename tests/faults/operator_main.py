"""A person's one command in a process of its own, except that its faults strike. Started by the tests beside it."""

import asyncio
import os
import sys
from pathlib import Path

from coatcheck import Coatcheck, CoatcheckError
from coatcheck.config import load_settings
from coatcheck.seams import Seams
from faults.strike import Striking, read


async def main(strikes: str, action: str, subject: str) -> None:
    """`action` is a method of the operator's handle that takes a subject and a reason; what it refuses is said."""
    settings = load_settings(os.environ, Path.cwd())
    async with Coatcheck(settings, seams=Seams(faults=Striking(read(strikes)))) as coatcheck:
        try:
            await getattr(coatcheck.for_operator("eve"), action)(subject, reason="the customer called")
        except CoatcheckError as refusal:
            sys.stderr.write(f"{refusal.code}\n")


def run(arguments: list[str]) -> None:
    """The course of a process: the strikes, the command, and what it is about."""
    strikes, action, subject = arguments
    asyncio.run(main(strikes, action, subject))


if __name__ == "__main__":
    run(sys.argv[1:])
