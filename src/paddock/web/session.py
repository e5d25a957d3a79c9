"""A session of a user: the identity that acts, and what it needs to talk to the server."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from paddock.base.clock import Clock
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client
from paddock.web.answers.rows import WebHostCheck
from paddock.web.images import NoImages, WebImageSource
from paddock.web.live.watches import WatchedSet
from paddock.web.longwork import LongWork
from paddock.web.rights import RightsReview

CheckSource = Callable[[], Awaitable[list[WebHostCheck]]]


async def no_checks() -> list[WebHostCheck]:
    """Find nothing; a console that runs away from its server cannot look at that host."""
    return []


class WebHost(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge of the program around the console, beyond the API. `checks` is what `paddock doctor` finds."""

    # the console runs on the host of Paddock's own server
    local: bool = False
    checks: CheckSource = no_checks
    images: WebImageSource = NoImages()
    # where that server keeps everything; None on another host
    directory: Path | None = None


class WebSession(msgspec.Struct, frozen=True, kw_only=True):
    """One signed-in user. All that handlers do, they do with `client`, hence with the rights of this user."""

    # what distinguishes sessions that may share a live set; nothing to show to anybody
    identity: str
    # empty: the user of the kubeconfig
    user: str
    access: Access
    client: Client
    namespace: str
    clock: Clock
    live: WatchedSet
    host: WebHost
    rights: RightsReview
    # what goes on although the page that asked for it went away
    work: LongWork = msgspec.field(default_factory=LongWork)

    @property
    def server(self) -> ServerSession:
        """The connection as the functions of commands take it."""
        return ServerSession(self.client, self.access, self.namespace, self.clock)
