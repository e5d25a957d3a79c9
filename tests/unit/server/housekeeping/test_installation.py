"""The conditions of the KubeVirt object follow the controllers of machines."""

import pytest

from paddock.server.housekeeping import installation
from paddock.server.housekeeping.node import NodeProblem
from tests.coroutines import timeless
from tests.kit.servers.apiharness import Harness

PLACE = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts"
READY = [
    {"type": aspect, "status": status, "reason": "AllComponentsReady", "message": "All components are ready.", "lastTransitionTime": None}
    for aspect, status in (("Available", "True"), ("Progressing", "False"), ("Degraded", "False"))
]


@pytest.mark.spec("kubevirt", 159)
@timeless
async def test_the_installation_is_available_while_controllers_run() -> None:
    async with Harness() as api:
        # There is none yet: its controller makes it.
        await installation.report(api.parts, NodeProblem("EngineStarting", "the controllers start"))
        await api.namespace("kubevirt")
        await api.post(PLACE, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}, "spec": {}})
        conditions = [{**each, "lastTransitionTime": api.clock.now()} for each in READY]
        await api.merge(f"{PLACE}/kubevirt/status", {"status": {"phase": "Deployed", "conditions": conditions}})
        before = api.store.revision
        await installation.report(api.parts, None)
        assert api.store.revision == before
        api.clock.time += 60
        await installation.report(api.parts, NodeProblem("QemuMissing", "there is no QEMU"))
        status = (await api.get(f"{PLACE}/kubevirt")).data["status"]
        told = {each["type"]: each for each in status["conditions"]}
        assert (told["Available"]["status"], told["Degraded"]["status"], status["phase"]) == ("False", "True", "Deployed")
        assert told["Available"]["message"] == "there is no QEMU" and told["Available"]["lastTransitionTime"] == api.clock.now()
        assert told["Progressing"] == {**conditions[1]}
        await installation.report(api.parts, None)
        (available,) = [each for each in (await api.get(f"{PLACE}/kubevirt")).data["status"]["conditions"] if each["type"] == "Available"]
        assert (available["status"], available["reason"]) == ("True", "AllComponentsReady")
