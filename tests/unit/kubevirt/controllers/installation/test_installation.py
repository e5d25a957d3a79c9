"""The KubeVirt object, and the instancetypes and preferences of the start."""

from paddock.kubevirt.controllers.installation.controller import wire
from paddock.kubevirt.controllers.virtualmachine.controller import wire as wire_machines
from paddock.kubevirt.plan.machine.commoninstancetypes import instancetypes
from paddock.kubevirt.plan.machine.commonpreferences import preferences
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import Life, living

BASE = "/apis/kubevirt.io/v1/namespaces/kubevirt"
SIZES = "/apis/instancetype.kubevirt.io/v1beta1"


async def names(life: Life, plural: str) -> set[str]:
    return {each["metadata"]["name"] for each in (await life.api.get(f"{SIZES}/{plural}")).data["items"]}


@timeless
async def test_the_installation_is_deployed() -> None:
    async with living(wire) as life:
        await life.rest(5)
        found = (await life.api.get(f"{BASE}/kubevirts/kubevirt")).data
        assert found["status"]["phase"] == "Deployed" and found["status"]["observedKubeVirtVersion"] == "v1.9.0"
        before = found["metadata"]["resourceVersion"]
        await life.rest(600)
        assert (await life.api.get(f"{BASE}/kubevirts/kubevirt")).data["metadata"]["resourceVersion"] == before
        await life.api.merge(f"{BASE}/kubevirts/kubevirt", {"spec": {"configuration": {"vmRolloutStrategy": "Stage"}}})
        await life.rest(5)
        assert (await life.api.get(f"{BASE}/kubevirts/kubevirt")).data["status"]["observedGeneration"] == 2
        await life.api.delete(f"{BASE}/kubevirts/kubevirt")
        await life.rest(5)
        assert (await life.api.get(f"{BASE}/kubevirts/kubevirt")).data["status"]["phase"] == "Deployed"


@timeless
async def test_common_instancetypes_are_made_once() -> None:
    async with living(wire) as life:
        await life.rest(5)
        sizes = await names(life, "virtualmachineclusterinstancetypes")
        wishes = await names(life, "virtualmachineclusterpreferences")
        assert (
            sizes
            == {each["metadata"]["name"] for each in instancetypes()}
            >= {
                "u1.small",
                "cx1.large",
                "m1.xlarge1gi",
                "n1.medium",
                "o1.nano",
                "rt1.micro",
            }
        )
        assert wishes == {each["metadata"]["name"] for each in preferences()} >= {"fedora", "ubuntu", "windows.11.virtio", "cirros"}
        assert len(wishes) >= 50
        await life.api.delete(f"{SIZES}/virtualmachineclusterinstancetypes/u1.small")
        await life.api.merge(f"{BASE}/kubevirts/kubevirt", {"spec": {"configuration": {"vmRolloutStrategy": "Stage"}}})
        await life.rest(5)
        assert "u1.small" not in await names(life, "virtualmachineclusterinstancetypes")


@timeless
async def test_every_one_of_them_gives_a_machine() -> None:
    async with living(wire, wire_machines) as life:
        await life.rest(5)
        pairs = [("u1.medium", each["metadata"]["name"]) for each in preferences() if "architecture" not in each["spec"]["requirements"]]
        pairs = [(size if "windows.11" not in wish else "u1.large", wish) for size, wish in pairs]
        pairs += [(each["metadata"]["name"], "linux") for each in instancetypes()]
        for index, (size, wish) in enumerate(pairs):
            body = {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachine",
                "metadata": {"name": f"vm-{index}"},
                "spec": {
                    "runStrategy": "Always",
                    "instancetype": {"name": size},
                    "preference": {"name": wish},
                    "template": {"spec": {"domain": {"devices": {}}}},
                },
            }
            await life.make(body)
        await life.rest(30)
        words = {await life.word(f"vm-{index}") for index in range(len(pairs))}
        assert words == {"Running"}
