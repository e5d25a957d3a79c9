"""A damaged record of one disk stops that disk: the guests of a real host are adopted, and the others are started and stopped."""

import asyncio

import pytest

from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, condition, machine, phase

pytestmark = pytest.mark.needs("qemu")
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PAUSE = VMIS.replace("/apis/", "/apis/subresources.") + "/web/pause"


def _claim(name: str) -> Data:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def _on(name: str) -> Data:
    return machine(name, volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": name}}])


@pytest.mark.spec("kubevirt", 141, 142)
def test_one_damaged_record_stops_one_disk(host: Host) -> None:
    async def begun() -> str:
        async with host.client() as client:
            talk = Talk(host, client)
            await talk.make(VMS, machine("web"))
            for name in ("bad", "good"):
                await talk.make(CLAIMS, _claim(name))
            await talk.running("web")
            await talk.until(f"{CLAIMS}/good", lambda found: phase(found) == "Bound")
            found = await talk.until(f"{CLAIMS}/bad", lambda found: phase(found) == "Bound")
            uid = str(found["metadata"]["uid"])
            while not (host.root / "engine" / "volumes" / uid / "volume.json").exists():
                await asyncio.sleep(0.05)
            return uid

    async def again() -> None:
        async with host.client() as client:
            talk = Talk(host, client)
            await talk.client.request("GET", "/readyz")
            await talk.client.request("PUT", PAUSE, body=b"{}")
            await talk.make(VMS, _on("good"))
            await talk.running("good")
            await talk.make(VMS, _on("bad"))
            waits = await talk.until(f"{VMIS}/bad", lambda found: condition(found, "Ready").get("reason") == "VolumeDamaged", "it waits")
            assert str(record) in condition(waits, "Ready")["message"]
            lost = await talk.until(f"{CLAIMS}/bad", lambda found: phase(found) == "Lost", "its claim says so")
            assert str(record) in lost["status"]["conditions"][0]["message"]
            assert record.read_bytes() == b"\xff{"
            record.write_bytes(kept)
            await talk.running("bad")

    host.start()
    record = host.root / "engine" / "volumes" / asyncio.run(begun()) / "volume.json"
    host.kill()
    kept = record.read_bytes()
    record.write_bytes(b"\xff{")
    (host.root / "engine" / "pools.json").write_bytes(b"[")
    host.start()
    asyncio.run(again())
