"""The extension service of the KubeVirt driver: features, commands in guests, deletion of images, and members that only Paddock sends."""

import json

import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.driver import extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.engine.machine import guest
from tests.coroutines import played
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, IMAGE, OWNER, Target, creation

COMMAND = ("/bin/echo", "a b", "$(x)")


async def kind(call: object) -> ErrorKind:
    with pytest.raises(ProviderError) as caught:
        await call  # type: ignore[misc]
    return caught.value.kind


@played
async def test_features(target: Target, /) -> None:
    found = await extensions(target.driver).get_features(x.GetFeaturesRequest())
    calls = {"image-delete", "transfer-delete", "exec"}
    nets = {"networks.qos", "networks.security", "networks.mtu", "networks.driver.queues"}
    assert set(found.features) == {"class", "disks", "clone.snapshotId", *nets, *calls}


@pytest.mark.spec("virtrigaud", 37)
@played
async def test_a_command_runs_in_the_guest(target: Target, /) -> None:
    vm_id = await target.made()
    ask = x.ExecRequest(vm_id=vm_id, command=COMMAND, timeout_seconds=5, owner=OWNER)
    assert await kind(extensions(target.driver).exec(ask)) is ErrorKind.CONFLICT
    assert await target.power(vm_id, m.PowerOp.ON) == ""
    (machine,) = target.host.engine.machines
    if not machine.observed.agent:
        assert await kind(extensions(target.driver).exec(ask)) is ErrorKind.CONFLICT
    machine.agent.connect()
    machine.agent.run = lambda argv: guest.GuestExecResult(3, b"out", b"err" * 100_000)
    found = await extensions(target.driver).exec(ask)
    assert (found.exit_code, found.stdout, len(found.stderr), found.truncated) == (3, b"out", x.MOST_OUTPUT, True)
    assert list(COMMAND) in [argv for name, argv in (each[:2] for each in machine.agent.calls if len(each) > 1) if name == "execute"]
    other = m.ObjectIdentity(uid="another", namespace="team", name="web")
    assert await kind(extensions(target.driver).exec(x.ExecRequest(vm_id=vm_id, command=COMMAND, owner=other))) is ErrorKind.CONFLICT
    assert await kind(extensions(target.driver).exec(x.ExecRequest(vm_id=vm_id))) is ErrorKind.INVALID_SPEC
    assert await kind(extensions(target.driver).exec(x.ExecRequest(vm_id="no/such", command=COMMAND))) is ErrorKind.NOT_FOUND


@played
async def test_a_prepared_image_is_deleted_and_nothing_else(target: Target, /) -> None:
    before = await target.names(*EVERYTHING)
    spec = json.dumps({"source": {"http": {"url": IMAGE.url}}})
    image = await target.driver.image_prepare(m.ImagePrepareRequest(image_json=spec, target_name="tiny"))
    assert await target.ends(image.task) == ""
    answer = await extensions(target.driver).image_delete(x.ImageDeleteRequest(image_id=image.prepared_image_id))
    assert await target.ends(answer.task) == ""
    assert await target.names(*EVERYTHING) == before
    assert (await extensions(target.driver).image_delete(x.ImageDeleteRequest(image_id=image.prepared_image_id))).task is None
    vm_id = await target.made()
    volume = (await target.names(EVERYTHING[2]))["datavolumes"][0]
    assert await kind(extensions(target.driver).image_delete(x.ImageDeleteRequest(image_id=volume))) is ErrorKind.CONFLICT
    assert await kind(extensions(target.driver).image_delete(x.ImageDeleteRequest())) is ErrorKind.INVALID_SPEC
    assert (await target.seen(vm_id)).exists


@pytest.mark.spec("virtrigaud", 43)
@played
async def test_a_disk_has_its_storage_class_and_its_bus(target: Target, /) -> None:
    api, body = target.host.api, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "paddock.io/local"}
    assert (await api.post("/apis/storage.k8s.io/v1/storageclasses", {**body, "metadata": {"name": "gold"}})).status == 201
    disk = p.DiskPayload(name="data", size_gib=1, storage_class="gold", scsi=p.ScsiPayload(shared_bus="noSharing"))
    answer = await target.driver.create(creation(disks=(disk,)))
    machine = (await api.get(f"{EVERYTHING[0]}/web")).data
    (template,) = [each for each in machine["spec"]["dataVolumeTemplates"] if each["metadata"]["name"].endswith("data")]
    assert template["spec"]["storage"]["storageClassName"] == "gold"
    (device,) = [each for each in machine["spec"]["template"]["spec"]["domain"]["devices"]["disks"] if each["name"] == "data"]
    assert device["disk"]["bus"] == "scsi" and answer.id
