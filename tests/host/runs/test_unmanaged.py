"""A guest whose `config.json` is damaged while Paddock is away lives on, and is managed again when the file is right."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")


def _reason(found: Data) -> str:
    return str(condition(found, "Ready").get("reason", ""))


@pytest.mark.spec("kubevirt", 138, 139, 140)
def test_a_guest_without_a_config_is_kept(host: Host) -> None:
    async def begun() -> tuple[str, list[int]]:
        async with host.client() as client:
            talk = Talk(host, client)
            await talk.make(VMS, machine("web"))
            found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it runs")
            uid = str(found["metadata"]["uid"])
            return uid, host.qemus()[uid]

    async def again(uid: str, pids: list[int], config: Path, kept: bytes) -> None:
        async with host.client() as client:
            talk = Talk(host, client)
            found = await talk.until(f"{VMIS}/web", lambda found: _reason(found) == "MachineUnmanaged", "it says so")
            assert str(config) in condition(found, "Ready")["message"]
            assert (found["metadata"]["uid"], host.qemus()) == (uid, {uid: pids})
            config.write_bytes(kept)
            found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it is managed")
            assert (found["metadata"]["uid"], host.qemus()) == (uid, {uid: pids})
            config.unlink()
            host.kill()
            host.start()
        async with host.client() as client:
            talk = Talk(host, client)
            await talk.until(f"{VMIS}/web", lambda found: _reason(found) == "MachineUnmanaged", "a file that is gone is no end, either")
            os.kill(pids[0], signal.SIGKILL)
            found = await talk.until(
                f"{VMIS}/web", lambda found: found.get("metadata", {}).get("uid") not in (None, uid), "another is started"
            )
            await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it runs")
            assert not config.parent.exists()

    host.start()
    uid, pids = asyncio.run(begun())
    host.kill()
    config = host.root / "engine" / "machines" / uid / "config.json"
    kept = config.read_bytes()
    config.write_bytes(b"\xff\xfe not JSON")
    host.start()
    asyncio.run(again(uid, pids, config, kept))
