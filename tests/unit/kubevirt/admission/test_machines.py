"""Machines and running machines at admission: what they get when they are made, and what only controllers may write."""

from typing import Any

import orjson
import pytest

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Invalid
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.server.objects.encoding import stamp
from paddock.server.store.contract import StoreKey
from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness

VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
SIZES = "/apis/instancetype.kubevirt.io/v1beta1"
INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
HARDWARE: dict[str, Any] = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}


def machine(name: str = "web", hardware: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"spec": hardware or HARDWARE}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Halted", "template": template, **spec},
    }


def instance(name: str = "web", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name, **metadata}, "spec": HARDWARE}


def cluster(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "instancetype.kubevirt.io/v1beta1",
        "kind": f"VirtualMachineCluster{kind}",
        "metadata": {"name": name},
        "spec": spec,
    }


async def sizes(api: Harness, size: dict[str, Any] | None = None, wishes: dict[str, Any] | None = None) -> None:
    given = size or {"cpu": {"guest": 2}, "memory": {"guest": "4Gi"}}
    assert (await api.post(f"{SIZES}/virtualmachineclusterinstancetypes", cluster("Instancetype", "small", given))).status == 201
    assert (await api.post(f"{SIZES}/virtualmachineclusterpreferences", cluster("Preference", "linux", wishes or {}))).status == 201


@scripted
async def test_a_machine_gets_everything_that_would_be_a_write_later() -> None:
    async with Harness() as api:
        made = (await api.post(VMS, machine())).data
        again = (await api.put(f"{VMS}/web", made)).data
    assert made["metadata"]["finalizers"] == ["kubevirt.io/virtualMachineControllerFinalize"]
    assert made["metadata"]["annotations"]["kubevirt.io/latest-observed-api-version"] == "v1"
    template = made["spec"]["template"]
    assert template["metadata"]["annotations"] == {"kubevirt.io/pci-topology-version": "v3"}
    assert template["spec"]["architecture"] == "amd64"
    assert template["spec"]["domain"]["machine"] == {"type": "q35"}
    firmware = template["spec"]["domain"]["firmware"]
    assert len(firmware["uuid"]) == len(firmware["serial"]) == 36 and firmware["uuid"] != firmware["serial"]
    assert again["metadata"]["generation"] == 1 and again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@scripted
async def test_an_identity_that_is_given_stays_and_no_two_are_the_same() -> None:
    given = {"domain": {**HARDWARE["domain"], "firmware": {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223", "serial": "s"}}}
    async with Harness() as api:
        own = (await api.post(VMS, machine("own", given))).data["spec"]["template"]["spec"]["domain"]["firmware"]
        one, two = [(await api.post(VMS, machine(name))).data["spec"]["template"]["spec"]["domain"] for name in ("one", "two")]
    assert own == given["domain"]["firmware"]
    assert one["firmware"]["uuid"] != two["firmware"]["uuid"]


@scripted
async def test_the_host_architecture_decides_the_machine_type() -> None:
    async with Harness(settings=AdmissionSettings(architecture="arm64")) as api:
        made = (await api.post(VMS, machine())).data["spec"]["template"]["spec"]
    assert (made["architecture"], made["domain"]["machine"]) == ("arm64", {"type": "virt"})


@pytest.mark.spec("kubevirt", 167)
@scripted
async def test_an_instancetype_that_is_missing_is_a_warning() -> None:
    async with Harness() as api:
        said = await api.post(
            VMS, machine(hardware={"domain": {"devices": {}}}, instancetype={"name": "small"}, preference={"name": "linux"})
        )
        assert said.status == 201
        size, preference = said.warnings
        assert "spec.instancetype: Failure to find instancetype: virtualmachineclusterinstancetypes.instancetype.kubevirt.io" in size
        assert "spec.preference: Failure to find preference" in preference
        body = machine(hardware={"domain": {"devices": {}}}, instancetype={"name": "small", "kind": "Flavour"})
        odd = await api.post(VMS, {**body, "metadata": {"name": "odd"}})
        assert odd.status == 201 and "unknown kind Flavour" in odd.warnings[0]


@scripted
async def test_memory_beside_an_instancetype_that_is_missing_is_a_warning() -> None:
    async with Harness() as api:
        hardware = {"domain": {"devices": {}, "memory": {"guest": "128Mi"}}}
        said = await api.post(VMS, machine(hardware=hardware, instancetype={"name": "small"}))
        assert said.status == 201
        assert any("spec.template.spec.domain.memory.guest: conflicts with the instancetype" in each for each in said.warnings)


@scripted
async def test_the_status_of_a_new_machine_is_not_read() -> None:
    async with Harness() as api:
        said = await api.post(VMS, {**machine(), "status": {"volumeRequests": [{"addVolumeOptions": {"name": "Not a name"}}]}})
        assert said.status == 201
        assert "volumeRequests" not in (said.data.get("status") or {})


@scripted
async def test_a_template_without_a_spec_is_completed() -> None:
    async with Harness() as api:
        body = machine()
        body["spec"]["template"] = {"metadata": {"labels": {"a": "b"}}}
        said = await api.post(VMS, body)
        assert said.status == 201
        assert said.data["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"]


@pytest.mark.spec("kubevirt", 92)
@pytest.mark.parametrize(
    ("size", "hardware", "field"),
    [
        ({}, {"domain": {"devices": {}, "memory": {"guest": "128Mi"}}}, "domain.memory.guest"),
        ({}, {"domain": {"devices": {}, "cpu": {"sockets": 2}}}, "domain.cpu.sockets"),
        ({"ioThreadsPolicy": "auto"}, {"domain": {"devices": {}, "ioThreadsPolicy": "shared"}}, "domain.ioThreadsPolicy"),
        ({"nodeSelector": {"a": "b"}}, {"domain": {"devices": {}}, "nodeSelector": {"c": "d"}}, "nodeSelector"),
    ],
)
@scripted
async def test_what_the_instancetype_says_the_machine_may_not(size: dict[str, Any], hardware: dict[str, Any], field: str) -> None:
    async with Harness() as api:
        await sizes(api, {"cpu": {"guest": 2}, "memory": {"guest": "4Gi"}, **size})
        said = await api.post(VMS, machine(hardware=hardware, instancetype={"name": "small"}))
        assert said.status == 422
        assert "conflicts with selected instance type" in said.causes[f"spec.template.spec.{field}"]
        assert (await api.post(VMS, machine(hardware={"domain": {"devices": {}}}, instancetype={"name": "small"}))).status == 201


@scripted
async def test_the_needs_of_a_preference() -> None:
    async with Harness() as api:
        await sizes(api, wishes={"requirements": {"memory": {"guest": "8Gi"}}})
        body = machine(hardware={"domain": {"devices": {}}}, instancetype={"name": "small"}, preference={"name": "linux"})
        said = await api.post(VMS, body)
    assert "failure checking preference requirements" in said.causes["spec.instancetype"]


@scripted
async def test_matchers_are_completed_and_preferences_reach_the_machine() -> None:
    wishes = {"machine": {"preferredMachineType": "pc-q35-8.0"}, "volumes": {"preferredStorageClassName": "fast"}}
    async with Harness() as api:
        await sizes(api, wishes=wishes)
        claim = {"resources": {"requests": {"storage": "1Gi"}}}
        disk = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": claim}}
        volumes = [{"name": "root", "dataVolume": {"name": "root"}}]
        hardware = {"domain": {"devices": {"disks": [{"name": "root"}]}}, "volumes": volumes}
        body = machine(hardware=hardware, instancetype={"name": "small"}, preference={"name": "linux"}, dataVolumeTemplates=[disk])
        made = (await api.post(VMS, body)).data["spec"]
    assert made["instancetype"]["kind"] == "VirtualMachineClusterInstancetype"
    assert made["template"]["spec"]["domain"]["machine"] == {"type": "pc-q35-8.0"}
    assert made["dataVolumeTemplates"][0]["spec"]["storage"]["storageClassName"] == "fast"


LABELLED = {
    "metadata": {"name": "root", "labels": {"instancetype.kubevirt.io/default-instancetype": "small"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def inferring(policy: str | None = None) -> dict[str, Any]:
    hardware = {
        "domain": {"devices": {"disks": [{"name": "root"}]}},
        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
    }
    matcher = {"inferFromVolume": "root", **({"inferFromVolumeFailurePolicy": policy} if policy else {})}
    return machine(hardware=hardware, instancetype=matcher)


@pytest.mark.spec("kubevirt", 92)
@scripted
async def test_an_instancetype_is_inferred_from_the_labels_of_a_volume() -> None:
    async with Harness() as api:
        await sizes(api)
        refused = await api.post(VMS, inferring())
        assert refused.status == 422 and "not found" in refused.causes["spec.instancetype.inferFromVolume"]
        assert (await api.post("/api/v1/namespaces/default/persistentvolumeclaims", LABELLED)).status == 201
        made = (await api.post(VMS, inferring())).data["spec"]
    assert made["instancetype"] == {"name": "small", "kind": "VirtualMachineClusterInstancetype"}


@scripted
async def test_a_failed_inference_may_be_ignored() -> None:
    body = inferring("Ignore")
    body["spec"]["template"]["spec"]["domain"]["memory"] = {"guest": "1Gi"}
    async with Harness() as api:
        made = await api.post(VMS, body)
    assert made.status == 201 and "instancetype" not in made.data["spec"]


@scripted
async def test_memory_gives_way_to_an_inferred_instancetype_where_failures_are_ignored() -> None:
    body = inferring("Ignore")
    body["spec"]["template"]["spec"]["domain"]["memory"] = {"guest": "512Mi"}
    async with Harness() as api:
        await sizes(api)
        assert (await api.post("/api/v1/namespaces/default/persistentvolumeclaims", LABELLED)).status == 201
        made = await api.post(VMS, body)
    assert made.status == 201, made.data
    assert made.data["spec"]["instancetype"] == {"name": "small", "kind": "VirtualMachineClusterInstancetype"}
    assert "memory" not in made.data["spec"]["template"]["spec"]["domain"]


@scripted
async def test_a_running_machine_begins_as_pending() -> None:
    async with Harness() as api:
        made = (await api.post(VMIS, {**instance(), "status": {"phase": "Running"}})).data
    assert made["status"]["phase"] == "Pending"
    assert [each["phase"] for each in made["status"]["phaseTransitionTimestamps"]] == ["Pending"]
    assert made["metadata"]["finalizers"] == ["kubevirt.io/foregroundDeleteVirtualMachine"]


@scripted
async def test_users_change_neither_spec_nor_status_of_a_running_machine() -> None:
    async with Harness() as api:
        made = (await api.post(VMIS, instance())).data
        said = await api.merge(f"{VMIS}/web", {"spec": {"nodeSelector": {"a": "b"}}})
        assert said.status == 422 and "update of VMI object is restricted" in said.data["message"]
        quiet = await api.merge(f"{VMIS}/web", {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}})
        assert quiet.status == 200 and quiet.data["status"] == made["status"]
        said = await api.merge(f"{VMIS}/web", {"metadata": {"labels": {"kubevirt.io/nodeName": "x"}}})
        assert said.status == 422 and "reserved kubevirt.io/ labels" in said.data["message"]
        said = await api.post(VMIS, instance("other", labels={"kubevirt.io/created-by": "me"}))
        assert said.status == 422 and "metadata.labels" in said.causes


@scripted
async def test_labels_of_a_template_are_reserved_too() -> None:
    labels = {"template": {"metadata": {"labels": {"kubevirt.io/nodeName": "x"}}}}
    async with Harness() as api:
        await api.post(VMS, machine())
        said = await api.merge(f"{VMS}/web", {"spec": labels})
        assert said.status == 422 and "spec.template.metadata.labels" in said.causes


@scripted
async def test_controllers_change_both() -> None:
    async with Harness() as api:
        async with api.client() as client:
            label = {"kubevirt.io/created-by": "uid"}
            await client.create(INSTANCES, {**instance(labels=label), "status": {"virtualMachineRevisionName": "r"}}, "default")
            change = {"spec": {"nodeSelector": {"a": "b"}}, "status": {"phase": "Running"}}
            changed = await client.patch(INSTANCES, Key("default", "web"), merge_patch(change))
        async with api.client("system:serviceaccount:kubevirt:other") as client:
            await refused(client)
    assert changed["status"]["phase"] == "Running" and changed["status"]["virtualMachineRevisionName"] == "r"
    assert changed["spec"]["nodeSelector"] == {"a": "b"}


async def refused(client: Client) -> None:
    with pytest.raises(Invalid, match="restricted"):
        await client.patch(INSTANCES, Key("default", "web"), merge_patch({"spec": {"nodeSelector": None}}))


@scripted
async def test_a_spec_stays_while_a_snapshot_is_taken() -> None:
    async with Harness() as api:
        await api.post(VMS, machine())
        await api.merge(f"{VMS}/web/status", {"status": {"snapshotInProgress": "s"}})
        said = await api.merge(f"{VMS}/web", {"spec": {"runStrategy": "Always"}})
        assert said.status == 422 and "until snapshot s completes" in said.causes["spec"]
        targets = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
        async with api.client() as client:
            changed = await client.patch(targets, Key("default", "web"), merge_patch({"spec": {"runStrategy": "Always"}}))
    assert changed["spec"]["runStrategy"] == "Always"


@pytest.mark.parametrize(("asked", "again", "grace"), [(None, None, 30), (5, None, 5), (0, None, 0), (None, 0, 0), (5, 60, 5)], ids=str)
@scripted
async def test_a_deletion_leaves_the_guest_time(asked: int | None, again: int | None, grace: int) -> None:
    async with Harness() as api:
        await api.post(VMIS, instance())
        await api.delete(f"{VMIS}/web", None if asked is None else {"gracePeriodSeconds": asked})
        await api.delete(f"{VMIS}/web", None if again is None else {"gracePeriodSeconds": again})
        assert (await api.get(f"{VMIS}/web")).data["metadata"]["deletionGracePeriodSeconds"] == grace


@pytest.mark.spec("kubevirt", 60)
@scripted
async def test_the_old_version_is_served_and_the_spec_of_an_instance_stays() -> None:
    old = "/apis/kubevirt.io/v1alpha3/namespaces/default"
    async with Harness() as api:
        made = await api.post(f"{old}/virtualmachines", {**machine(), "apiVersion": "kubevirt.io/v1alpha3"})
        assert made.status == 201 and made.data["apiVersion"] == "kubevirt.io/v1alpha3"
        new = (await api.get(f"{VMS}/web")).data
        assert new["apiVersion"] == "kubevirt.io/v1" and new["spec"] == made.data["spec"]
        assert [each["metadata"]["uid"] for each in (await api.get(f"{old}/virtualmachines")).data["items"]] == [new["metadata"]["uid"]]
        changed = await api.merge(f"{old}/virtualmachines/web", {"spec": {"runStrategy": "Manual"}})
        assert changed.status == 200 and (await api.get(f"{VMS}/web")).data["spec"]["runStrategy"] == "Manual"
        assert (await api.post(f"{old}/virtualmachineinstances", {**instance(), "apiVersion": "kubevirt.io/v1alpha3"})).status == 201
        for path in (VMIS, f"{old}/virtualmachineinstances"):
            said = await api.merge(f"{path}/web", {"spec": {"domain": {"memory": {"guest": "2Gi"}}}})
            assert said.status == 422 and "update of VMI object is restricted" in said.data["message"]
            assert said.causes["spec"]
        assert (await api.delete(f"{old}/virtualmachines/web")).status == 200


def preset(name: str, domain: dict[str, Any]) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"size": "small"}}, "domain": {"devices": {}, **domain}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstancePreset", "metadata": {"name": name}, "spec": spec}


@scripted
async def test_presets_fill_what_an_instance_leaves_open() -> None:
    path = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancepresets"
    async with Harness() as api:
        for body in (preset("a", {"cpu": {"cores": 2}}), preset("c", {"memory": {"guest": "2Gi"}})):
            assert (await api.post(path, body)).status == 201
        made = await api.post(VMIS, instance(labels={"size": "small"}))
        assert made.data["spec"]["domain"]["cpu"]["cores"] == 2 and made.data["spec"]["domain"]["memory"]["guest"] == "1Gi"
        applied = [key for key in made.data["metadata"]["annotations"] if key.startswith("virtualmachinepreset.kubevirt.io/")]
        assert applied == ["virtualmachinepreset.kubevirt.io/a"]
        assert any("Preset c is not applied: spec.domain.memory.guest" in each for each in made.warnings), made.warnings
        assert (await api.post(VMIS, instance("other"))).data["spec"]["domain"]["cpu"]["cores"] == 1
        spared = {"virtualmachineinstancepresets.admission.kubevirt.io/exclude": "true"}
        alone = await api.post(VMIS, instance("alone", labels={"size": "small"}, annotations=spared))
        assert alone.data["spec"]["domain"]["cpu"]["cores"] == 1 and not alone.warnings
        assert (await api.post(path, preset("b", {"cpu": {"cores": 4}}))).status == 201
        refused = await api.post(VMIS, instance("torn", labels={"size": "small"}))
        assert refused.status == 422 and "presets 'a' and 'b'" in refused.causes["spec.domain.cpu.cores"]


@pytest.mark.spec("kubevirt", 54)
@pytest.mark.parametrize("verb", ["create", "update"])
@scripted
async def test_fields_that_nobody_knows(verb: str) -> None:
    wrong = {"domain": {**HARDWARE["domain"], "cpus": 4}}
    async with Harness() as api:
        if verb == "update":
            await api.post(VMS, machine())

        async def send(how: str, body: Any) -> Any:
            if verb == "create":
                return await api.post(f"{VMS}?fieldValidation={how}&dryRun=All", body)
            return await api.call("PATCH", f"{VMS}/web?fieldValidation={how}", body, content_type="application/merge-patch+json")

        body = machine(hardware=wrong)
        strict = await send("Strict", body)
        assert strict.status == (400 if verb == "create" else strict.status) and strict.status >= 400
        assert 'unknown field "spec.template.spec.domain.cpus"' in strict.data["message"]
        warned = await send("Warn", body)
        assert warned.status < 300 and any("spec.template.spec.domain.cpus" in each for each in warned.warnings)
        silent = await send("Ignore", body)
        assert silent.status < 300 and not any("cpus" in each for each in silent.warnings)
        assert "cpus" not in silent.data["spec"]["template"]["spec"]["domain"]
        twice = orjson.dumps(machine()).replace(b'"runStrategy":"Halted"', b'"runStrategy":"Halted","runStrategy":"Manual"')
        strict = await send("Strict", twice)
        assert strict.status >= 400 and 'duplicate field "spec.runStrategy"' in str(strict.data)
        warned = await send("Warn", twice)
        assert warned.status < 300 and any("duplicate field" in each and "spec.runStrategy" in each for each in warned.warnings)
        assert not (await send("Ignore", twice)).warnings


@pytest.mark.spec("kubevirt", 54)
@pytest.mark.parametrize("name", ["networkInterfaceMultiQueue", "networkInterfaceMultiqueue"])
@scripted
async def test_names_of_the_documents_are_known_and_stored_as_upstream_names_them(name: str) -> None:
    body = machine(hardware={"domain": {**HARDWARE["domain"], "devices": {name: True}}})
    async with Harness() as api:
        made = await api.post(f"{VMS}?fieldValidation=Strict", body)
    assert made.status == 201 and not made.warnings
    assert made.data["spec"]["template"]["spec"]["domain"]["devices"] == {"networkInterfaceMultiqueue": True}


@scripted
async def test_a_server_without_controllers_leaves_machines_to_others() -> None:
    async with Harness(settings=AdmissionSettings(controllers=False)) as api:
        made = (await api.post(VMS, machine(hardware={"domain": {"devices": {}}}, instancetype={"name": "gone"}))).data
        assert "finalizers" not in made["metadata"] and "firmware" not in made["spec"]["template"]["spec"]["domain"]
        assert (await api.delete(f"{VMS}/web")).status == 200 and (await api.get(f"{VMS}/web")).status == 404
        assert "status" not in (await api.post(VMIS, instance())).data
        told = await api.merge(f"{VMIS}/web", {"status": {"phase": "Running"}})
        assert told.data["status"] == {"phase": "Running"}
        said = await api.merge(f"{VMIS}/web", {"spec": {"nodeSelector": {"a": "b"}}})
        assert said.status == 422 and "restricted" in said.data["message"]


@scripted
async def test_a_change_of_metadata_repeats_the_warnings_of_the_rest_and_none_of_its_past_mistakes() -> None:
    # without memory: taken with a warning
    hardware = {
        "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
        "networks": [{"name": "default", "pod": {}}],
    }
    async with Harness() as api:
        made = await api.post(VMS, machine(hardware=hardware))
        # stored before the rule was known: a network without a card
        key, stored = StoreKey("virtualmachines.kubevirt.io", "default", "web"), made.data
        stored["spec"]["template"]["spec"]["networks"].append({"name": "other", "multus": {"networkName": "other"}})
        await api.store.put(key, api.store.revision, lambda revision: stamp(stored, revision)).committed()
        labelled = await api.merge(f"{VMS}/web", {"metadata": {"labels": {"tier": "front"}}})
        sent = labelled.data
        sent["metadata"]["annotations"]["example.com/ticket"] = "1"
        replaced = await api.put(f"{VMS}/web", sent)
        observed = await api.call("PATCH", f"{VMS}/web/status", {"status": {"ready": True}}, content_type="application/merge-patch+json")
        changed = await api.merge(f"{VMS}/web", {"spec": {"runStrategy": "Manual"}})
    assert made.status == 201 and "no memory requested" in made.warnings[0]
    for answer in (labelled, replaced):
        assert answer.status == 200 and answer.warnings == made.warnings, answer.data
    assert observed.status == 200 and observed.warnings == []
    assert changed.status == 422 and "spec.template.spec.networks[1].name" in changed.causes
