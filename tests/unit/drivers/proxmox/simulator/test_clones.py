"""The simulator against known facts of the real API: clones, templates and what storages can do."""

import pytest

from tests.kit.proxmox.client import Api, Refused
from tests.kit.proxmox.simulator import Simulator

QEMU = "/nodes/pve1/qemu"


@pytest.fixture
def api() -> Api:
    simulator = Simulator(("pve1", "pve2", "pve3"), monotonic=lambda: 0.0)
    return Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))


def template(api: Api, storage: str, vmid: int = 900) -> str:
    upid = api.post(QEMU, vmid=vmid, name="debian", scsi0=f"{storage}:4", ide2=f"{storage}:cloudinit", net0="virtio,bridge=vmbr0")
    assert api.done(upid) == "OK"
    volume = next(each for each in api.simulator.cluster.volumes.values() if "disk-0" in each.volid)
    api.simulator.park.volumes.change(volume, volume.content.written(0, b"the system"))
    assert api.done(api.post(f"{QEMU}/{vmid}/template")) == "OK"
    return f"{QEMU}/{vmid}"


@pytest.mark.parametrize(
    ("storage", "base", "linked"),
    [
        ("local-lvm", "local-lvm:base-900-disk-0", "local-lvm:vm-100-disk-0"),
        ("tank", "tank:base-900-disk-0", "tank:base-900-disk-0/vm-100-disk-0"),
        ("shared", "shared:900/base-900-disk-0.raw", "shared:900/base-900-disk-0.raw/100/vm-100-disk-0.qcow2"),
    ],
)
def test_a_linked_clone_stands_on_the_templates_disk(api: Api, storage: str, base: str, linked: str) -> None:
    source = template(api, storage)
    assert api.get(f"{source}/config")["scsi0"] == f"{base},size=4G"
    assert api.done(api.post(f"{source}/clone", newid=100, name="web")) == "OK"
    config = api.get(f"{QEMU}/100/config")
    assert config["scsi0"] == f"{linked},size=4G"
    assert config["net0"] != api.get(f"{source}/config")["net0"]
    assert "template" not in config
    volume = api.simulator.cluster.volume(linked, "pve1")
    assert volume is not None and volume.content.read(0, 10) == b"the system"
    status = api.done(api.delete(source))
    assert status == ("OK" if storage == "local-lvm" else f"base volume '{base}' is still in use by linked cloned")


def test_a_full_clone_goes_where_it_is_told(api: Api) -> None:
    source = template(api, "local-lvm")
    assert api.done(api.post(f"{source}/clone", newid=100, full=1, storage="shared", format="qcow2")) == "OK"
    config = api.get(f"{QEMU}/100/config")
    assert config["scsi0"] == "shared:100/vm-100-disk-0.qcow2,size=4G"
    assert config["name"] == "Copy-of-VM-debian"
    assert config["ide2"].startswith("shared:100/vm-100-cloudinit.qcow2,")


def test_clones_that_cannot_be(api: Api) -> None:
    source = template(api, "local-lvm")
    with pytest.raises(Refused, match="500 parameter 'storage' not allowed for linked clones"):
        api.post(f"{source}/clone", newid=100, storage="shared")
    with pytest.raises(Refused, match="500 unable to create VM 900: config file already exists"):
        api.post(f"{source}/clone", newid=900)
    with pytest.raises(Refused, match=r"500 can't clone VM to node 'pve2' \(VM uses local storage\)"):
        api.post(f"{source}/clone", newid=100, target="pve2")
    with pytest.raises(Refused, match="500 can't clone to non-shared storage 'local-lvm'"):
        api.post(f"{source}/clone", newid=100, full=1, target="pve2", storage="local-lvm")
    assert api.done(api.post(f"{source}/status/start")) == "you can't start a vm if it's a template"
    assert api.done(api.post(QEMU, vmid=101, scsi0="local-lvm:1")) == "OK"
    with pytest.raises(Refused, match=r"500 Linked clone feature is not supported for 'local-lvm:vm-101-disk-0' \(scsi0\)"):
        api.post(f"{QEMU}/101/clone", newid=102, full=0)


def test_a_clone_on_shared_storage_can_go_to_another_node(api: Api) -> None:
    source = template(api, "shared")
    upid = api.post(f"{source}/clone", newid=100, target="pve2", name="web")
    assert api.get(f"{QEMU}/100/config")["lock"] == "clone"
    assert api.done(upid) == "OK"
    assert api.get("/nodes/pve2/qemu/100/config")["name"] == "web"


def test_a_moved_disk_leaves_its_source_behind(api: Api) -> None:
    assert api.done(api.post(QEMU, vmid=100, scsi0="local-lvm:1")) == "OK"
    assert api.done(api.post(f"{QEMU}/100/move_disk", disk="scsi0", storage="shared")) == "OK"
    config = api.get(f"{QEMU}/100/config")
    assert config["scsi0"] == "shared:100/vm-100-disk-0.raw,size=1G"
    assert config["unused0"] == "local-lvm:vm-100-disk-0"
    assert api.done(api.post(f"{QEMU}/100/move_disk", disk="scsi0", storage="tank", delete=1)) == "OK"
    assert {each.volid for each in api.simulator.cluster.volumes.values()} == {"local-lvm:vm-100-disk-0", "tank:vm-100-disk-0"}
