"""Gives the guest of a fork an identity of its own (docs/design/0037-warm-forks.md).

    read     QEMU reads the memory of the source; the network interfaces are unplugged    the record of the run has the identity
    go on    the guest runs, and has no network
    agent    the guest gets a name, a machine id, host keys, entropy, the time, and MAC addresses
    plug     the interfaces are plugged in, and the guest asks for addresses
    done     the record has no identity any more

After a kill of Paddock in between, the record still has the identity, and the agent does all of it once more.
"""

import secrets
from pathlib import Path

from paddock.base.errors import PaddockError
from paddock.engine.machine import migration
from paddock.engine.machine.agent import Agent
from paddock.engine.machine.argv import names
from paddock.engine.machine.errors import StartFailed
from paddock.engine.machine.forks import GuestIdentity
from paddock.engine.machine.owner import MachineOwner

SECONDS = 60.0
_CHECK_SECONDS = 10.0
# Exit codes of `identity.sh`.
_WHY = {
    3: "a network interface in the guest does not take another MAC address",
    4: "its kernel would draw the same random numbers as the source's: it cannot be made to reseed",
}


class GuestIdentities:
    """The identity of one machine's guest, as long as it has that of another machine."""

    def __init__(self, owner: MachineOwner, agent: Agent) -> None:
        self._owner = owner
        self._agent = agent
        self._busy = False

    @property
    def due(self) -> bool:
        """The guest takes itself for that of another machine."""
        return self._owner.record.identity is not None

    async def restore(self, path: Path) -> None:
        """Read the state of a machine; unplug the network interfaces of a fork before its guest runs."""
        await migration.restore(self._owner, path)
        if self.due:
            await self._plug(up=False)

    async def give(self) -> bool:
        """Give the guest its identity; return whether it has one now. What failed is tried again when its agent comes back."""
        owner, identity = self._owner, self._owner.record.identity
        if identity is None or self._busy:
            return identity is None
        self._busy = True
        try:
            await change(self._agent, owner.id, identity, owner.surroundings.clock.seconds())
            await self._plug(up=True)
            await lease(self._agent, owner.id, identity)
        except PaddockError as error:
            owner.observe(detail=f"the fork has no network, because its guest has the identity of its source: {error}")
            return False
        finally:
            self._busy = False
        owner.save(identity=None, clock_due=False)
        owner.observe(detail="")
        return True

    async def _plug(self, *, up: bool) -> None:
        """Change the links in QEMU. The config has them as they are to be."""
        for nic in self._owner.config.nics:
            if nic.link_up:
                await self._owner.execute("set_link", {"name": names.nic(nic.name), "up": up})


# --- in the guest -----------------------------------------------------------------------------------------------------------


async def check(agent: Agent, who: str) -> None:
    """Raise `StartFailed` if a guest could not be given another identity. Nothing is changed in it."""
    await _run(agent, who, "identity.sh", ["", "check"], seconds=_CHECK_SECONDS)


async def change(agent: Agent, who: str, identity: GuestIdentity, now: float) -> None:
    """Give a guest the name, the keys, the entropy and the MAC addresses of an identity, and the time."""
    macs = [f"{before}={own}" for before, own in identity.macs.values() if before != own]
    await _run(agent, who, "identity.sh", [identity.hostname, str(int(now)), *macs], f"seed={secrets.token_hex(64)}\n".encode())


async def lease(agent: Agent, who: str, identity: GuestIdentity) -> None:
    """Have a guest ask for new addresses."""
    if macs := [own for _, own in identity.macs.values()]:
        await _run(agent, who, "lease.sh", macs)


async def _run(agent: Agent, who: str, script: str, words: list[str], before: bytes = b"", *, seconds: float = SECONDS) -> None:
    text = before + Path(__file__).with_name(script).read_bytes()
    done = await agent.execute(["/bin/sh", "-s", "--", *words], seconds, text)
    if done.code:
        why = _WHY.get(done.code, f"{script} ended with {done.code} in the guest")
        raise StartFailed(f"cannot give machine {who} an identity of its own", why=why)
