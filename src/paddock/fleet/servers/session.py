"""A server that a command or the console talks to."""

import msgspec

from paddock.base.clock import Clock
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client


class ServerSession(msgspec.Struct, frozen=True):
    """A server, and what a command needs to talk to it. `namespace` is the one that the user means."""

    client: Client
    access: Access
    namespace: str
    clock: Clock
