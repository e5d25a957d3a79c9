"""Runs nft. A text for `nft -f -` is one transaction, which happens or does not."""

from paddock.engine import namespace
from paddock.engine.host import subprocesses
from paddock.engine.networks import hostnetwork
from paddock.engine.networks.errors import NetworkBusy, NetworkUnusable

_SECONDS = 30.0


async def run(text: str) -> None:
    """Carry out a text; raises `NetworkBusy` with what nft says of it."""
    await _done("-f", "-", text=text)


async def tables(family: str) -> list[str]:
    """Return the names of the tables of a family; raises `NetworkBusy`."""
    lines = (await _done("list", "tables", family)).splitlines()
    return [words[2] for line in lines if len(words := line.split()) == 3]


async def table(family: str, name: str) -> str:
    """Return what a table says, with numbers in place of names; raises `NetworkBusy`, also when there is none."""
    return await _done("--numeric", "list", "table", family, name)


async def _done(*words: str, text: str = "") -> str:
    program = hostnetwork.nft()
    if program is None:
        raise NetworkUnusable("cannot set packet filters", why="nft is not installed", fix="install nftables")
    run = namespace.run if namespace.holder() else subprocesses.run
    out, said, code = await run([program, *words], text.encode(), _SECONDS)
    if code:
        first = said.decode(errors="replace").strip().splitlines()
        raise NetworkBusy("cannot set packet filters", why=first[0] if first else f"nft ended with {code}")
    return out.decode(errors="replace")
