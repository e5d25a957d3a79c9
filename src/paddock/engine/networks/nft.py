"""Runs `nft -f -`: a text is one transaction, which happens or does not."""

from paddock.engine import namespace
from paddock.engine.host import subprocesses
from paddock.engine.networks import hostnetwork
from paddock.engine.networks.errors import NetworkBusy, NetworkUnusable

_SECONDS = 30.0


async def run(text: str) -> None:
    """Carry out a text; raises `NetworkBusy` with what nft says of it."""
    program = hostnetwork.nft()
    if program is None:
        raise NetworkUnusable("cannot set packet filters", why="nft is not installed", fix="install nftables")
    _, said, code = await (namespace.run if namespace.holder() else subprocesses.run)([program, "-f", "-"], text.encode(), _SECONDS)
    if code:
        first = said.decode(errors="replace").strip().splitlines()
        raise NetworkBusy("cannot set packet filters", why=first[0] if first else f"nft ended with {code}")
