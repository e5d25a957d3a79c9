"""The effect of a machine's change on its instance: at once, or at the next start (docs/spec/kubevirt.md 2.9)."""

from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubevirt.controllers.virtualmachine.controller import wire
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import Life, living

KEY = Key("default", "web")
MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
SIZES = "/apis/instancetype.kubevirt.io/v1beta1"


def machine(**spec: Any) -> Data:
    hardware: Data = {
        "domain": {"devices": {}, "cpu": {"sockets": 1}, "memory": {"guest": "1Gi"}},
        "nodeSelector": {"zone": "a", "old": "x"},
        "terminationGracePeriodSeconds": 30,
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": hardware}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web"},
        "spec": {"runStrategy": "Always", "template": template, **spec},
    }


def template(spec: Data, **metadata: Any) -> Data:
    return {"spec": {"template": {"spec": spec, **({"metadata": metadata} if metadata else {})}}}


async def started(life: Life, body: Data | None = None) -> Data:
    await life.make(body or machine())
    await life.shows("Running")
    found = await life.vmi()
    assert found is not None
    return found


async def instance(life: Life) -> Data:
    await life.rest(3)
    found = await life.vmi()
    assert found is not None
    return found


def restart(vm: Data) -> str:
    return next((each["message"] for each in vm["status"]["conditions"] if each["type"] == "RestartRequired"), "")


LIVE: dict[str, tuple[Data, tuple[str, ...], Any]] = {
    "sockets": ({"domain": {"cpu": {"sockets": 3}}}, ("domain", "cpu", "sockets"), 3),
    "memory": ({"domain": {"memory": {"guest": "2Gi"}}}, ("domain", "memory", "guest"), "2Gi"),
    "node selector": ({"nodeSelector": {"zone": "b", "old": None}}, ("nodeSelector",), {"zone": "b"}),
    "tolerations": ({"tolerations": [{"operator": "Exists"}]}, ("tolerations",), [{"operator": "Exists"}]),
}


@pytest.mark.spec("kubevirt", 35)
@pytest.mark.parametrize("name", LIVE)
@timeless
async def test_what_reaches_a_running_instance(name: str) -> None:
    change, path, value = LIVE[name]
    async with living(wire) as life:
        before = await started(life)
        await life.merge(template(change))
        after = await instance(life)
        place: Any = after["spec"]
        for part in path:
            place = place[part]
        assert place == value and after["metadata"]["uid"] == before["metadata"]["uid"]
        status = (await life.vm())["status"]
        assert restart(await life.vm()) == "" and status["observedGeneration"] == status["desiredGeneration"] == 2


WAITS: dict[str, tuple[Data, str]] = {
    "fewer sockets": ({"domain": {"cpu": {"sockets": 1}}}, "Reduction of CPU socket count"),
    "too many sockets": ({"domain": {"cpu": {"sockets": 9, "maxSockets": None}}}, "higher than"),
    "less memory": ({"domain": {"memory": {"guest": "512Mi"}}}, "lower than what the VM started with"),
    "too much memory": ({"domain": {"memory": {"guest": "64Gi"}}}, "higher than"),
    "cores": ({"domain": {"cpu": {"cores": 2}}}, "a non-live-updatable field was changed in the template spec"),
    "threads": ({"domain": {"cpu": {"threads": 2}}}, "non-live-updatable"),
    "grace": ({"terminationGracePeriodSeconds": 60}, "non-live-updatable"),
}


@pytest.mark.spec("kubevirt", 35)
@pytest.mark.parametrize("name", WAITS)
@timeless
async def test_what_waits_for_a_restart(name: str) -> None:
    change, message = WAITS[name]
    body = machine()
    body["spec"]["template"]["spec"]["domain"]["cpu"] = {"sockets": 2, "maxSockets": 4}
    async with living(wire) as life:
        before = await started(life, body)
        await life.merge(template(change))
        after = await instance(life)
        assert after["spec"] == before["spec"]
        vm = await life.vm()
        assert message in restart(vm)
        assert (vm["status"]["observedGeneration"], vm["status"]["desiredGeneration"]) == (1, 2)
        await life.delete(plural="virtualmachineinstances")
        await life.rest(5)
        vm = await life.shows("Running")
        assert restart(vm) == "" and vm["status"]["observedGeneration"] == 2


@timeless
async def test_a_change_that_is_taken_back_needs_no_restart() -> None:
    async with living(wire) as life:
        await started(life)
        await life.merge(template({"domain": {"cpu": {"cores": 2}}}))
        await life.rest(2)
        assert restart(await life.vm())
        await life.merge(template({"domain": {"cpu": {"cores": None}}}))
        await life.rest(2)
        vm = await life.vm()
        assert restart(vm) == "" and vm["status"]["observedGeneration"] == vm["status"]["desiredGeneration"] == 3


@timeless
async def test_everything_waits_where_changes_are_staged() -> None:
    installation = {"metadata": {"name": "kubevirt"}, "spec": {"configuration": {"vmRolloutStrategy": "Stage"}}}
    body = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", **installation}
    async with living(wire) as life:
        await life.api.namespace("kubevirt")
        assert (await life.api.post("/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts", body)).status == 201
        await started(life)
        await life.merge(template({"domain": {"cpu": {"sockets": 2}}}))
        await life.rest(2)
        assert restart(await life.vm())


@timeless
async def test_labels_and_another_strategy() -> None:
    async with living(wire) as life:
        await started(life)
        evict = "descheduler.alpha.kubernetes.io/evict"
        await life.merge(template({}, annotations={evict: "true"}))
        assert (await instance(life))["metadata"]["annotations"][evict] == "true"
        await life.merge({"spec": {"runStrategy": "Manual"}})
        await life.rest(3)
        status = (await life.vm())["status"]
        assert status["observedGeneration"] == status["desiredGeneration"] == 3
        # Other labels and annotations come with the next start; sockets do not wait for them.
        sockets = {"domain": {"cpu": {"sockets": 2}}}
        await life.merge(template(sockets, labels={"app": None, "tier": "front"}, annotations={"note": "x", evict: None}))
        after = await instance(life)
        assert after["metadata"]["labels"]["app"] == "web" and "tier" not in after["metadata"]["labels"]
        assert not {"note", evict} & set(after["metadata"]["annotations"])
        assert after["spec"]["domain"]["cpu"]["sockets"] == 2
        vm = await life.vm()
        assert vm["status"]["observedGeneration"] == 3 and not restart(vm)


@pytest.mark.parametrize(("change", "observed"), [({}, 2), (template({"domain": {"cpu": {"cores": 2}}})["spec"], 1)])
@timeless
async def test_a_halt_is_observed_unless_the_template_changed_too(change: Data, observed: int) -> None:
    # Flux, Argo CD and `kubectl wait` compare the two generations.
    async with living(wire) as life:
        await started(life)
        await life.merge({"spec": {"runStrategy": "Halted", **change}})
        vm = await life.shows("Stopped")
        assert (vm["status"]["observedGeneration"], vm["status"]["desiredGeneration"]) == (observed, 2)
        await life.merge({"spec": {"runStrategy": "Always"}})
        vm = await life.shows("Running")
        assert vm["status"]["observedGeneration"] == vm["status"]["desiredGeneration"] == 3
        kept = await life.client.list_raw(plain("apps", "v1", "controllerrevisions", "ControllerRevision"))
        assert len(kept.items) == 1


async def ask(life: Life, status: Data) -> None:
    await life.client.patch(MACHINES, KEY, merge_patch({"status": status}), WriteOptions(subresource="status"))


@timeless
async def test_a_volume_is_plugged_in_and_out() -> None:
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    options = {"name": "data", "disk": {"name": "data", "disk": {"bus": "scsi"}}, "volumeSource": source}
    async with living(wire) as life:
        await started(life)
        await ask(life, {"volumeRequests": [{"addVolumeOptions": options}]})
        after = await instance(life)
        assert after["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data", "hotpluggable": True}}]
        (disk,) = after["spec"]["domain"]["devices"]["disks"]
        assert (disk["name"], disk["disk"]["bus"], disk["serial"]) == ("data", "scsi", "data")
        vm = await life.vm()
        assert "volumeRequests" not in vm["status"] and restart(vm) == ""
        assert vm["spec"]["template"]["spec"]["volumes"] == after["spec"]["volumes"]
        await ask(life, {"volumeRequests": [{"removeVolumeOptions": {"name": "data"}}]})
        after = await instance(life)
        assert "volumes" not in after["spec"] and "disks" not in after["spec"]["domain"]["devices"]
        assert "volumes" not in (await life.vm())["spec"]["template"]["spec"] and restart(await life.vm()) == ""


@timeless
async def test_a_memory_dump() -> None:
    async with living(wire) as life:
        await started(life)
        await ask(life, {"memoryDumpRequest": {"claimName": "dump", "phase": "Associating"}})
        after = await instance(life)
        assert after["spec"]["volumes"] == [{"name": "dump", "memoryDump": {"claimName": "dump", "hotpluggable": True}}]
        assert (await life.vm())["status"]["memoryDumpRequest"]["phase"] == "InProgress"
        volume = {"name": "dump", "target": "", "phase": "MemoryDumpCompleted", "memoryDumpVolume": {"targetFileName": "web.dump"}}
        await life.player.say(KEY, volumeStatus=[volume])
        await life.rest(2)
        request = (await life.vm())["status"]["memoryDumpRequest"]
        assert (request["phase"], request["fileName"]) == ("Completed", "web.dump") and request["endTimestamp"]
        await ask(life, {"memoryDumpRequest": {"phase": "Associating"}})
        assert "volumes" not in (await instance(life))["spec"], "another dump is another volume"
        await life.player.say(KEY, volumeStatus=None)
        await life.rest(2)
        assert (await instance(life))["spec"]["volumes"] == after["spec"]["volumes"]
        assert (await life.vm())["status"]["memoryDumpRequest"]["phase"] == "InProgress"
        await ask(life, {"memoryDumpRequest": {"remove": True}})
        after = await instance(life)
        assert "volumes" not in after["spec"] and "memoryDumpRequest" not in (await life.vm())["status"]


async def sizes(life: Life) -> None:
    size = {"cpu": {"guest": 4}, "memory": {"guest": "2Gi"}, "annotations": {"made": "big"}}
    wishes = {"cpu": {"preferredCPUTopology": "cores"}, "devices": {"preferredDiskBus": "virtio", "preferredInterfaceModel": "e1000"}}
    for kind, spec in (("Instancetype", size), ("Preference", wishes)):
        body = {
            "apiVersion": "instancetype.kubevirt.io/v1beta1",
            "kind": f"VirtualMachineCluster{kind}",
            "metadata": {"name": "big"},
            "spec": spec,
        }
        assert (await life.api.post(f"{SIZES}/virtualmachinecluster{kind.lower()}s", body)).status == 201


@timeless
async def test_an_instancetype_that_comes_later_must_not_conflict() -> None:
    body = machine(instancetype={"name": "big"})
    async with living(wire) as life:
        await life.make(body)
        await life.rest(5)
        await sizes(life)
        await life.rest(60)
        (failure,) = [each for each in (await life.vm())["status"]["conditions"] if each["type"] == "Failure"]
        assert failure["reason"] == "FailedCreate"
        assert "VMI conflicts with instancetype spec in fields: [spec.template.spec.domain.cpu.sockets" in failure["message"]
        assert await life.vmi() is None


@pytest.mark.spec("kubevirt", 92)
@timeless
async def test_instancetype_and_preference_are_frozen() -> None:
    body = machine(instancetype={"name": "big"}, preference={"name": "big"})
    body["spec"]["template"]["spec"]["domain"] = {"devices": {}}
    body["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]
    body["spec"]["template"]["spec"]["domain"]["devices"]["disks"] = [{"name": "scratch"}]
    async with living(wire) as life:
        await sizes(life)
        vmi = await started(life, body)
        domain = vmi["spec"]["domain"]
        assert (domain["cpu"]["cores"], domain["cpu"]["sockets"], domain["memory"]["guest"]) == (4, 1, "2Gi")
        assert domain["devices"]["disks"][0]["disk"]["bus"] == "virtio"
        assert domain["devices"]["interfaces"][0]["model"] == "e1000"
        annotations = vmi["metadata"]["annotations"]
        assert annotations["kubevirt.io/cluster-instancetype-name"] == annotations["kubevirt.io/cluster-preference-name"] == "big"
        assert annotations["made"] == "big"
        vm = await life.vm()
        assert "memory" not in vm["spec"]["template"]["spec"]["domain"]
        reference = vm["status"]["instancetypeRef"]
        assert (reference["name"], reference["kind"]) == ("big", "VirtualMachineClusterInstancetype")
        path = f"/apis/apps/v1/namespaces/default/controllerrevisions/{reference['controllerRevisionRef']['name']}"
        kept = (await life.api.get(path)).data
        assert kept["data"]["spec"]["cpu"] == {"guest": 4} and kept["metadata"]["ownerReferences"][0]["name"] == "web"
        for kind in ("instancetypes", "preferences"):
            path = f"{SIZES}/virtualmachinecluster{kind}/big"
            change = {"spec": {"cpu": {"guest": 8}}} if kind == "instancetypes" else {"spec": {"cpu": {"preferredCPUTopology": "sockets"}}}
            assert (await life.api.merge(path, change)).status == 200
        await life.delete(plural="virtualmachineinstances")
        await life.rest(5)
        again = await life.vmi()
        assert again is not None and again["spec"]["domain"]["cpu"]["cores"] == 4
