"""VMClones: what becomes of each source, target and option (docs/spec/virtrigaud.md 1.7 and 2.6)."""

import asyncio
import base64
import json

import pytest

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock_drivers.fake.settings import ForeignMachine, RpcFault
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.cloning import failure, names, settled, sourced, until_gone, vmclone
from tests.unit.kubevirt.controllers.rigaudharness import API, image, machine, network, provider, rigaud, vmclass

# --- the way to a clone -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 80)
@pytest.mark.parametrize("kind", ["FullClone", "LinkedClone"])
@timeless
async def test_a_clone_is_bound_to_its_machine(kind: str) -> None:
    async with rigaud() as life:
        await sourced(life, tags=["blue"])
        target = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
        await life.make(vmclone(target=target, options={"type": kind, "powerOn": True}))
        status = await settled(life)
        assert (status["phase"], status["actualCloneType"], status["targetRef"]) == ("Ready", kind, {"name": "twin"})
        assert status["progress"] == {"totalDisks": 1, "completedDisks": 1, "overallPercentage": 100}
        assert status["startTime"] <= status["completionTime"]
        twin = await life.get("twin")
        metadata = twin["metadata"]
        assert metadata["labels"] == {"team": "a", "virtrigaud.io/adopted": "true"}
        clone = await life.get("copy", "VMClone")
        wanted = {"virtrigaud.io/cloned-from": "default/web", "virtrigaud.io/clone": "default/copy", "note": "b"}
        assert wanted.items() <= metadata["annotations"].items()
        assert metadata["annotations"]["virtrigaud.io/clone-uid"] == clone["metadata"]["uid"]
        assert twin["spec"]["providerRef"] == {"name": "lab"} and twin["spec"]["classRef"] == {"name": "small"}
        assert twin["spec"]["tags"] == ["blue"] and "imageRef" not in twin["spec"]
        assert twin["status"]["id"] == status["targetVMID"]
        assert (await life.ready("twin"))["powerState"] == "On"
        (made,) = life.driver.of("Clone")
        assert made.linked is (kind == "LinkedClone") and made.target_vm == m.ObjectIdentity(namespace="default", name="twin")
        assert await names(life) == ["twin", "web"]
        assert await life.events("copy") == ["Cloning", "Completed"]


@pytest.mark.spec("virtrigaud", 80)
@timeless
async def test_the_class_is_sent_in_both_spellings() -> None:
    async with rigaud() as life:
        await sourced(life)
        await life.make(vmclass("large", cpu=4, memory="8Gi", firmware="UEFI"), vmclone(target={"classRef": {"name": "large"}}))
        assert (await settled(life))["phase"] == "Ready"
        sent = json.loads(life.driver.of("Clone")[0].class_json)
        assert (sent["CPU"], sent["MemoryMiB"], sent["Firmware"]) == (4, 8192, "UEFI")
        assert (sent["cpu"], sent["memory"], sent["firmware"]) == (4, "8192Mi", "UEFI")
        twin = await life.ready("twin")
        assert twin["currentResources"] == {"cpu": 4, "memoryMiB": 8192} and life.driver.count("Reconfigure") == 0


@pytest.mark.spec("virtrigaud", 82)
@timeless
async def test_a_clone_without_power_on_is_off_and_stays_off() -> None:
    async with rigaud() as life:
        await sourced(life)
        await life.make(vmclone())
        assert (await settled(life))["phase"] == "Ready"
        assert (await life.get("twin"))["spec"]["powerState"] == "Off"
        await asyncio.sleep(600)
        assert {each.name: each.power_state for each in await life.machines()} == {"web": "On", "twin": "Off"}


@pytest.mark.spec("virtrigaud", 82)
@timeless
async def test_the_customization_reaches_the_provider() -> None:
    async with rigaud() as life:
        card = {"name": "lan", "networkRef": {"name": "lan"}, "ipAddress": "10.0.0.5", "macAddress": "02:00:00:00:00:05"}
        await sourced(life, networks=[card])
        secret = {"userdata": base64.b64encode(b"#cloud-config\npackages: [vim]\n").decode()}
        await life.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "seed"}, "data": secret})
        custom = {
            "hostname": "other",
            "domain": "example.org",
            "timeZone": "Europe/Berlin",
            "networks": [
                {"name": "lan", "ipAddress": "10.0.0.9", "subnetMask": "255.255.0.0", "gateway": "10.0.0.1", "dns": ["1.1.1.1", "9.9.9.9"]}
            ],
            "userData": {"cloudInit": {"secretRef": {"name": "seed"}}},
            "tags": ["green"],
            "certificates": [{"name": "corp", "data": "PEM"}],
            "guestCommands": [{"command": "/bin/a", "arguments": ["b c"], "workingDirectory": "/d e", "runAsUser": "u", "timeout": "1m"}],
        }
        await life.make(vmclone(customization=custom))
        status = await settled(life)
        assert status["phase"] == "Ready" and status["customizationStatus"]["completed"] is True
        assert set(status["customizationStatus"]["completedSteps"]) == set(custom)
        sent = json.loads(life.driver.of("Clone")[0].customize_json)
        assert sent["hostname"] == "other" and sent["tags"] == ["green"]
        address = {"ipAddress": "10.0.0.9", "subnetMask": "255.255.0.0", "gateway": "10.0.0.1", "dns": ["1.1.1.1", "9.9.9.9"]}
        assert sent["networks"] == [{"name": "lan", **address}]
        text = sent["userData"]["cloudInit"]["inline"]
        assert "packages: [vim]" in text and text.startswith("Content-Type: multipart/mixed")
        added = json.loads(next(line for line in text.splitlines() if line.startswith('{"')))
        assert (added["timezone"], added["ca_certs"]) == ("Europe/Berlin", {"trusted": ["PEM"]})
        assert text.index("fqdn: other.example.org") < text.index("packages: [vim]") < text.index('{"')
        assert added["runcmd"] == [["su", "-s", "/bin/sh", "-c", "cd '/d e' && timeout 60 /bin/a 'b c'", "u"]]
        (twin,) = (await life.get("twin"))["spec"]["networks"]
        assert (twin["ipAddress"], twin["prefix"], twin.get("macAddress")) == ("10.0.0.9", 16, None)


@timeless
async def test_the_document_of_the_source_stays_with_what_is_added_to_it() -> None:
    async with rigaud() as life:
        await sourced(life, userData={"cloudInit": {"inline": "#cloud-config\npackages: [vim]\n"}})
        await life.make(vmclone(customization={"timeZone": "UTC"}), vmclone("plain", target={"name": "other"}))
        assert (await settled(life))["phase"] == (await settled(life, "plain"))["phase"] == "Ready"
        one, other = (json.loads(each.customize_json or "{}") for each in life.driver.of("Clone"))
        assert "packages: [vim]" in one["userData"]["cloudInit"]["inline"] and other == {}


@pytest.mark.spec("virtrigaud", 82)
@pytest.mark.parametrize(("own", "sent"), [("hostname: web", True), ("  fqdn: web.example.org", True), ("packages: [vim]", False)])
@timeless
async def test_the_hostname_counts_before_that_of_the_source(own: str, sent: bool) -> None:
    async with rigaud() as life:
        await sourced(life, userData={"cloudInit": {"inline": f"#cloud-config\n{own}\n"}})
        await life.make(vmclone(customization={"hostname": "other"}))
        assert (await settled(life))["phase"] == "Ready"
        told = json.loads(life.driver.of("Clone")[0].customize_json)
        text = told.get("userData", {}).get("cloudInit", {}).get("inline", "")
        assert told["hostname"] == "other" and bool(text) is sent
        assert not sent or text.index("hostname: other") < text.index(own)


@timeless
async def test_disks_and_networks_of_the_target_are_made_before_it_gets_its_object() -> None:
    async with rigaud() as life:
        await sourced(life, disks=[{"name": "data", "sizeGiB": 5}])
        disks = [{"name": "data", "sizeGiB": 9}, {"name": "more", "sizeGiB": 2}]
        cards = [{"name": "lan", "networkRef": {"name": "wan"}}]
        await life.make(network("wan", network={"libvirt": {"networkName": "wide"}}), vmclone(target={"disks": disks, "networks": cards}))
        assert (await settled(life))["phase"] == "Ready"
        (asked,) = life.driver.of("Reconfigure")
        assert json.loads(asked.desired_json)["Networks"][0]["NetworkName"] == "wide"
        await life.ready("twin")
        twin = next(each for each in await life.machines() if each.name == "twin")
        assert [each.size_gib for each in twin.disks] == [10, 9, 2]
        assert life.driver.names() == ["Create", "Power", "Clone", "Reconfigure"]


@timeless
async def test_the_clone_keeps_the_disks_of_its_source() -> None:
    async with rigaud() as life:
        await sourced(life, disks=[{"name": "data", "sizeGiB": 5}])
        await life.make(vmclone(options={"powerOn": True}))
        assert (await settled(life))["progress"]["totalDisks"] == 2
        await life.ready("twin")
        await life.merge("twin", {"spec": {"disks": [{"name": "data", "sizeGiB": 7, "expandPolicy": "Online"}]}})
        await life.ready("twin")
        sizes = {each.name: [disk.size_gib for disk in each.disks] for each in await life.machines()}
        assert sizes == {"web": [10, 5], "twin": [10, 7]}


@timeless
async def test_placement_and_what_has_no_field() -> None:
    async with rigaud() as life:
        await sourced(life, placement={"storagePod": "pod", "cluster": "c"})
        storage = {"datastore": "fast", "folder": "f", "storageClass": "gold"}
        await life.make(vmclone(options={"storage": storage, "performance": {"priority": "High"}, "parallel": True}))
        assert (await settled(life))["phase"] == "Ready"
        placed = json.loads(life.driver.of("Clone")[0].placement_json)
        assert (placed["Datastore"], placed["StoragePod"], placed["Folder"], placed["Cluster"]) == ("fast", "", "f", "c")
        told = (await life.condition("Unsupported", "copy", "VMClone"))["message"]
        assert all(each in told for each in ("options.storage.storageClass", "options.performance.priority", "options.parallel"))


@pytest.mark.spec("virtrigaud", 3, 114, 115)
@timeless
async def test_a_clone_is_made_once_whatever_becomes_of_its_spec() -> None:
    async with rigaud() as life:
        await sourced(life)
        body = vmclone(options={"powerOn": True})
        await life.make(body)
        await settled(life)
        calls, before = life.driver.names(), await life.get("copy", "VMClone")
        await life.merge("copy", {"spec": body["spec"]}, "VMClone")
        await asyncio.sleep(5)
        assert await life.get("copy", "VMClone") == before
        await life.merge("copy", {"spec": {"options": {"powerOn": False}, "target": {"name": "other"}}}, "VMClone")
        status = await settled(life)
        assert (status["observedGeneration"], status["phase"], status["targetRef"]) == (2, "Ready", {"name": "twin"})
        assert "VirtualMachine default/twin is on; the spec has changed since" in status["message"]
        assert all(each["observedGeneration"] and each["reason"] and each["message"] for each in status["conditions"])
        await asyncio.sleep(600)
        assert life.driver.names() == calls and await names(life) == ["twin", "web"]


# --- what is refused --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 81, 104)
@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"options": {"type": "InstantClone"}}, "UnsupportedByProvider"),
        ({"options": {"includeSnapshots": True}}, "UnsupportedByProvider"),
        ({"target": {"placementRef": {"name": "spread"}}}, "UnsupportedByProvider"),
        ({"source": {"imageRef": {"name": "ubuntu"}}, "options": {"type": "LinkedClone"}}, "LinkedCloneUnsupported"),
        ({"source": {"imageRef": {"name": "ubuntu"}}}, "ValidationError"),
        ({"target": {"providerRef": {"name": "other"}}}, "UnsupportedSource"),
        ({"target": {"disks": [{"name": "data", "sizeGiB": 1}]}}, "ValidationError"),
        ({"customization": {"sysprep": {"enabled": True}}}, "UnsupportedByProvider"),
        ({"customization": {"guestCommands": [{"command": "a", "stage": "pre-customization"}]}}, "UnsupportedByProvider"),
        ({"customization": {"certificates": [{"name": "a", "data": "PEM", "store": "my"}]}}, "UnsupportedByProvider"),
        ({"customization": {"networks": [{"name": "wan", "ipAddress": "10.0.0.1"}]}}, "ValidationError"),
        ({"customization": {"timeZone": "UTC", "userData": {"ignition": {"inline": "{}"}}}}, "UnsupportedByProvider"),
    ],
)
@timeless
async def test_what_nobody_can_do_is_refused_without_asking(spec: Data, reason: str) -> None:
    async with rigaud() as life:
        await sourced(life, disks=[{"name": "data", "sizeGiB": 5}])
        await life.make(provider("other"), vmclone(**spec))
        assert (await failure(life))[0] == reason
        assert life.driver.names() == ["Create", "Power"]
        await life.delete("copy", "VMClone")
        await until_gone(life)


@pytest.mark.spec("virtrigaud", 81)
@timeless
async def test_a_linked_clone_needs_a_provider_that_can() -> None:
    async with rigaud(without=("linked_clones",)) as life:
        await sourced(life)
        await life.make(vmclone(options={"type": "LinkedClone"}))
        assert (await failure(life))[0] == "LinkedCloneUnsupported" and life.driver.count("Clone") == 0
        await life.merge("copy", {"spec": {"options": {"type": "FullClone"}}}, "VMClone")
        assert (await settled(life))["phase"] == "Ready"


def vmsnapshot() -> Data:
    return {"apiVersion": API, "kind": "VMSnapshot", "metadata": {"name": "nightly"}, "spec": {"vmRef": {"name": "web"}}}


@pytest.mark.spec("virtrigaud", 81)
@timeless
async def test_a_snapshot_is_cloned_as_it_was() -> None:
    async with rigaud() as life:
        await life.make(vmclone(source={"snapshotRef": {"name": "nightly"}}))
        await sourced(life, powerState="Off")
        await asyncio.sleep(10)
        assert await life.said("Ready", "copy", "VMClone") == ("False", "SourceNotFound")
        source = life.driver.driver._inventory.named("web")
        assert source is not None
        source.disks[0].data = b"then"
        await life.make(vmsnapshot())
        assert (await settled(life))["phase"] == "Ready"
        sent = json.loads(life.driver.of("Clone")[0].customize_json)
        assert sent["snapshotId"] == (await life.status("nightly", "VMSnapshot"))["snapshotID"]
        source.disks[0].data = b"now"
        await life.make(vmclone("later", source={"snapshotRef": {"name": "nightly"}}, target={"name": "later"}))
        assert (await settled(life, "later"))["phase"] == "Ready"
        twins = [life.driver.driver._inventory.named(name) for name in ("twin", "later")]
        assert [each.disks[0].data for each in twins if each is not None] == [b"then", b"then"]


@pytest.mark.spec("virtrigaud", 81)
@timeless
async def test_a_provider_that_cannot_clone_snapshots_is_not_asked() -> None:
    async with rigaud(without=("clone.snapshotId",)) as life:
        await sourced(life)
        await life.make(vmsnapshot(), vmclone(source={"snapshotRef": {"name": "nightly"}}))
        assert (await failure(life))[0] == "UnsupportedSource" and life.driver.count("Clone") == 0


@pytest.mark.spec("virtrigaud", 81)
@timeless
async def test_a_foreign_target_is_left_alone() -> None:
    async with rigaud() as life:
        await sourced(life)
        await life.make(machine("twin", powerState="Off"))
        before = await life.ready("twin")
        await life.make(vmclone())
        reason, message = await failure(life)
        assert reason == "TargetExists" and "VirtualMachine default/twin" in message
        assert life.driver.count("Clone") == 0 and (await life.status("twin"))["id"] == before["id"]


@pytest.mark.spec("virtrigaud", 81)
@timeless
async def test_a_foreign_machine_of_the_name_is_left_alone() -> None:
    async with rigaud(machines=(ForeignMachine(name="twin"),)) as life:
        await sourced(life)
        await life.make(vmclone())
        assert (await failure(life))[0] == "ProviderConflict"
        assert await names(life) == ["twin", "web"] and not await life.get("twin")
        assert life.driver.count("Delete") == 0


@timeless
async def test_another_namespace_has_to_consent() -> None:
    async with rigaud() as life:
        await sourced(life)
        for name, more in (("closed", {}), ("open", {"annotations": {"infra.virtrigaud.io/allowed-source-namespaces": "default"}})):
            said = await life.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **more}})
            assert said.status == 201
        await life.make(vmclone("one", target={"namespace": "closed"}))
        assert (await failure(life, "one"))[0] == "ConsumerNotAllowed"
        await life.make(vmclone("two", target={"namespace": "open"}))
        await asyncio.sleep(5)
        assert await life.said("Ready", "two", "VMClone") == ("False", "ConsumerNotAllowed")
        for kind, name in (("Provider", "lab"), ("VMClass", "small"), ("VMNetworkAttachment", "lan")):
            await life.merge(name, {"metadata": {"annotations": {"virtrigaud.io/consumer-namespaces": "open"}}}, kind)
        assert (await settled(life, "two"))["phase"] == "Ready"
        twin = await life.get("twin", namespace="open")
        assert twin["spec"]["classRef"] == {"name": "small", "namespace": "default"} and not await life.get("twin")


# --- images and templates ---------------------------------------------------------------------------------------------------


@timeless
async def test_an_image_becomes_a_machine() -> None:
    async with rigaud() as life:
        target = {
            "providerRef": {"name": "lab"},
            "classRef": {"name": "small"},
            "networks": [{"name": "lan", "networkRef": {"name": "lan"}}],
        }
        custom = {"hostname": "fresh", "networks": [{"name": "lan", "ipAddress": "10.0.0.9"}]}
        source = {"imageRef": {"name": "cloud"}}
        await life.make(vmclone(source=source, target=target, customization=custom, options={"powerOn": True}))
        await asyncio.sleep(5)
        assert (await life.said("Ready", "copy", "VMClone"))[1] == "WaitingForDependencies"
        await life.make(image("cloud", {"libvirt": {"url": "https://images.example/cloud.qcow2"}}))
        status = await settled(life)
        assert (status["phase"], status["actualCloneType"]) == ("Ready", "FullClone"), status
        (made,) = life.driver.of("Create")
        assert b"hostname: fresh" in made.user_data and json.loads(made.networks_json)[0]["StaticIP"] == "10.0.0.9"
        twin = await life.get("twin")
        assert twin["metadata"]["annotations"]["virtrigaud.io/cloned-from"] == "VMImage/default/cloud"
        assert "labels" not in twin["metadata"] and twin["status"]["id"] == status["targetVMID"]
        assert life.driver.names() == ["ImagePrepare", "Create", "Power"]


@pytest.mark.spec("virtrigaud", 81)
@timeless
async def test_a_template_is_an_image_that_needs_no_preparation() -> None:
    async with rigaud() as life:
        target = {"providerRef": {"name": "lab"}, "classRef": {"name": "small"}}
        await life.make(image("cloud", {"libvirt": {"url": "https://images.example/cloud.qcow2"}}))
        await life.make(vmclone(source={"templateRef": {"name": "ubuntu"}}, target=target))
        assert (await settled(life))["phase"] == "Ready"
        await life.make(vmclone("two", source={"templateRef": {"name": "cloud"}}, target={**target, "name": "two"}))
        assert (await failure(life, "two"))[0] == "UnsupportedSource" and not await life.get("two")


@timeless
async def test_an_image_whose_machine_fails_leaves_no_object() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=ErrorKind.INVALID_SPEC, count=0),)) as life:
        target = {"providerRef": {"name": "lab"}, "classRef": {"name": "small"}}
        await life.make(vmclone(source={"imageRef": {"name": "ubuntu"}}, target=target))
        reason, message = await failure(life)
        assert reason == "ProviderError" and "VirtualMachine default/twin" in message
        assert not await life.get("twin") and await life.machines() == []
