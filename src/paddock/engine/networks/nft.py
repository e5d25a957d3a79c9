"""Runs `nft -f -`: a text is one transaction, which happens or does not."""

import asyncio

from paddock.engine.networks import hostnetwork
from paddock.engine.networks.errors import NetworkBusy, NetworkUnusable

_SECONDS = 30.0


async def run(text: str) -> None:
    """Carry out a text; raises `NetworkBusy` with what nft says of it."""
    program = hostnetwork.nft()
    if program is None:
        raise NetworkUnusable("cannot set packet filters", why="nft is not installed", fix="install nftables")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, "-f", "-", stdin=pipe, stdout=asyncio.subprocess.DEVNULL, stderr=pipe)
    try:
        async with asyncio.timeout(_SECONDS):
            _, said = await process.communicate(text.encode())
    except TimeoutError as error:
        raise NetworkBusy("cannot set packet filters", why=f"nft did not end within {_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        first = said.decode(errors="replace").strip().splitlines()
        raise NetworkBusy("cannot set packet filters", why=first[0] if first else f"nft ended with {process.returncode}")
