"""A table in place of name resolution, which counts what it is asked and can forbid that a socket is ever made."""

import socket

from coatcheck.seams import Connect

Found = list[tuple[socket.AddressFamily, tuple[str, int]]]


class Names(Connect):
    """Resolves a table of names; numbers are read as the C library reads them. Counts, and makes sockets only when allowed."""

    def __init__(self, names: dict[str, list[list[str]]], *, sockets: bool) -> None:
        self._names = names
        self._sockets = sockets
        self.asked: list[str] = []
        self.made = 0

    async def resolve(self, host: str, port: int) -> Found:
        self.asked.append(host)
        if host in self._names:
            answers = self._names[host]
            addresses = answers.pop(0) if len(answers) > 1 else answers[0]
            return [(socket.AF_INET6 if ":" in address else socket.AF_INET, (address, port)) for address in addresses]
        if host[-1].isdigit() or ":" in host:
            return await super().resolve(host, port)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    def socket(self, family: socket.AddressFamily) -> socket.socket:
        self.made += 1
        assert self._sockets, "a socket was made for a hostile URL"
        return super().socket(family)
