"""Power, documents and cards of VirtRigaud's machines with a real guest: it shuts down when asked, and is cut off when it does not."""

from functools import partial

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played
from tests.host.drivers.test_effects import API, RIGAUD, WEB, holds, machine, world
from tests.host.drivers.test_kubevirt import ready
from tests.host.guests import Shelf
from tests.host.runs.conftest import EVENTS, VMIS, Data, Talk

pytestmark = pytest.mark.needs("qemu")
MAC = "02:00:5e:00:53:07"
LAN: Data = {"apiVersion": API, "kind": "VMNetworkAttachment", "metadata": {"name": "lan"}, "spec": {"network": {"type": "nat"}}}
USER_DATA = "#cloud-config\nhostname: rigged\nruncmd:\n- touch /run/from-user-data\n"
META_DATA = "local-hostname: from-meta-data\n"


def stopped(found: Data) -> bool:
    return found.get("status", {}).get("phase") == "Stopped" and holds("Ready", "True", found)


async def reasons(talk: Talk, kind: str = "VirtualMachine") -> list[str]:
    """The reasons of the events about the objects of a kind."""
    return [each["reason"] for each in (await talk.get(EVENTS))["items"] if each["involvedObject"]["kind"] == kind]


async def powered(talk: Talk, state: str) -> None:
    await talk.change(WEB, {"spec": {"powerState": state}})


@pytest.mark.spec("virtrigaud", 29, 32, 34, 36, 41, 48, 49, 50, 57)
@played
async def test_a_guest_gets_its_documents_shuts_down_and_is_cut_off(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    await world(talk, web.put(tiny_guest.disk))
    await talk.make(f"{RIGAUD}/vmnetworkattachments", LAN)
    await machine(
        talk,
        powerState="Off",
        networks=[{"name": "lan", "networkRef": {"name": "lan"}, "macAddress": MAC}],
        userData={"cloudInit": {"inline": USER_DATA}},
        metaData={"cloudInit": {"inline": META_DATA}},
        lifecycle={
            "gracefulShutdownTimeout": "40s",
            "postStart": {"exec": {"command": ["/bin/touch", "/run/started"]}},
            "preStop": {"exec": {"command": ["/bin/touch", "/data/stopping"]}},
        },
    )
    await talk.until(WEB, stopped, "it is made, and off", 180)
    assert await talk.get(f"{VMIS}/web") == {}
    await powered(talk, "On")
    await talk.until(WEB, partial(holds, "PostStart", "True"), "the hook has run", 180)
    async with talk.console("web") as console:
        await ready(console)
        assert (await console.shell("hostname")).strip() == "rigged"
        assert (await console.shell("ls /run/from-user-data /run/started")).split() == ["/run/from-user-data", "/run/started"]
        assert (await console.shell("cat /sys/class/net/eth0/address")).strip() == MAC
        # A guest that runs does not shrink.
        await talk.change(WEB, {"spec": {"resources": {"cpu": 1, "memoryMiB": 192}}})
        await talk.until(WEB, partial(holds, "RestartRequired", "True"), "the change waits")
    await powered(talk, "OffGraceful")
    await talk.until(WEB, stopped, "the guest has shut down", 120)
    said = await reasons(talk)
    assert said.count("ShuttingDown") == 1 and said.index("PreStopSucceeded") < said.index("ShuttingDown")
    assert "Deleted" not in await reasons(talk, "VirtualMachineInstance")
    # A guest that has become deaf loses its power.
    await powered(talk, "On")
    await talk.running("web", 120)
    async with talk.console("web") as console:
        await ready(console)
        memory = await console.shell("grep MemTotal /proc/meminfo")
        assert int(memory.split()[1]) > 130 * 1024
        assert (await console.shell("ls /data/stopping")).strip() == "/data/stopping"
        await talk.change(WEB, {"spec": {"lifecycle": {"gracefulShutdownTimeout": "3s"}}})
        await console.shell("killall acpid qemu-ga")
    await powered(talk, "OffGraceful")
    await talk.until(WEB, stopped, "its power is cut", 60)
    # The manager asks for a graceful end with its time, so KubeVirt's side cuts the power, and says so.
    assert "Deleted" in await reasons(talk, "VirtualMachineInstance")
