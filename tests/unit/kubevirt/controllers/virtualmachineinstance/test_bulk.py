"""Many machines are deleted at once: each guest has its own grace, and none waits for what another one leaves behind."""

import asyncio

import pytest

from paddock.engine.networks.nics import AttachedNic, NicSpec
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, Networks
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import VMIS, Host

MANY, GRACE, LITTLE = 150, 30, 1.5
FILTER_SECONDS = 0.5
CARD: Data = {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}, "networks": [{"name": "default", "pod": {}}]}


class BusyNetworks(Networks):
    """Networks of a busy host: a write of the packet filter takes a while, and serves all who wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._writing = asyncio.Lock()
        self._wanted = self._written = 0

    async def plug(self, card: NicSpec) -> AttachedNic:
        nic = await super().plug(card)
        await self._write()
        return nic

    async def unplug(self, owner: str, name: str) -> None:
        await super().unplug(owner, name)
        await self._write()

    async def _write(self) -> None:
        self._wanted += 1
        wanted = self._wanted
        async with self._writing:
            if self._written < wanted:
                now = self._wanted
                await asyncio.sleep(FILTER_SECONDS)
                self._written = now


class Deletions:
    """The times at which machines were deleted, and those at which their guests ended."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ended: dict[str, float] = {}
        self._deleted: dict[str, float] = {}
        host.engine.machines.listen(self._changed)

    def _changed(self, id: str) -> None:
        machine = self._host.engine.machines.get(id)
        if machine is not None and machine.observed.phase == "ended":
            self._ended.setdefault(id, asyncio.get_running_loop().time())

    async def delete(self, name: str, uid: str) -> None:
        self._deleted[uid] = asyncio.get_running_loop().time()
        assert (await self._host.api.delete(f"{VMIS}/{name}")).status == 200

    def seconds(self, uid: str) -> float:
        """Return the time from a deletion to the end of the guest."""
        return self._ended[uid] - self._deleted[uid]


async def run_many(host: Host) -> dict[str, str]:
    """Start the machines, those with an even number with a grace; return their UIDs by their names."""
    host.engine.networks = BusyNetworks()
    await host.again()
    made = {}
    for number in range(MANY):
        grace = 0 if number % 2 else GRACE
        spec: Data = {"domain": {"memory": {"guest": "16Mi"}}, "terminationGracePeriodSeconds": grace, **CARD}
        made[f"m{number}"] = str((await host.make(f"m{number}", **spec))["metadata"]["uid"])
    await asyncio.sleep(MANY * FILTER_SECONDS)
    for uid in made.values():
        assert host.machine(uid).observed.phase == "running"
        host.machine(uid).deaf = True
    return made


@pytest.mark.spec("kubevirt", 149)
@played
async def test_a_guest_does_not_outlive_its_grace_beside_many_that_end(host: Host, /) -> None:
    made = await run_many(host)
    deletions = Deletions(host)
    for name, uid in made.items():
        await deletions.delete(name, uid)
        await asyncio.sleep(0.02)
    await asyncio.sleep(GRACE + 5)
    late = {
        name: seconds for name, uid in made.items() if (seconds := deletions.seconds(uid)) > (0 if int(name[1:]) % 2 else GRACE) + LITTLE
    }
    assert late == {}
    assert (await host.api.get(VMIS)).data["items"] == []
    assert host.engine.networks.cards == {}
