"""A certificate for `localhost` that signs itself (valid until 2125), for the server's side and for a client that trusts it."""

import ssl
from pathlib import Path

from coatcheck.provider.connecting import secure_context

PEM = Path(__file__).with_name("localhost.pem")


def server_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


def trusting() -> ssl.SSLContext:
    context = secure_context()
    context.load_verify_locations(PEM)
    return context
