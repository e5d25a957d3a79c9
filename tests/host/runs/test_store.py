"""The store is copied and put back while machines run, and Paddock is exchanged for another one."""

import asyncio
from pathlib import Path

import pytest

from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import EVENTS, VMIS, VMS, Host, Talk, machine

pytestmark = pytest.mark.needs("qemu")
NAMES = ("one", "two")


async def _runs(talk: Talk) -> dict[str, tuple[str, str, str]]:
    """Return the run of each machine, and the states of its objects."""
    found = {}
    for name in NAMES:
        instance, owner = await talk.get(f"{VMIS}/{name}"), await talk.get(f"{VMS}/{name}")
        found[name] = (instance["metadata"]["uid"], instance["status"]["phase"], owner["status"]["printableStatus"])
    return found


async def _before(host: Host, image: str, copy: Path) -> dict[str, tuple[str, str, str]]:
    async with asyncio.timeout(200), host.client() as client:
        talk = Talk(host, client)
        for name in NAMES:
            await talk.make(VMS, machine(name, image))
        for name in NAMES:
            await talk.running(name)
            await talk.until(f"{VMS}/{name}", lambda found: found["status"].get("ready"), "it is ready")
        runs = await _runs(talk)
        await asyncio.to_thread(host.command, "backup", f"--dir={host.root}", str(copy))
        # Who was made since is not in the copy; nor is what was written of the others.
        await talk.make(VMS, machine("late", image))
        await talk.running("late")
        await talk.change(f"{VMS}/one", {"metadata": {"labels": {"since": "the-copy"}}})
        return runs


async def _after(host: Host, runs: dict[str, tuple[str, str, str]]) -> None:
    async with asyncio.timeout(200), host.client() as client:
        talk = Talk(host, client)
        wanted = {uid for uid, _, _ in runs.values()}
        while set(host.qemus()) != wanted:
            await asyncio.sleep(0.1)
        # Whatever it would do to them it would do soon.
        await asyncio.sleep(3)
        assert await _runs(talk) == runs
        assert (await talk.get(f"{VMS}/one"))["metadata"].get("labels") is None
        assert (await talk.get(f"{VMS}/late")) == {}
        told = (await talk.get(EVENTS))["items"]
        assert [each for each in told if each["type"] == "Warning" or each["reason"] == "Stopped"] == []
        for name in NAMES:
            async with talk.console(name) as console:
                await console.write(b"x")
                await console.until(b"x")


@pytest.mark.spec("kubevirt", 108, "Backup and restore of the engine's store")
def test_a_backup_is_put_back_while_machines_run(host: Host, work: Path, registry: Registry) -> None:
    image = registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img")})
    copy = work / "copy.db"

    host.start()
    runs = asyncio.run(_before(host, image, copy))
    processes = {uid: host.qemus()[uid] for uid, _, _ in runs.values()}
    host.stop()
    for each in host.root.glob("store.db*"):
        each.unlink()
    host.command("backup", "restore", f"--dir={host.root}", str(copy))
    host.start()
    asyncio.run(_after(host, runs))
    assert host.qemus() == processes, "the same guests run on"
    # Another Paddock takes the place of this one.
    host.stop()
    assert host.qemus() == processes
    host.start()
    asyncio.run(_after(host, runs))
    assert host.qemus() == processes
    # And obeyed is the new one.
    asyncio.run(_stop(host))


async def _stop(host: Host) -> None:
    async with asyncio.timeout(60), host.client() as client:
        talk = Talk(host, client)
        for name in NAMES:
            await talk.verb(name, "stop")
            await talk.until(f"{VMS}/{name}", lambda found: found["status"]["printableStatus"] == "Stopped", "it is down")
    assert host.qemus() == {}
