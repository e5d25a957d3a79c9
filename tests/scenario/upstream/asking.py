"""The repeated requests of the replicas to a host."""

import asyncio
from typing import Any

from tests.kit.engine.fakehost import Data, FakeHost

VM, DV = "kubevirt.io/v1", "cdi.kubevirt.io/v1beta1"
PLACE = "/apis/kubevirt.io/v1/namespaces/default"
MACHINES, INSTANCES = f"{PLACE}/virtualmachines", f"{PLACE}/virtualmachineinstances"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def listed(host: FakeHost, place: str, labels: str = "") -> list[Data]:
    """The objects there, by name."""
    reply = await host.api.get(f"{place}?labelSelector={labels}")
    assert reply.status == 200, reply.data
    return sorted(reply.data["items"], key=lambda each: str(each["metadata"]["name"]))


async def names(host: FakeHost, place: str, labels: str = "") -> list[str]:
    """Their names."""
    return [each["metadata"]["name"] for each in await listed(host, place, labels)]


async def instance_uid(host: FakeHost, name: str = "web") -> str:
    """Return the UID of a machine's run; empty when it does not run."""
    return str((await host.vmi(name)).get("metadata", {}).get("uid", ""))


async def phase(host: FakeHost, name: str = "web") -> str:
    """The phase of its instance; empty without one."""
    return str((await host.vmi(name)).get("status", {}).get("phase", ""))


def condition(found: Data, kind: str) -> str:
    """The status of a condition; empty when it is not there."""
    return next((str(each["status"]) for each in found.get("status", {}).get("conditions") or () if each["type"] == kind), "")


async def asked(host: FakeHost, name: str, verb: str, body: Data | None = None, kind: str = "VirtualMachine", seconds: float = 10) -> None:
    """A verb that is taken, and some time for what follows of it."""
    reply = await host.verb(name, verb, body, kind)
    assert reply.status in (200, 202), reply.data
    await asyncio.sleep(seconds)


async def patched(host: FakeHost, place: str, *operations: Data) -> Data:
    """A JSON patch that is taken."""
    reply = await host.api.call("PATCH", place, list(operations), content_type="application/json-patch+json")
    assert reply.status == 200, reply.data
    return dict(reply.data)


def operation(op: str, path: str, value: Any = None) -> Data:
    """One step of a JSON patch."""
    return {"op": op, "path": path} if op == "remove" else {"op": op, "path": path, "value": value}
