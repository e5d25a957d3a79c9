"""The privileges that the guide asks for are enough for all that the driver does."""

import json
import re
from pathlib import Path

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads as p
from tests.coroutines import played_by
from tests.unit.drivers.proxmox.conftest import IMAGE_URL, Stage, play

PAGE = Path(__file__).resolve().parents[4] / "docs/providers/proxmox.md"
ROW = re.compile(r"^\| (?P<privilege>[A-Z]\w+(?:\.\w+)+) \| (?P<path>/\w*) \|", re.MULTILINE)

HARDWARE = p.ClassPayload(
    cpu=2,
    memory_mib=2048,
    firmware="UEFI",
    disk_defaults=p.DiskDefaultsPayload(size_gib=4),
    security_profile=p.SecurityPayload(tpm_enabled=True),
    resource_limits=p.LimitsPayload(cpu_shares=500, memory_reservation_mib=512),
)


def grants() -> dict[str, list[str]]:
    """The privileges of the guide's table, by path."""
    found: dict[str, list[str]] = {}
    for row in ROW.finditer(PAGE.read_text()):
        found.setdefault(row["path"], []).append(row["privilege"])
    return found


def test_the_command_and_the_table_name_the_same_privileges() -> None:
    command = re.search(r'-privs "([^"]+)"', PAGE.read_text())
    assert command is not None
    assert sorted(command[1].split()) == sorted(each for named in grants().values() for each in named)


@played_by(play)
async def test_a_token_with_these_privileges_can_do_everything(stage: Stage, /) -> None:
    access, driver = stage.simulator.access, stage.driver
    stage.transport.token = access.add_token("root@pam", "driver", separated=True)
    for path, privileges in grants().items():
        access.grant(path, "root@pam!driver", *privileges)
    checked = await driver.validate(m.ValidateRequest())
    assert checked.ok, checked.message
    request = stage.request(
        image_json=p.encode(p.ImagePayload(url=IMAGE_URL, format="qcow2")),
        class_json=p.encode(HARDWARE),
        user_data=b"#!/bin/sh\n",
        disks_json=p.encode_list((p.DiskPayload(name="data", size_gib=1),)),
        networks_json=p.encode_list((p.NetworkPayload(name="a", bridge="vmbr1"),)),
        tags=("prod",),
    )
    await stage.make(request)
    vm = await stage.make(stage.request("other", user_data=b"#cloud-config\nuser: me\n"))
    await stage.power(vm, m.PowerOp.ON)
    assert (await driver.describe(m.DescribeRequest(id=vm))).ips
    assert (await driver.exec(x.ExecRequest(vm_id=vm, command=("/bin/true",)))).exit_code == 0
    wanted = p.DesiredPayload(
        name="other", machine_class=p.ClassPayload(cpu=2, memory_mib=1024), disks=(p.DiskPayload(name="data", size_gib=1),)
    )
    changed = await driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=p.encode(wanted)))
    assert await stage.finish(changed.task) == ""
    taken = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm, name_hint="before", include_memory=True))
    assert await stage.finish(taken.task) == ""
    back = await driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=vm, snapshot_id="before"))
    assert await stage.finish(back.task) == ""
    cut = await driver.snapshot_delete(m.SnapshotDeleteRequest(vm_id=vm, snapshot_id="before"))
    assert await stage.finish(cut.task) == ""
    copied = await driver.clone(m.CloneRequest(source_vm_id=vm, target_name="copy", customize_json=json.dumps({"hostname": "copy"})))
    assert await stage.finish(copied.task) == ""
    assert (await driver.list_datastores(x.ListDatastoresRequest())).datastores
    for each in (await driver.list_vms(m.ListVMsRequest())).vms:
        assert await stage.finish((await driver.delete(m.DeleteRequest(id=each.id))).task) == ""
    image = next(each.volid for each in stage.simulator.cluster.volumes.values() if each.kind == "import")
    await driver.image_delete(x.ImageDeleteRequest(image_path=image))
    left = {each.kind for each in stage.simulator.cluster.volumes.values() if each.vmid != 9000}
    assert not left & {"import", "iso", "images"}
