"""Instancetypes and preferences, as `tests/instancetype` of KubeVirt wants them."""

import asyncio
from typing import Any

import pytest

from paddock.base.jsondata import copied
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.upstream.asking import DV, MACHINES, REVISIONS, asked, names, operation, patched

pytestmark = pytest.mark.spec("kubevirt", 110)

GROUP = "instancetype.kubevirt.io/v1beta1"
TYPES = f"/apis/{GROUP}/namespaces/default/virtualmachineinstancetypes"
TINY: Data = {"cpu": {"guest": 2}, "memory": {"guest": "64Mi"}}
BOTH: dict[str, Any] = {
    "instancetype": {"kind": "VirtualMachineInstancetype", "name": "tiny"},
    "preference": {"kind": "VirtualMachinePreference", "name": "tiny"},
}


def of(kind: str, name: str, spec: Data) -> Data:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def made(host: FakeHost, kind: str, spec: Data, name: str = "tiny") -> None:
    """An instancetype or a preference, of the namespace or of the cluster."""
    scope = "" if "Cluster" in kind else "namespaces/default/"
    reply = await host.api.post(f"/apis/{GROUP}/{scope}{kind.lower()}s", of(kind, name, spec))
    assert reply.status == 201, reply.data


def sized(strategy: str = "Always", *, name: str = "web", instancetype: Data | None = None, preference: Data | None = None) -> Data:
    """A machine that says nothing of its size, unless nobody else does."""
    body = machine(name, strategy)
    if instancetype is not None:
        body["spec"] |= {"instancetype": instancetype}
        body["spec"]["template"]["spec"]["domain"] = {"devices": {}}
    if preference is not None:
        body["spec"] |= {"preference": preference}
    return body


@pytest.mark.parametrize(
    ("member", "scope"), [("instancetype", "Cluster"), ("instancetype", ""), ("preference", "Cluster"), ("preference", "")]
)
@pytest.mark.spec("kubevirt", 167)
@played
async def test_a_machine_whose_instancetype_is_missing_is_kept_and_starts_when_it_is_made(
    host: FakeHost, /, member: str, scope: str
) -> None:
    kind = f"VirtualMachine{scope}{member.capitalize()}"
    # Another kind of the same name is another object.
    await made(host, f"VirtualMachine{'' if scope else 'Cluster'}{member.capitalize()}", TINY if member == "instancetype" else {})
    named: dict[str, Any] = {member: {"kind": kind, "name": "tiny"}}
    reply = await host.api.post(MACHINES, sized(**named))
    assert reply.status == 201
    (warning,) = reply.warnings
    assert f"Failure to find {member}: {kind.lower()}s.instancetype.kubevirt.io" in warning and "not found" in warning
    await asyncio.sleep(300)
    status = (await host.vm())["status"]
    (failure,) = [each for each in status["conditions"] if each["type"] == "Failure"]
    assert (failure["status"], failure["reason"]) == ("True", f"FailedFind{member.capitalize()}")
    assert status["printableStatus"] == "Stopped"
    await made(host, kind, TINY if member == "instancetype" else {"cpu": {"preferredCPUTopology": "cores"}})
    await host.running(seconds=20)
    assert "Failure" not in [each["type"] for each in (await host.vm())["status"]["conditions"]]


@played
async def test_those_of_the_cluster_are_meant_when_no_kind_is_given(host: FakeHost, /) -> None:
    await made(host, "VirtualMachineClusterInstancetype", TINY)
    await made(host, "VirtualMachineClusterPreference", {"cpu": {"preferredCPUTopology": "sockets"}})
    await host.make(sized(instancetype={"name": "tiny"}, preference={"name": "tiny"}))
    await host.running()
    assert (await host.vmi())["spec"]["domain"]["cpu"]["sockets"] == 2


@played
async def test_everything_that_is_preferred_is_in_the_instance(host: FakeHost, /) -> None:
    annotations = {"required-1": "1", "required-2": "2"}
    await made(host, "VirtualMachineInstancetype", {**TINY, "annotations": annotations})
    preferred = {
        "cpu": {"preferredCPUTopology": "sockets"},
        "devices": {"preferredDiskBus": "sata"},
        "features": {"preferredHyperv": {"vapic": {"enabled": True}, "relaxed": {"enabled": True}}},
        "firmware": {"preferredUseBios": True},
        "preferredTerminationGracePeriodSeconds": 15,
        "preferredSubdomain": "nowhere",
        "annotations": {"preferred-1": "1", "preferred-2": "use-the-machine's", "required-1": "use-the-instancetype's"},
    }
    await made(host, "VirtualMachinePreference", preferred)
    body = sized(**BOTH)
    body["spec"]["template"]["metadata"] = {"annotations": {"preferred-2": "2"}}
    spec = body["spec"]["template"]["spec"]
    spec |= {"volumes": [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}]}
    spec["domain"]["devices"]["disks"] = [{"name": "root", "disk": {}}]
    await host.make(body)
    await host.running()
    found = await host.vmi()
    domain = found["spec"]["domain"]
    assert (domain["cpu"]["sockets"], domain["memory"]["guest"]) == (2, "64Mi")
    assert [each["disk"]["bus"] for each in domain["devices"]["disks"]] == ["sata"]
    assert {name: each["enabled"] for name, each in domain["features"]["hyperv"].items()} == {"vapic": True, "relaxed": True}
    assert "bios" in domain["firmware"]["bootloader"]
    assert (found["spec"]["terminationGracePeriodSeconds"], found["spec"]["subdomain"]) == (15, "nowhere")
    said = found["metadata"]["annotations"]
    assert said["kubevirt.io/instancetype-name"] == said["kubevirt.io/preference-name"] == "tiny"
    assert not any(each.startswith("kubevirt.io/cluster-") for each in said)
    expected = {"required-1": "1", "required-2": "2", "preferred-1": "1", "preferred-2": "2"}
    assert {name: said[name] for name in expected} == expected


@played
async def test_cards_and_disks_that_nobody_described_are_as_preferred(host: FakeHost, /) -> None:
    await made(host, "VirtualMachineClusterPreference", {"devices": {"preferredInterfaceModel": "e1000", "preferredDiskBus": "scsi"}})
    body = sized(preference={"name": "tiny"})
    body["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}]
    await host.make(body)
    await host.running()
    devices = (await host.vmi())["spec"]["domain"]["devices"]
    assert [each["model"] for each in devices["interfaces"]] == ["e1000"]
    assert [each["disk"]["bus"] for each in devices["disks"]] == ["scsi"]


@played
async def test_processors_of_ones_own_come_from_the_instancetype(host: FakeHost, /) -> None:
    await made(host, "VirtualMachineClusterInstancetype", {"cpu": {"guest": 1, "dedicatedCPUPlacement": True}, "memory": {"guest": "64Mi"}})
    await host.make(sized("Halted", instancetype={"name": "tiny"}))
    await asked(host, "web", "start")
    assert (await host.vmi())["spec"]["domain"]["cpu"]["dedicatedCpuPlacement"] is True
    assert "dedicatedCpuPlacement" not in (await host.vm())["spec"]["template"]["spec"]["domain"].get("cpu", {})


@played
async def test_more_memory_may_be_promised_than_there_is(host: FakeHost, /) -> None:
    await made(host, "VirtualMachineClusterInstancetype", {"cpu": {"guest": 1}, "memory": {"guest": "128Mi", "overcommitPercent": 15}})
    await host.make(sized(instancetype={"name": "tiny"}))
    await host.running()
    domain = (await host.vmi())["spec"]["domain"]
    assert domain["memory"]["guest"] == "128Mi"
    assert domain["resources"]["requests"]["memory"] == "114085072"


@pytest.mark.parametrize("source", ["claim", "datavolume", "template-claim", "template-source", "template-source-labels"])
@played
async def test_a_disk_says_what_it_wants(host: FakeHost, /, source: str) -> None:
    await made(host, "VirtualMachineInstancetype", TINY)
    await made(host, "VirtualMachinePreference", {"cpu": {"preferredCPUTopology": "cores"}})
    prefix = "instancetype.kubevirt.io/default-"
    labels = {f"{prefix}instancetype": "tiny", f"{prefix}instancetype-kind": "VirtualMachineInstancetype"}
    labels |= {f"{prefix}preference": "tiny", f"{prefix}preference-kind": "VirtualMachinePreference"}
    blank = {"source": {"blank": {}}, "storage": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    disk: Data = {"apiVersion": DV, "kind": "DataVolume", "metadata": {"name": "source"}, "spec": blank}
    if source != "template-source-labels":
        disk["metadata"]["labels"] = labels
    await host.make(disk)
    await asyncio.sleep(20)
    if source.startswith("template-source"):
        body: Data = {"apiVersion": DV, "kind": "DataSource", "metadata": {"name": "golden"}}
        body["spec"] = {"source": {"pvc": {"name": "source", "namespace": "default"}}}
        body["metadata"]["labels"] = labels if source.endswith("labels") else {}
        await host.make(body)
        await asyncio.sleep(5)
    volume: Data = {"dataVolume": {"name": "copy"}} if source.startswith("template") else {"dataVolume": {"name": "source"}}
    if source == "claim":
        volume = {"persistentVolumeClaim": {"claimName": "source"}}
    infer = {"inferFromVolume": "root", "inferFromVolumeFailurePolicy": "Reject"}
    asks = sized(instancetype=dict(infer), preference=dict(infer))
    asks["spec"]["template"]["spec"]["volumes"] = [{"name": "root", **volume}]
    if source.startswith("template"):
        copy: dict[str, Any] = {"storage": blank["storage"]}
        copy |= {"source": {"pvc": {"name": "source", "namespace": "default"}}} if source == "template-claim" else {}
        copy |= {"sourceRef": {"kind": "DataSource", "name": "golden", "namespace": "default"}} if "source" in source[9:] else {}
        asks["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": "copy"}, "spec": copy}]
    await host.make(asks)
    spec = (await host.vm())["spec"]
    for member, kind in (("instancetype", "VirtualMachineInstancetype"), ("preference", "VirtualMachinePreference")):
        assert spec[member]["name"] == "tiny" and spec[member]["kind"] == kind and "inferFromVolume" not in spec[member]
    await host.running(seconds=60)
    assert (await host.vmi())["spec"]["domain"]["cpu"]["cores"] == 2


@pytest.mark.parametrize("said", ["in-words", "by-default"])
@played
async def test_a_size_beside_the_inferred_one_is_refused(host: FakeHost, /, said: str) -> None:
    await made(host, "VirtualMachineClusterInstancetype", TINY)
    labels = {"instancetype.kubevirt.io/default-instancetype": "tiny"}
    blank = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    await host.make({"apiVersion": DV, "kind": "DataVolume", "metadata": {"name": "source", "labels": labels}, "spec": blank})
    await asyncio.sleep(20)
    body = machine(volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "source"}}])
    policy = {"inferFromVolumeFailurePolicy": "Reject"} if said == "in-words" else {}
    body["spec"]["instancetype"] = {"inferFromVolume": "root", **policy}
    reply = await host.api.post(MACHINES, body)
    words = "VM field(s) spec.template.spec.domain.memory.guest conflicts with selected instance type"
    assert reply.status == 422
    assert reply.data["message"] == f'admission webhook "virtualmachine-validator.kubevirt.io" denied the request: {words}'


@played
async def test_what_was_found_is_kept_for_the_machine_that_found_it(host: FakeHost, /) -> None:
    async def revision(name: str, member: str) -> tuple[str, Data]:
        kept = (await host.vm(name))["status"][f"{member}Ref"]["controllerRevisionRef"]["name"]
        return kept, (await host.get("ControllerRevision", "apps/v1", kept))["data"]["spec"]

    async def sockets(name: str) -> int:
        return int((await host.vmi(name))["spec"]["domain"]["cpu"]["sockets"])

    await made(host, "VirtualMachineInstancetype", TINY)
    await made(host, "VirtualMachinePreference", {"cpu": {"preferredCPUTopology": "sockets"}})
    await host.make(sized("Halted", **BOTH))
    await asyncio.sleep(10)
    first, spec = await revision("web", "instancetype")
    assert spec == TINY and (await revision("web", "preference"))[1] == {"cpu": {"preferredCPUTopology": "sockets"}}
    await asked(host, "web", "start")
    assert await sockets("web") == 2
    await patched(host, f"{TYPES}/tiny", operation("replace", "/spec/cpu/guest", 3))
    await asked(host, "web", "stop")
    await asked(host, "web", "start")
    assert await sockets("web") == 2
    await host.make(sized(name="second", **BOTH))
    await host.running("second")
    second, spec = await revision("second", "instancetype")
    assert second != first and spec["cpu"]["guest"] == 3 and await sockets("second") == 3


@played
async def test_what_was_kept_and_is_something_else_is_not_used(host: FakeHost, /) -> None:
    await made(host, "VirtualMachineInstancetype", TINY)
    matcher = {"kind": "VirtualMachineInstancetype", "name": "tiny"}
    await host.make(sized(instancetype=matcher))
    await host.running()
    kept = (await host.vm())["status"]["instancetypeRef"]["controllerRevisionRef"]["name"]
    revision = await host.get("ControllerRevision", "apps/v1", kept)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(60)
    assert kept not in await names(host, REVISIONS)
    other = {**revision, "metadata": {"name": kept}}
    other["data"]["spec"]["memory"]["guest"] = "74Mi"
    assert (await host.api.post(REVISIONS, other)).status == 201
    await host.make(sized(instancetype=matcher))
    await asyncio.sleep(30)
    failures = [each for each in (await host.vm())["status"]["conditions"] if each["type"] == "Failure"]
    assert [each["status"] for each in failures] == ["True"]
    assert "found existing ControllerRevision with unexpected data" in failures[0]["message"]


@pytest.mark.parametrize(
    "spec",
    [{"memory": {"guest": "128M"}}, {"cpu": {}, "memory": {"guest": "128M"}}, {"cpu": {"guest": 1}}, {"cpu": {"guest": 1}, "memory": {}}],
    ids=["cpu", "cpu-guest", "memory", "memory-guest"],
)
@played
async def test_an_instancetype_without_a_size_is_refused(host: FakeHost, /, spec: Data) -> None:
    reply = await host.api.post(TYPES, of("VirtualMachineInstancetype", "tiny", spec))
    assert reply.status == 422
    assert reply.data["details"]["causes"][0]["reason"] == "FieldValueRequired"
    # KubeVirt's client writes nothing as a zero, and such an object is refused for its missing name.
    nameless = {**of("VirtualMachineInstancetype", "", {"cpu": {"guest": 0}, "memory": {"guest": "0"}}), "metadata": {}}
    reply = await host.api.post(TYPES, nameless)
    assert reply.status == 422
    assert [each["reason"] for each in reply.data["details"]["causes"]] == ["FieldValueRequired"]


async def keeps(host: FakeHost, policy: str) -> None:
    """Set the way the installation's machines keep their instancetype and preference."""
    place = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
    reply = await host.api.merge(place, {"spec": {"configuration": {"instancetype": {"referencePolicy": policy}}}})
    assert reply.status == 200, reply.data


async def both_made(host: FakeHost) -> None:
    await made(host, "VirtualMachineInstancetype", TINY)
    await made(host, "VirtualMachinePreference", {"cpu": {"preferredCPUTopology": "cores"}, "devices": {"preferredDiskBus": "sata"}})


def is_expanded(found: Data) -> bool:
    """Whether a machine says everything itself."""
    domain = found["spec"]["template"]["spec"]["domain"]
    said = (domain.get("cpu", {}).get("cores"), domain.get("memory", {}).get("guest"))
    names_none = not any(each in found["spec"] or f"{each}Ref" in found["status"] for each in BOTH)
    return said == (2, "64Mi") and names_none


@pytest.mark.spec("kubevirt", 186)
@pytest.mark.parametrize("member", list(BOTH))
@played
async def test_a_copy_without_a_version_is_written_anew(host: FakeHost, /, member: str) -> None:
    await both_made(host)
    await host.make(sized("Halted", **BOTH))
    await asyncio.sleep(10)
    reference = f"/status/{member}Ref/controllerRevisionRef/name"
    first = (await host.vm())["status"][f"{member}Ref"]["controllerRevisionRef"]["name"]
    old = copied(await host.get("ControllerRevision", "apps/v1", first))
    owners = old["metadata"]["ownerReferences"]
    old["metadata"] = {"name": "web-other-uid-1", "ownerReferences": owners}
    old["data"]["metadata"] |= {"name": "other", "uid": "uid"}
    assert (await host.api.post(REVISIONS, old)).status == 201
    await patched(host, f"{MACHINES}/web/status", operation("replace", reference, "web-other-uid-1"))
    await asyncio.sleep(30)
    name = (await host.vm())["status"][f"{member}Ref"]["controllerRevisionRef"]["name"]
    found = await host.get("ControllerRevision", "apps/v1", name)
    assert name == "web-other-v1beta1-uid-1" and found["data"] == old["data"]
    assert found["metadata"]["labels"]["instancetype.kubevirt.io/object-version"] == "v1beta1"
    assert "web-other-uid-1" not in await names(host, REVISIONS)


@played
async def test_sizes_stay_references(host: FakeHost, /) -> None:
    await keeps(host, "reference")
    await both_made(host)
    await host.make(sized(**BOTH))
    await host.running(seconds=30)
    found = await host.vm()
    assert found["spec"]["instancetype"]["name"] == found["spec"]["preference"]["name"] == "tiny"
    assert all(found["status"][f"{each}Ref"]["controllerRevisionRef"]["name"] for each in BOTH)


@pytest.mark.spec("kubevirt", 182)
@pytest.mark.parametrize("policy", ["expand", "expandAll"])
@played
async def test_sizes_are_written_into_a_new_machine_where_the_installation_says_so(host: FakeHost, /, policy: str) -> None:
    await keeps(host, policy)
    await both_made(host)
    await host.make(sized(**BOTH))
    await host.running(seconds=30)
    assert is_expanded(await host.vm())
    assert (await host.vmi())["spec"]["domain"]["cpu"]["cores"] == 2


@pytest.mark.spec("kubevirt", 182)
@pytest.mark.parametrize("policy", ["expand", "expandAll"])
@played
async def test_a_machine_with_copies_is_expanded_by_expand_all_once_it_is_off(host: FakeHost, /, policy: str) -> None:
    await both_made(host)
    await host.make(sized(**BOTH))
    await host.running(seconds=30)
    await keeps(host, policy)
    await asyncio.sleep(30)
    found = await host.vm()
    assert found["spec"]["instancetype"]["name"] == "tiny"
    copies = [found["status"][f"{each}Ref"]["controllerRevisionRef"]["name"] for each in BOTH]
    await asked(host, "web", "stop")
    await asyncio.sleep(60)
    left = set(await names(host, REVISIONS))
    assert is_expanded(await host.vm()) is (policy == "expandAll")
    assert left.isdisjoint(copies) is (policy == "expandAll")


@played
async def test_a_machine_that_is_not_there_yet_can_be_expanded(host: FakeHost, /) -> None:
    await made(host, "VirtualMachineClusterInstancetype", TINY)
    place = "/apis/subresources.kubevirt.io/v1/namespaces/default/expand-vm-spec"
    reply = await host.api.put(place, sized(instancetype={"name": "tiny"}))
    assert reply.status == 200, reply.data
    spec = reply.data["spec"]
    assert "instancetype" not in spec and spec["template"]["spec"]["domain"]["cpu"]["sockets"] == 2
    assert spec["template"]["spec"]["domain"]["memory"]["guest"] == "64Mi"


def needs(topology: str = "", cpu: int = 0, memory: str = "") -> Data:
    """A preference that asks for something."""
    asks = {**({"cpu": {"guest": cpu}} if cpu else {}), **({"memory": {"guest": memory}} if memory else {})}
    return {**({"cpu": {"preferredCPUTopology": topology}} if topology else {}), "requirements": asks}


# What is preferred, what the instancetype or the machine has, and whether that is enough. Nothing has more than the case is about.
PROCESSORS: Data = {"cpu": {"guest": 2}, "memory": {"guest": "0"}}
MEMORY: Data = {"cpu": {"guest": 0}, "memory": {"guest": "64Mi"}}
NEEDS: list[Any] = [
    pytest.param(needs(cpu=2), PROCESSORS, {}, True, id="instancetype-cpu"),
    pytest.param(needs(memory="64Mi"), MEMORY, {}, True, id="instancetype-memory"),
    pytest.param(needs("", 2), None, {"cpu": {"sockets": 2}}, True, id="sockets"),
    pytest.param(needs("cores", 2), None, {"cpu": {"cores": 2}}, True, id="cores"),
    pytest.param(needs("sockets", 1), None, {}, True, id="one-by-default"),
    pytest.param(needs("threads", 2), None, {"cpu": {"threads": 2}}, True, id="threads"),
    pytest.param(needs("any", 4), None, {"cpu": {"cores": 2, "sockets": 2}}, True, id="any"),
    pytest.param(needs(memory="128Mi"), None, {"memory": {"guest": "128Mi"}}, True, id="memory"),
    pytest.param(needs(cpu=3), PROCESSORS, {}, False, id="less-instancetype-cpu"),
    pytest.param(needs(memory="65Mi"), MEMORY, {}, False, id="less-instancetype-memory"),
    pytest.param(needs("", 2), None, {"cpu": {"sockets": 1}}, False, id="less-sockets"),
    pytest.param(needs("cores", 2), None, {"cpu": {"cores": 1}}, False, id="less-cores"),
    pytest.param(needs("threads", 2), None, {"cpu": {"threads": 1}}, False, id="less-threads"),
    pytest.param(needs("any", 4), None, {"cpu": {"cores": 2, "sockets": 1}}, False, id="less-any"),
    pytest.param(needs(memory="129Mi"), None, {"memory": {"guest": "128Mi"}}, False, id="less-memory"),
    pytest.param(needs(memory="129Mi"), None, {"resources": {"requests": {"memory": "64Mi"}}}, False, id="no-memory"),
]


@pytest.mark.parametrize(("preferred", "instancetype", "domain", "enough"), NEEDS)
@played
async def test_needs_are_met_or_the_machine_is_refused(
    host: FakeHost, /, preferred: Data, instancetype: Data | None, domain: Data, enough: bool
) -> None:
    await made(host, "VirtualMachineClusterPreference", preferred)
    matcher = None if instancetype is None else {"name": "tiny"}
    if instancetype is not None:
        await made(host, "VirtualMachineClusterInstancetype", instancetype)
    body = sized("Halted", instancetype=matcher, preference={"name": "tiny"})
    body["spec"]["template"]["spec"]["domain"] |= {"memory": None, **domain}
    reply = await host.api.post(MACHINES, body)
    assert (reply.status == 201) is enough, reply.data
    assert enough or "failure checking preference requirements" in reply.data["message"]
