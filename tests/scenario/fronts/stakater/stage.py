"""A host in virtual time with Stakater's machines on it, and what scripts do there.

The catalogue of images is one DataSource, rhel9, over http; `images.hold(IMAGE)` keeps its download under way.
"""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

from paddock.kubernetes.client.options import WriteOptions, json_patch
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.virtualmachine.targets import INSTANCES, MACHINE_DATA, MACHINES
from paddock.kubevirt.plan.machine import runrequests
from paddock.kubevirt.plan.machine.runrequests import RunPatches
from paddock.server.security.identity import Identities
from paddock.server.security.reviewing import Reviews
from paddock.server.security.tokens import AccountTokens
from tests.kit.engine.fakehost import FakeHost

Data = dict[str, Any]
GROUP = "/apis/infrastructure.stakater.com/v1"
IMAGE = "http://images.example/rhel9.qcow2"
CATALOGUE = "openshift-virtualization-os-images"
SOURCE: Data = {
    "apiVersion": "cdi.kubevirt.io/v1beta1",
    "kind": "DataSource",
    "metadata": {"name": "rhel9", "namespace": CATALOGUE},
    "spec": {"source": {"http": {"url": IMAGE}}},
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 emma@acme"
DISK: Data = {"name": "data", "size": "2Gi", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}


def front(name: str = "web", **parameters: Any) -> Data:
    """A machine, small enough for the host."""
    given = {"memory": {"guest": "512Mi"}, "storage": {"size": "10Gi"}, "runStrategy": "Always", **parameters}
    return {
        "apiVersion": "infrastructure.stakater.com/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"parameters": given},
    }


class Stage:
    """The host, and the API as a user sees it."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.api = host.api
        host.engine.images.offer(IMAGE)
        # Whether somebody may copy is asked for as on a whole server.
        reviews = Reviews(self.api.parts, Identities(()), self.api.rbac, cast(AccountTokens, None))
        self.api.api.subresources.update(reviews.handlers())

    async def open(self, *, catalogue: bool = True) -> "Stage":
        """The namespace of the images, and the image."""
        reply = await self.api.post("/api/v1/namespaces", {"metadata": {"name": CATALOGUE}})
        assert reply.status in (201, 409), reply.data
        if catalogue:
            await self.host.make(deepcopy(SOURCE))
            await asyncio.sleep(2)
        return self

    @staticmethod
    def path(name: str = "") -> str:
        """Return the path of a machine."""
        return f"{GROUP}/namespaces/default/virtualmachines" + (f"/{name}" if name else "")

    async def make(self, *fronts: Data) -> None:
        """Machines, as `kubectl create` makes them."""
        for each in fronts:
            reply = await self.api.post(self.path(), each)
            assert reply.status == 201, reply.data

    async def change(self, document: Data, name: str = "web") -> None:
        """A merge patch."""
        reply = await self.api.merge(self.path(name), document)
        assert reply.status == 200, reply.data

    async def parameters(self, name: str = "web", **given: Any) -> None:
        """A merge patch of the parameters."""
        await self.change({"spec": {"parameters": given}}, name)

    async def front(self, name: str = "web") -> Data:
        """A machine; empty when it is gone."""
        reply = await self.api.get(self.path(name))
        return dict(reply.data) if reply.status == 200 else {}

    async def vm(self, name: str = "web") -> Data:
        """`status.vm`."""
        return dict((await self.front(name)).get("status", {}).get("vm") or {})

    async def said(self, name: str = "web") -> dict[str, tuple[str, str]]:
        """The conditions: status and reason by type."""
        found = (await self.front(name)).get("status", {}).get("conditions") or []
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    async def message(self, type: str = "Ready", name: str = "web") -> str:
        """Return the message of a condition."""
        found = (await self.front(name)).get("status", {}).get("conditions") or []
        return str(next((each.get("message", "") for each in found if each["type"] == type), ""))

    async def available(self, name: str = "web", seconds: float = 20.0) -> None:
        """It is there, ready, and in step."""
        await asyncio.sleep(seconds)
        front = await self.front(name)
        assert await self.said(name) == {"Synced": ("True", "ReconcileSuccess"), "Ready": ("True", "Available")}, front.get("status")

    async def delete(self, name: str = "web", options: str = "") -> None:
        """As `kubectl delete --wait=false`."""
        reply = await self.api.delete(self.path(name) + options)
        assert reply.status in (200, 202), reply.data

    async def stop(self, name: str = "web") -> None:
        """Stop a machine as `virtctl stop` does."""
        await self._ask(runrequests.stop, name)

    async def start(self, name: str = "web") -> None:
        """Start a machine as `virtctl start` does."""
        await self._ask(runrequests.start, name)

    async def _ask(self, verb: Callable[..., RunPatches], name: str) -> None:
        client, key = self.api.client(), Key("default", name)
        instance = (await client.get(INSTANCES, key),) if await self.host.vmi(name) else (None,)
        change = verb(await client.get(MACHINES, key), *instance)
        if change.machine:
            await client.patch(MACHINE_DATA, key, json_patch(list(change.machine)))
        if change.status:
            await client.patch(MACHINE_DATA, key, json_patch(list(change.status)), WriteOptions(subresource="status"))

    async def volume(self, name: str) -> Data:
        """A DataVolume; empty when it is gone."""
        return await self.host.get("DataVolume", "cdi.kubevirt.io/v1beta1", name)

    async def claim(self, name: str) -> Data:
        """A claim; empty when it is gone."""
        return await self.host.get("PersistentVolumeClaim", "v1", name)

    async def secret(self, name: str) -> Data:
        """A Secret; empty when it is gone."""
        return await self.host.get("Secret", "v1", name)

    async def service(self, name: str = "web-lb") -> Data:
        """A Service; empty when it is gone."""
        reply = await self.api.get(f"/api/v1/namespaces/default/services/{name}")
        return dict(reply.data) if reply.status == 200 else {}

    async def notes(self, name: str = "web", kind: str = "VirtualMachine") -> list[tuple[str, str]]:
        """Events that came from the front door: reasons and notes."""
        await asyncio.sleep(1)
        found = (await self.api.get("/api/v1/namespaces/default/events")).data["items"]
        about = [each for each in found if each["involvedObject"]["name"] == name and each["involvedObject"]["kind"] == kind]
        return [(each["reason"], each["message"]) for each in about if each["source"]["component"] == "paddock-stakater"]

    async def reasons(self, name: str = "web") -> list[str]:
        """Reasons of these events."""
        return [reason for reason, _ in await self.notes(name)]

    async def everything(self) -> dict[str, str]:
        """The revision of every object that belongs to machines, by its path: no write leaves it as it is."""
        found = {}
        for path in (GROUP + "/virtualmachines", "/apis/kubevirt.io/v1/virtualmachines", *_OTHERS):
            for each in (await self.api.get(path)).data["items"]:
                found[f"{path}/{each['metadata']['namespace']}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
        return found


_OTHERS = (
    "/apis/kubevirt.io/v1/virtualmachineinstances",
    "/apis/cdi.kubevirt.io/v1beta1/datavolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/secrets",
    "/api/v1/services",
)
