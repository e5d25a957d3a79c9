"""Machines from create to delete: what is made, whose it is, and what is left."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from tests.coroutines import played
from tests.kit.engine.fakehost import machine
from tests.kit.servers.interruption import Interruption
from tests.kit.servers.kubevirts import install_kubevirt
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, HARDWARE, IMAGE, OWNER, SETTINGS, Target, creation

OTHER = m.ObjectIdentity(uid="99999999-2222-4333-8444-555555555555", namespace="other", name="web")
FULL: dict[str, Any] = {
    "user_data": b"#cloud-config\npassword: secret\n",
    "meta_data": b"local-hostname: shop\n",
    "networks": (p.NetworkPayload(name="lan", bridge="br0", vlan=12, static_ip="10.1.0.7", prefix=16, gateway="10.1.0.1"),),
    "disks": (p.DiskPayload(name="data", size_gib=3, type="thick"),),
    "placement": p.PlacementPayload(host="host"),
    "tags": ("red", "blue"),
}


@played
async def test_from_create_to_delete(target: Target, /) -> None:
    before = await target.names(*EVERYTHING)
    vm_id = await target.made(**FULL)
    seen = await target.seen(vm_id)
    assert (seen.exists, seen.power_state, seen.ips, seen.console_url) == (True, "Off", (), "")
    # A machine is never started by its creation.
    await asyncio.sleep(60)
    assert (await target.names(EVERYTHING[1])) == {"virtualmachineinstances": []}
    assert await target.power(vm_id, m.PowerOp.ON) == ""
    assert (await target.seen(vm_id)).power_state == "On"
    assert await target.power(vm_id, m.PowerOp.SHUTDOWN_GRACEFUL, 30) == ""
    answer = await target.driver.delete(m.DeleteRequest(id=vm_id))
    assert await target.ends(answer.task) == ""
    await asyncio.sleep(30)
    assert await target.names(*EVERYTHING) == before
    assert not (await target.seen(vm_id)).exists
    assert await target.driver.delete(m.DeleteRequest(id=vm_id)) == m.TaskResponse()


@played
async def test_everything_of_a_request_is_in_the_machine(target: Target, /) -> None:
    await target.made(**FULL)
    vm = await target.host.vm()
    spec = vm["spec"]["template"]["spec"]
    domain = spec["domain"]
    assert domain["cpu"]["sockets"] == 2 and domain["cpu"]["cores"] == 1 and domain["memory"]["guest"] == "1024Mi"
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "host"} and spec["hostname"] == "shop"
    assert vm["metadata"]["labels"]["virtrigaud.io/owner-uid"] == OWNER.uid
    assert json.loads(vm["metadata"]["annotations"]["virtrigaud.io/tags"]) == ["red", "blue"]
    assert json.loads(vm["metadata"]["annotations"]["virtrigaud.io/disks"]) == {"rootdisk": 2, "data": 3}
    # Objects that are only there to be translated leave no trace.
    assert not {"virtrigaud.io/class", "virtrigaud.io/provider", "virtrigaud.io/incomplete"} & vm["metadata"]["annotations"].keys()
    templates = {each["metadata"]["name"]: each["spec"] for each in vm["spec"]["dataVolumeTemplates"]}
    assert templates["web-rootdisk"]["source"]["http"] == {"url": IMAGE.url, "checksum": f"sha256:{'a' * 64}"}
    assert templates["web-rootdisk"]["storage"]["resources"]["requests"]["storage"] == "2Gi"
    assert templates["web-data"]["preallocation"] is True
    # The guest's document is in a Secret, and nowhere else.
    volume = next(each["cloudInitNoCloud"] for each in spec["volumes"] if "cloudInitNoCloud" in each)
    assert volume["secretRef"] == {"name": "web-userdata"} and "10.1.0.7/16" in volume["networkData"]
    assert "password" not in json.dumps(vm)
    definition = (await target.host.api.get(f"{EVERYTHING[5]}/web-lan-proxmox")).data
    assert '"bridge":"br0"' in definition["spec"]["config"] and '"vlan":12' in definition["spec"]["config"]
    for path, name in ((EVERYTHING[4], "web-userdata"), (EVERYTHING[5], "web-lan-proxmox"), (EVERYTHING[2], "web-data")):
        owners = (await target.host.api.get(f"{path}/{name}")).data["metadata"]["ownerReferences"]
        assert [each["uid"] for each in owners] == [vm["metadata"]["uid"]]


@played
async def test_a_second_create_answers_with_the_machine_of_the_owner(target: Target, /) -> None:
    vm_id = await target.made()
    target.again()
    assert (await target.driver.create(creation())).id == vm_id
    # The owner has it under another name, too: renaming at the manager makes no second one.
    assert (await target.driver.create(creation("shop"))).id == vm_id
    assert (await target.names(EVERYTHING[0])) == {"virtualmachines": ["web"]}


@played
async def test_two_creates_at_once_make_one_machine(target: Target, /) -> None:
    answers = await asyncio.gather(*(KubeVirtDriver(target.host.api.client(), SETTINGS).create(creation(**FULL)) for _ in range(4)))
    assert len({each.id for each in answers}) == 1
    assert (await target.names(EVERYTHING[0], EVERYTHING[4])) == {"virtualmachines": ["web"], "secrets": ["web-userdata"]}


@pytest.mark.parametrize("owner", [OTHER, None], ids=["another", "none"])
@played
async def test_a_machine_of_somebody_else_is_never_taken_over(target: Target, /, owner: m.ObjectIdentity | None) -> None:
    await target.made()
    with pytest.raises(ProviderError, match="one of this name exists and belongs to team/web") as error:
        await target.driver.create(creation(owner=owner))
    assert error.value.kind is ErrorKind.CONFLICT


@played
async def test_a_foreign_machine_is_never_taken_over(target: Target, /) -> None:
    await target.host.make(machine(strategy="Halted"))
    before = (await target.host.vm())["metadata"]["resourceVersion"]
    for owner in (OWNER, None):
        with pytest.raises(ProviderError) as error:
            await target.driver.create(creation(owner=owner))
        assert error.value.kind is ErrorKind.CONFLICT
    assert (await target.host.vm())["metadata"]["resourceVersion"] == before


@played
async def test_without_an_owner_the_same_request_is_the_same_machine(target: Target, /) -> None:
    vm_id = await target.made(owner=None)
    target.again()
    assert (await target.driver.create(creation(owner=None))).id == vm_id
    larger = msgspec.structs.replace(HARDWARE, cpu=4)
    with pytest.raises(ProviderError) as error:
        await target.driver.create(creation(owner=None, hardware=larger))
    assert error.value.kind is ErrorKind.CONFLICT


class Cut(Interruption):
    """A connection that is lost before or after a write."""

    def __init__(self, inner: Interruption, number: int, *, after: bool) -> None:
        super().__init__(inner)
        self._number, self._after = number, after
        self.seen = 0

    async def send(self, ask: TransportRequest) -> TransportResponse:
        mine = ask.method != "GET" and self.seen == self._number
        self.seen += ask.method != "GET"
        if mine and not self._after:
            raise Unreachable("the connection is lost", sent=True)
        answer = await super().send(ask)
        if mine:
            raise Unreachable("the connection is lost", sent=True)
        return answer


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@played
async def test_a_create_that_ends_anywhere_goes_on_and_makes_one_machine(target: Target, /, after: bool) -> None:
    before = await target.names(*EVERYTHING)
    number, ends = 0, 0
    while True:
        cut = Cut(Interruption.of(target.host.api), number, after=after)
        driver = KubeVirtDriver(Client(cut), SETTINGS)
        with suppress(ProviderError):
            await driver.create(creation(**FULL))
            ends -= 1
        ends += 1
        target.again()
        vm_id = await target.made(**FULL)
        assert (await target.names(*EVERYTHING[:1], *EVERYTHING[4:6])) == {
            "virtualmachines": ["web"],
            "secrets": ["web-userdata"],
            "network-attachment-definitions": ["web-lan-proxmox"],
        }
        assert await target.power(vm_id, m.PowerOp.ON) == ""
        assert await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task) == ""
        await asyncio.sleep(20)
        assert await target.names(*EVERYTHING) == before
        if cut.seen <= number:
            break
        number += 1
    # The machine, its Secret, its network, and the word that it is complete, which the machine's own controller comes before once.
    assert ends == 5


@played
async def test_an_interrupted_create_is_told_by_its_task(target: Target, /) -> None:
    cut = Cut(Interruption.of(target.host.api), 1, after=False)
    with pytest.raises(ProviderError):
        await KubeVirtDriver(Client(cut), SETTINGS).create(creation(**FULL))
    uid = (await target.host.vm())["metadata"]["uid"]
    assert "was interrupted; create it again" in await target.ends(m.TaskRef(id=f"create:web/{uid}"))


@played
async def test_an_image_that_is_not_there_fails_the_task_and_not_for_ever(target: Target, /) -> None:
    answer = await target.driver.create(creation(image=p.ImagePayload(url="https://images.example/gone.qcow2")))
    error = await target.ends(answer.task, 3600)
    assert "disk web-rootdisk cannot be filled" in error and "404" in error
    # The machine can be deleted all the same.
    assert await target.ends((await target.driver.delete(m.DeleteRequest(id=answer.id))).task) == ""


@played
async def test_a_running_machine_is_stopped_and_deleted(target: Target, /) -> None:
    vm_id = await target.running()
    (await target.host.running()).deaf = True
    answer = await target.driver.delete(m.DeleteRequest(id=vm_id))
    assert await target.ends(answer.task, 20) == ""
    assert (await target.names(EVERYTHING[1])) == {"virtualmachineinstances": []}


@played
async def test_a_machine_is_not_changed_for_somebody_else(target: Target, /) -> None:
    vm_id = await target.made()
    before = (await target.host.vm())["metadata"]["resourceVersion"]
    text = p.encode(p.DesiredPayload(machine_class=HARDWARE))
    for call in (
        target.driver.delete(m.DeleteRequest(id=vm_id, owner=OTHER)),
        target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.ON, owner=OTHER)),
        target.driver.reconfigure(m.ReconfigureRequest(id=vm_id, desired_json=text, owner=OTHER)),
    ):
        with pytest.raises(ProviderError, match="it belongs to team/web") as error:
            await call
        assert error.value.kind is ErrorKind.CONFLICT
    assert (await target.host.vm())["metadata"]["resourceVersion"] == before
    await target.driver.delete(m.DeleteRequest(id=vm_id, owner=OWNER))


@played
async def test_an_id_is_of_one_machine_only(target: Target, /) -> None:
    vm_id = await target.made()
    await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task)
    await asyncio.sleep(20)
    again = await target.made()
    assert again != vm_id and not (await target.seen(vm_id)).exists and (await target.seen(again)).exists
    assert await target.driver.delete(m.DeleteRequest(id=vm_id)) == m.TaskResponse()
    assert (await target.seen(again)).exists
    for strange in ("", "web", "web/", "no such id", "../web/1"):
        assert not (await target.seen(strange)).exists


@played
async def test_an_imported_claim_boots_and_stays_with_whom_it_belongs(target: Target, /) -> None:
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "old"}}
    await target.host.make({**body, "spec": {"source": {"blank": {}}, "storage": storage}})
    await asyncio.sleep(20)
    vm_id = await target.made(image=p.ImagePayload(path="/var/lib/libvirt/images/old.qcow2", format="qcow2"))
    volumes = (await target.host.vm())["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["persistentVolumeClaim"] == {"claimName": "old"}
    await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task)
    await asyncio.sleep(20)
    assert (await target.names(EVERYTHING[3])) == {"persistentvolumeclaims": ["old"]}


@played
async def test_machines_are_listed_with_those_of_others(target: Target, /) -> None:
    await target.running(**FULL)
    await target.host.make(machine("alien", "Halted"))
    found = (await target.driver.list_vms(m.ListVMsRequest())).vms
    assert [(each.name, each.power_state, each.cpu, each.memory_mib) for each in found] == [
        ("alien", "Off", 1, 128),
        ("web", "On", 2, 1024),
    ]
    alien, web = found
    assert (alien.provider_raw["managed"], web.provider_raw["managed"], web.provider_raw["owner"]) == ("false", "true", "team/web")
    assert [(each.id, each.path, each.format) for each in web.disks] == [
        ("rootdisk", "web-rootdisk", "raw"),
        ("data", "web-data", "raw"),
    ]
    assert web.networks[0].name == "lan" and web.networks[0].mac.startswith("02:")
    # An id of a list is one that can be worked with.
    assert await target.power(alien.id, m.PowerOp.ON) == ""
    assert (await target.seen(alien.id)).power_state == "On"


@played
async def test_a_gate_that_the_target_has_off_is_named_before_anything_is_made(target: Target, /) -> None:
    with_tpm = msgspec.structs.replace(HARDWARE, security_profile=p.SecurityPayload(tpm_enabled=True))
    await install_kubevirt(target.host.api, "v1.3.0")
    before = await target.names(*EVERYTHING)
    with pytest.raises(ProviderError) as refused:
        await target.driver.create(creation(hardware=with_tpm, **FULL))
    assert (refused.value.kind, "tpm.persistent needs VMPersistentState" in str(refused.value)) == (ErrorKind.NOT_SUPPORTED, True)
    assert "featureGates of KubeVirt virt/kubevirt" in str(refused.value)
    assert await target.names(*EVERYTHING) == before
    await target.made(**FULL)
