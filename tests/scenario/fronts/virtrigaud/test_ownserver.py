"""VirtRigaud's machines of a Provider of type qemu on a whole host in virtual time: they are KubeVirt's, on the server itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock_drivers import catalog
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import FakeHost

Data = dict[str, Any]
API = "infra.virtrigaud.io/v1beta1"
IMAGE = "http://images.example/cloud.qcow2"


def made(kind: str, name: str, **spec: Any) -> Data:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


WORLD = (
    made("Provider", "here", type="qemu", endpoint="qemu:///system", credentialSecretRef={"name": "none"}, runtime={"image": "none:1"}),
    made("VMClass", "small", cpu=1, memory="512Mi", diskDefaults={"size": "10Gi"}),
    made("VMImage", "cloud", source={"http": {"url": IMAGE}}),
)
MACHINE = made("VirtualMachine", "web", providerRef={"name": "here"}, classRef={"name": "small"}, imageRef={"name": "cloud"})


class Stage:
    def __init__(self, host: FakeHost) -> None:
        self.host = host

    async def make(self, *bodies: Data) -> None:
        for body in bodies:
            plural = {"VMClass": "vmclasses"}.get(body["kind"], body["kind"].lower() + "s")
            reply = await self.host.api.post(f"/apis/{API}/namespaces/default/{plural}", body)
            assert reply.status == 201, reply.data

    async def get(self, plural: str = "virtualmachines", name: str = "web") -> Data:
        reply = await self.host.api.get(f"/apis/{API}/namespaces/default/{plural}/{name}")
        return dict(reply.data) if reply.status == 200 else {}

    async def said(self) -> tuple[str, str, str]:
        conditions = (await self.get()).get("status", {}).get("conditions") or []
        found: Data = next((each for each in conditions if each["type"] == "Ready"), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def until(self, phase: str, seconds: float = 600.0) -> Data:
        try:
            async with asyncio.timeout(seconds):
                while (await self.get()).get("status", {}).get("phase") != phase or (await self.said())[0] != "True":
                    await asyncio.sleep(1)
        except TimeoutError:
            raise AssertionError(f"not {phase}: {(await self.get()).get('status')}") from None
        return dict((await self.get())["status"])

    async def kubevirt(self) -> list[Data]:
        reply = await self.host.api.get("/apis/kubevirt.io/v1/namespaces/default/virtualmachines")
        return list(reply.data["items"])


@run_by(virtualtime.run)
async def test_a_machine_lives_on_this_server(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        host.engine.images.offer(IMAGE)
        stage = Stage(host)
        await stage.make(*WORLD, MACHINE)
        status = await stage.until("Running")
        assert status["powerState"] == "On" and status["currentResources"] == {"cpu": 1, "memoryMiB": 512}
        (vm,) = await stage.kubevirt()
        assert vm["status"]["printableStatus"] == "Running"
        path = f"/apis/{API}/namespaces/default/virtualmachines/web"
        reply = await host.api.merge(path, {"spec": {"powerState": "Off"}})
        assert reply.status == 200
        await stage.until("Stopped")
        (vm,) = await stage.kubevirt()
        assert vm["status"]["printableStatus"] == "Stopped"
        assert (await host.api.delete(path)).status == 200
        async with asyncio.timeout(300):
            while await stage.get():
                await asyncio.sleep(1)
        assert await stage.kubevirt() == []


@pytest.mark.spec("virtrigaud", 72)
@pytest.mark.parametrize("type", ["firecracker", "libvirt", "vsphere"])
@run_by(virtualtime.run)
async def test_a_type_without_a_driver_is_said(tmp_path: Path, type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is served apart, and drivers whose library is not installed."""
    monkeypatch.setattr(catalog, "find_spec", lambda name: None)
    async with FakeHost(tmp_path) as host:
        stage = Stage(host)
        ends = {"libvirt": "qemu+ssh://root@lab/system"}.get(type, "https://lab")
        body = made("Provider", "here", type=type, endpoint=ends, credentialSecretRef={"name": "none"}, runtime={"image": "none:1"})
        await stage.make(body, *WORLD[1:], MACHINE)
        await asyncio.sleep(60)
        status = (await stage.get("providers", "here"))["status"]
        ready = next(each for each in status["conditions"] if each["type"] == "ProviderRuntimeReady")
        assert (ready["status"], ready["reason"], status["healthy"]) == ("False", "DriverMissing", False)
        assert type in ready["message"]
        said = await stage.said()
        assert said[:2] == ("False", "ProviderError") and type in said[2]
