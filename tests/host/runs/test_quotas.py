"""A quota of two processors and three real guests: the third waits, and starts when one goes."""

import asyncio

import pytest

from tests.coroutines import played
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, phase

pytestmark = pytest.mark.needs("qemu")
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def machine(name: str) -> Data:
    """A guest with nothing to boot: its processor runs all the same."""
    devices = {"autoattachGraphicsDevice": False, "autoattachPodInterface": False}
    domain = {"cpu": {"cores": 1, "model": "qemu64"}, "memory": {"guest": "32Mi"}, "devices": devices}
    spec = {"runStrategy": "Always", "template": {"spec": {"domain": domain, "terminationGracePeriodSeconds": 0}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


def waits(instance: Data) -> bool:
    """Return whether an instance says that a quota has no room for it."""
    conditions = instance.get("status", {}).get("conditions") or ()
    said: Data = next((each for each in conditions if each["type"] == "Synchronized"), {})
    return said.get("reason") == "FailedCreate" and "exceeded quota: two" in said["message"]


@pytest.mark.spec("kubevirt", 192)
@played
async def test_the_third_guest_waits_and_starts_when_one_goes(talk: Talk, /) -> None:
    await talk.make(QUOTAS, {"metadata": {"name": "two"}, "spec": {"hard": {"requests.cpu/vmi": "2"}}})
    await asyncio.gather(*(talk.make(VMS, machine(name)) for name in ("a", "b", "c")))

    def is_full(found: Data) -> bool:
        phases = sorted(phase(each) for each in found["items"])
        return phases == ["Pending", "Running", "Running"] and any(waits(each) for each in found["items"])

    found = await talk.until(VMIS, is_full, "two run and one waits")
    (held,) = (each["metadata"]["name"] for each in found["items"] if phase(each) == "Pending")
    await asyncio.sleep(3)
    assert is_full(await talk.get(VMIS))
    gone = next(each["metadata"]["name"] for each in found["items"] if phase(each) == "Running")
    await talk.verb(gone, "stop")
    await talk.running(held)
    used = (await talk.get(f"{QUOTAS}/two"))["status"]["used"]
    assert used == {"requests.cpu/vmi": "2"}
