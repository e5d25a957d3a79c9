"""A write of the status concerns the status: what is asked for is neither judged nor told again."""

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import CrossFieldRule
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"


def machine() -> Data:
    template = {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web"},
        "spec": {"running": True, "template": template},
    }


@played
async def test_rules_about_the_status_hold_for_its_writes(api: Harness, /) -> None:
    await api.post(MACHINES, machine())
    asked = {"volumeRequests": [{"removeVolumeOptions": {"name": "nowhere"}}]}
    refused = await api.merge(f"{MACHINES}/web/status", {"status": asked})
    assert refused.status == 422
    assert "no volume of this name" in refused.data["message"]


@played
async def test_what_a_status_write_says_of_the_rest_is_not_taken(api: Harness, /) -> None:
    before = (await api.post(MACHINES, machine())).data
    at = f"{MACHINES}/web/status"
    labels = {"labels": {"a": "b"}}
    after = (await api.merge(at, {"metadata": labels, "spec": {"runStrategy": "Halted"}, "status": {"ready": True}})).data
    assert (after["spec"], after["status"]["ready"]) == (before["spec"], True)
    assert (after["metadata"].get("labels"), after["metadata"]["generation"]) == (None, before["metadata"]["generation"])
    assert (await api.merge(at, {"status": {"unheardOf": 1}})).warnings == ['299 - "unknown field \\"status.unheardOf\\""']


@played
async def test_the_rest_keeps_the_status(api: Harness, /) -> None:
    await api.post(MACHINES, machine())
    seen = (await api.merge(f"{MACHINES}/web/status", {"status": {"ready": True}})).data["status"]
    after = (await api.merge(f"{MACHINES}/web", {"metadata": {"labels": {"a": "b"}}, "status": {"ready": False}})).data
    assert (after["status"], after["metadata"]["labels"]) == (seen, {"a": "b"})


def test_rules_that_read_the_status_say_so() -> None:
    def reads(rule: CrossFieldRule) -> bool:
        codes = (getattr(each, "__code__", None) for each in (rule.check, rule.judge))
        return any(code is not None and "status" in code.co_names for code in codes)

    found = {rule.id: rule.of_status for kind in catalog.every() for rule in kind.rules if reads(rule) or rule.of_status}
    assert found == {"kubevirt/V105": True}
