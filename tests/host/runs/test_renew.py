"""After an upgrade of the host's QEMU, with a whole Paddock: machines say that they are outdated, and are moved without a reboot.

There is one QEMU here. What a machine notes of its own is made to be of another file, as it is after an upgrade.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.host.runs.conftest import EVENTS, PROMPT, VMIS, VMS, Data, Host, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")
T = TypeVar("T")
_LABEL = "kubevirt.io/outdatedLauncherImage"


def _upgraded(host: Host) -> int:
    """Paddock ends, QEMU is replaced, Paddock is started; returns the machine's process."""
    host.stop()
    file = next(host.root.glob("engine/machines/*/process.json"))
    record: Data = json.loads(file.read_bytes())
    record["program"]["time"] -= 1
    file.write_text(json.dumps(record))
    host.start()
    return int(record["pid"])


def _process(host: Host) -> int:
    record: Data = json.loads(next(host.root.glob("engine/machines/*/process.json")).read_bytes())
    assert "renewal" not in record or record["renewal"] is None
    return int(record["pid"])


def test_an_upgrade_is_noticed_and_carried_out_without_a_reboot(host: Host, tiny_disk_image: str) -> None:
    host.start()
    uptime = _with(host, lambda talk: _made(talk, tiny_disk_image))
    old = _upgraded(host)
    _with(host, lambda talk: _is_renewed(talk, old, uptime))
    new = _process(host)
    # It is the machine's process for whoever comes next.
    host.kill()
    host.start()
    _with(host, lambda talk: talk.running("web"))
    assert _process(host) == new and list(host.qemus().values()) == [[new]]
    _with(host, lambda talk: _is_started_anew(talk, new))


def _with(host: Host, script: Callable[[Talk], Awaitable[T]]) -> T:
    """Each start of the host has an address of its own."""

    async def inside() -> T:
        async with asyncio.timeout(300), host.client() as client:
            return await script(Talk(host, client))

    return asyncio.run(inside())


async def _made(talk: Talk, image: str) -> float:
    await talk.make(VMS, machine("web", image, domain={"memory": {"guest": "256Mi"}}, terminationGracePeriodSeconds=0))
    await talk.running("web")
    async with talk.console("web") as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        await console.shell("echo kept > /tmp/kept; echo on disk > /on-disk; sync")
        return float((await console.shell("cat /proc/uptime")).split()[0])


async def _is_renewed(talk: Talk, old: int, uptime: float) -> None:
    seen = await talk.until(f"{VMIS}/web", lambda found: _LABEL in found["metadata"]["labels"], "it says that it is outdated", 120)
    assert "paddock renew web -n default" in condition(seen, "Outdated")["message"]
    await talk.until(f"{VMS}/web", lambda found: condition(found, "Outdated").get("status") == "True", "its machine says so, too")
    command = ("renew", "--outdated", "-A", "--kubeconfig", str(talk.host.root / "kubeconfig"))
    said = await asyncio.to_thread(talk.host.command, *command)
    print(said)
    assert said.startswith("default/web: QEMU ") and "stood still for" in said
    assert _process(talk.host) != old and not Path(f"/proc/{old}/exe").exists()
    seen = await talk.until(f"{VMIS}/web", lambda found: _LABEL not in found["metadata"]["labels"], "it is not outdated any more")
    assert condition(seen, "Outdated") == {} and seen["status"]["phase"] == "Running"
    events = await talk.until(EVENTS, _renewals, "an event tells of it")
    assert len(_renewals(events)) == 1 and "stood still" in _renewals(events)[0]["message"]
    async with talk.console("web") as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        assert (await console.shell("cat /tmp/kept /on-disk")) == "kept\non disk\n"
        assert float((await console.shell("cat /proc/uptime")).split()[0]) > uptime


def _renewals(events: Data) -> list[Data]:
    return [each for each in events["items"] if each["reason"] == "Renewed"]


async def _is_started_anew(talk: Talk, pid: int) -> None:
    before = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
    os.kill(pid, signal.SIGKILL)
    await talk.until(f"{VMIS}/web", lambda found: found.get("metadata", {}).get("uid", before) != before, "it is started anew", 120)
