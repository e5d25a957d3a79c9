"""Warm forks with real guests and a real server: each goes on where its source was, and is a machine of its own."""

import asyncio
import time

import pytest

from tests.host.commands.test_memory_snapshots import _on_disk
from tests.host.commands.test_power import paddock
from tests.host.commands.test_suspend import _COUNT, _MEMORY, _with
from tests.host.runs.conftest import PROMPT, VMIS, VMS, Data, Host, Talk

pytestmark = pytest.mark.needs("qemu")
_CLONES = "/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones"
_SNAPSHOTS = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots"


async def _inside(talk: Talk, name: str, *commands: str) -> list[str]:
    async with talk.console(name) as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        return [(await console.shell(each)).strip() for each in commands]


def warm(name: str) -> Data:
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    target = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}
    metadata = {"name": name, "annotations": {"paddock.dev/warm": "true"}}
    return {
        "apiVersion": "clone.kubevirt.io/v1beta1",
        "kind": "VirtualMachineClone",
        "metadata": metadata,
        "spec": {"source": source, "target": target},
    }


async def identified(talk: Talk, name: str) -> Data:
    """Wait until the guest has told its agent, and Paddock, who it is."""

    def told(vmi: Data) -> bool:
        conditions = {each["type"]: each["status"] for each in (vmi or {}).get("status", {}).get("conditions", ())}
        return conditions.get("AgentConnected") == "True"

    return dict(await talk.until(f"{VMIS}/{name}", told))


@pytest.mark.spec("kubevirt", 236)
@pytest.mark.spec("kubevirt", 237)
@pytest.mark.spec("kubevirt", 240)
def test_forks_go_on_and_are_machines_of_their_own(host: Host, tiny_disk_image: str) -> None:
    async def script(talk: Talk) -> None:
        await talk.make(VMS, _on_disk(tiny_disk_image))
        await talk.running("web", 120)
        await identified(talk, "web")
        await _inside(talk, "web", _MEMORY, _COUNT, "echo before > /data/x; sync")
        sums, uptime = await _inside(talk, "web", "sha256sum /dev/shm/random", "cat /proc/uptime")
        began = time.monotonic()
        await talk.make(_CLONES, warm("fork"))
        vmi = await talk.until(f"{VMIS}/fork", lambda vmi: vmi and vmi["status"].get("phase") == "Running")
        print(f"running after {time.monotonic() - began:.2f} s")
        vmi = await identified(talk, "fork")
        print(f"itself after {time.monotonic() - began:.2f} s")
        print(vmi["status"])
        ask = ("sha256sum /dev/shm/random", "cat /proc/uptime", "hostname", "cat /sys/class/net/eth0/address", "cat /etc/machine-id", "cat /dev/shm/count", "ip -4 addr show eth0", "cat /data/x")
        one, two = await _inside(talk, "web", *ask), await _inside(talk, "fork", *ask)
        print(one, two)
        assert one[0] == two[0] == sums

    host.start()
    _with(host, script)
