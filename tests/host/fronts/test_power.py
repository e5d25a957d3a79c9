"""Run strategies with real guests: what follows when a guest powers off, when QEMU is killed, and when a run is deleted."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from paddock.kubernetes.client.errors import Conflict
from tests.coroutines import played
from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, machine, phase

pytestmark = pytest.mark.needs("qemu")


@pytest.fixture
def image(work: Path, registry: Registry) -> str:
    """The guest of 512 bytes as a containerDisk."""
    return registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img")})


async def begin(talk: Talk, image: str, **strategies: str) -> dict[str, str]:
    """Make machines; the UIDs of their runs."""
    for name, strategy in strategies.items():
        await talk.make(VMS, machine(name, image, strategy, terminationGracePeriodSeconds=0))
    return {name: (await talk.running(name))["metadata"]["uid"] for name in strategies}


async def power_off(talk: Talk, name: str) -> None:
    """Let the guest end itself."""
    async with talk.console(name) as console:
        await console.until(b"R")
        await console.write(b"p")


def kill(talk: Talk, uid: str) -> None:
    """End QEMU from outside."""
    (pid,) = talk.host.qemus()[uid]
    os.kill(pid, signal.SIGKILL)


async def delete_run(talk: Talk, name: str) -> None:
    """Delete the instance of a machine."""
    await talk.client.request("DELETE", f"{VMIS}/{name}")


async def another(talk: Talk, name: str, former: str) -> str:
    """The UID of the next run, when its guest runs."""

    def runs(found: Data) -> bool:
        return phase(found) == "Running" and found["metadata"]["uid"] != former

    return str((await talk.until(f"{VMIS}/{name}", runs, f"{name} runs anew"))["metadata"]["uid"])


async def until_word(talk: Talk, name: str, word: str) -> None:
    """Wait until a machine says this of itself."""
    await talk.until(f"{VMS}/{name}", lambda found: found.get("status", {}).get("printableStatus") == word, f"{name} is {word}")


@pytest.mark.spec("kubermatic", 39, 40)
@pytest.mark.spec("kubevirt", 15, 16, 19)
@played
async def test_always_and_rerun_on_failure(talk: Talk, /, image: str) -> None:
    runs = await begin(talk, image, always="Always", rerun="RerunOnFailure", deleted="RerunOnFailure")
    await power_off(talk, "always")
    kill(talk, runs["rerun"])
    await delete_run(talk, "deleted")
    second = await another(talk, "always", runs["always"])
    await another(talk, "rerun", runs["rerun"])
    await power_off(talk, "rerun")
    kill(talk, second)
    third = await another(talk, "always", second)
    for name in ("rerun", "deleted"):
        await until_word(talk, name, "Stopped")
    # A wrong start would come at once.
    await asyncio.sleep(3)
    assert [await talk.get(f"{VMIS}/{name}") for name in ("rerun", "deleted")] == [{}, {}]
    assert list(talk.host.qemus()) == [third]


@pytest.mark.spec("kubermatic", 42)
@pytest.mark.spec("kubevirt", 17, 25)
@played
async def test_once_is_once(talk: Talk, /, image: str) -> None:
    runs = await begin(talk, image, ended="Once", killed="Once", deleted="Once")
    await power_off(talk, "ended")
    kill(talk, runs["killed"])
    await delete_run(talk, "deleted")
    again = await another(talk, "deleted", runs["deleted"])
    for name, end in (("ended", "Succeeded"), ("killed", "Failed")):
        await talk.until(f"{VMIS}/{name}", lambda found, end=end: phase(found) == end, f"{name} is {end}")  # type: ignore[misc]
        await until_word(talk, name, "Stopped")
    await asyncio.sleep(3)
    for name in ("ended", "killed"):
        assert (await talk.get(f"{VMIS}/{name}"))["metadata"]["uid"] == runs[name]
    assert list(talk.host.qemus()) == [again]
    passed = (await talk.get(f"{VMIS}/ended"))["status"]["phaseTransitionTimestamps"]
    assert [each["phase"] for each in passed] == ["Pending", "Scheduling", "Scheduled", "Running", "Succeeded"]
    times = [each["phaseTransitionTimestamp"] for each in passed]
    assert times == sorted(times)


@pytest.mark.spec("kubermatic", 41, 43)
@pytest.mark.spec("kubevirt", 18)
@played
async def test_manual_obeys_and_always_refuses_to_be_started(talk: Talk, /, image: str) -> None:
    runs = await begin(talk, image, always="Always")
    await talk.make(VMS, machine("manual", image, "Manual", terminationGracePeriodSeconds=0))
    await until_word(talk, "manual", "Stopped")
    with pytest.raises(Conflict, match="already running"):
        await talk.verb("always", "start")
    await talk.verb("always", "stop")
    await until_word(talk, "always", "Stopped")
    assert (await talk.get(f"{VMS}/always"))["spec"]["runStrategy"] == "Halted"
    assert runs["always"] not in talk.host.qemus()
    with pytest.raises(Conflict, match="VM is not running"):
        await talk.verb("always", "stop")
    assert await talk.get(f"{VMIS}/manual") == {}
    await talk.verb("manual", "start")
    first = (await talk.running("manual"))["metadata"]["uid"]
    await power_off(talk, "manual")
    await until_word(talk, "manual", "Stopped")
    await asyncio.sleep(3)
    ended = await talk.get(f"{VMIS}/manual")
    assert (ended["metadata"]["uid"], phase(ended)) == (first, "Succeeded") and talk.host.qemus() == {}
    await talk.verb("manual", "start")
    await another(talk, "manual", first)
