"""A whole host with the front door of Vitistack, in virtual time: what users do, and what they see."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import virtualtime
from tests.kit.engine.fakehost import PLURALS, FakeHost

Data = dict[str, Any]
GROUP = "vitistack.io/v1alpha1"
PLURALS.update(
    Machine="machines",
    MachineTemplate="machinetemplates",
    NetworkConfiguration="networkconfigurations",
    NetworkAttachmentDefinition="network-attachment-definitions",
    StorageClass="storageclasses",
)
VERSIONS = {
    "Machine": GROUP,
    "MachineTemplate": GROUP,
    "NetworkConfiguration": GROUP,
    "NetworkAttachmentDefinition": "k8s.cni.cncf.io/v1",
    "VirtualMachine": "kubevirt.io/v1",
    "VirtualMachineInstance": "kubevirt.io/v1",
    "DataVolume": "cdi.kubevirt.io/v1beta1",
}
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
FINALIZER = "machine.vitistack.io/cleanup"


class Vitistack(FakeHost):
    """One host, seen through its Machines."""

    @asynccontextmanager
    async def recorded(self, name: str = "web") -> AsyncIterator[list[Data]]:
        """Every state of a machine while this lasts, as a watch shows it."""
        states: list[Data] = []
        path = f"/apis/{GROUP}/namespaces/default/machines?watch=true&fieldSelector=metadata.name%3D{name}"
        async with self.api.watch(path) as events:

            async def follow() -> None:
                while True:
                    states.append((await events.next(1e6))["object"])

            following = asyncio.create_task(follow())
            try:
                yield states
                await asyncio.sleep(1)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def __aenter__(self) -> "Vitistack":
        await super().__aenter__()
        return self

    async def seen(self, kind: str, name: str) -> Data:
        """An object; empty when it is not there."""
        return await self.get(kind, VERSIONS.get(kind, "v1"), name)

    async def machine(self, name: str = "web") -> Data:
        """A Machine."""
        return await self.seen("Machine", name)

    async def phase(self, name: str = "web") -> str:
        """The phase of a Machine."""
        return str((await self.machine(name)).get("status", {}).get("phase", ""))

    async def condition(self, kind: str, name: str = "web") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        for each in (await self.machine(name)).get("status", {}).get("conditions", ()):
            if each["type"] == kind:
                return each["status"], each.get("reason", ""), each.get("message", "")
        return "", "", ""

    async def up(self, name: str = "web", seconds: float = 30.0) -> Data:
        """The Machine, when it runs."""
        await asyncio.sleep(seconds)
        found = await self.machine(name)
        assert found.get("status", {}).get("phase") == "Running", found.get("status")
        return found

    async def merge(self, kind: str, name: str, patch: Data) -> None:
        """Change an object."""
        reply = await self.api.merge(self.place(kind, VERSIONS.get(kind, "v1"), name=name), patch)
        assert reply.status == 200, reply.data

    async def drop(self, kind: str, name: str) -> None:
        """Delete an object."""
        await self.delete(kind, VERSIONS.get(kind, "v1"), name)

    async def names(self, kind: str, selector: str = "") -> list[str]:
        """The names of all objects of a kind."""
        query = f"?labelSelector={selector}" if selector else ""
        reply = await self.api.get(self.place(kind, VERSIONS.get(kind, "v1")) + query)
        return sorted(each["metadata"]["name"] for each in reply.data["items"])

    async def storage_class(self, name: str, **more: Any) -> None:
        """Make a class of this host's storage."""
        body = {"metadata": {"name": name}, "provisioner": "paddock.dev/directory", "volumeBindingMode": "Immediate", **more}
        reply = await self.api.post(CLASSES, body)
        assert reply.status == 201, reply.data

    async def revision(self) -> int:
        """Return the number of all writes."""
        return int((await self.api.get("/api/v1/configmaps")).data["metadata"]["resourceVersion"])

    def metrics(self) -> dict[str, float]:
        """All samples."""
        lines = self.control.program.machinery.metrics.text().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if not name.startswith("#")}


def machine(name: str = "web", **spec: Any) -> Data:
    """A Machine, small when nothing else is said."""
    metadata = {"name": name, **spec.pop("metadata", {})}
    return {"apiVersion": GROUP, "kind": "Machine", "metadata": metadata, "spec": {"template": "small", **spec}}


def network(name: str = "prod", **spec: Any) -> Data:
    """A NetworkConfiguration."""
    return {"apiVersion": GROUP, "kind": "NetworkConfiguration", "metadata": {"name": name}, "spec": {"bridge": "br0", **spec}}


Script = Callable[[Vitistack], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with a fresh host; returns how long it took there."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with Vitistack(tmp_path) as host:
                await script(host)

        return virtualtime.run(inside())

    return run
