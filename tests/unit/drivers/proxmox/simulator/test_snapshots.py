"""The simulator against known facts of the real API: snapshots, agents, cloud-init, migration and pools."""

from typing import Any

import pytest

from tests.kit.proxmox import cloudinit
from tests.kit.proxmox.client import Api, Refused
from tests.kit.proxmox.inventory import Guest
from tests.kit.proxmox.simulator import Simulator

QEMU = "/nodes/pve1/qemu"


@pytest.fixture
def api() -> Api:
    simulator = Simulator(("pve1", "pve2", "pve3"), monotonic=lambda: 0.0)
    return Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))


def made(api: Api, **values: Any) -> str:
    assert api.done(api.post(QEMU, vmid=100, **{"name": "web", "memory": 1024, "scsi0": "local-lvm:1", **values})) == "OK"
    return f"{QEMU}/100"


def write(api: Api, text: bytes) -> None:
    volume = next(each for each in api.simulator.cluster.volumes.values() if "disk-0" in each.volid)
    api.simulator.park.volumes.change(volume, volume.content.written(0, text))


def read(api: Api, length: int) -> bytes:
    return next(each for each in api.simulator.cluster.volumes.values() if "disk-0" in each.volid).content.read(0, length)


def test_a_rollback_brings_back_data_and_hardware(api: Api) -> None:
    vm = made(api)
    write(api, b"one")
    assert api.done(api.post(f"{vm}/snapshot", snapname="s1", description="first")) == "OK"
    write(api, b"two")
    api.put(f"{vm}/config", cores=4, scsi1="local-lvm:1")
    assert api.done(api.post(f"{vm}/snapshot", snapname="s2")) == "OK"
    found = {each["name"]: each.get("parent") for each in api.get(f"{vm}/snapshot")}
    assert found == {"s1": None, "s2": "s1", "current": "s2"}
    assert api.done(api.post(f"{vm}/snapshot/s1/rollback")) == "OK"
    config = api.get(f"{vm}/config")
    assert read(api, 3) == b"one"
    assert "cores" not in config
    assert "scsi1" not in config
    assert config["unused0"] == "local-lvm:vm-100-disk-1"
    assert config["parent"] == "s1"
    assert api.done(api.delete(f"{vm}/snapshot/s1")) == "OK"
    assert {each["name"]: each.get("parent") for each in api.get(f"{vm}/snapshot")} == {"s2": None, "current": None}


def test_memory_is_kept_if_the_machine_runs(api: Api) -> None:
    vm = made(api)
    assert api.done(api.post(f"{vm}/snapshot", snapname="off", vmstate=1)) == "OK"
    api.done(api.post(f"{vm}/status/start"))
    assert api.done(api.post(f"{vm}/snapshot", snapname="on", vmstate=1)) == "OK"
    found = {each["name"]: each.get("vmstate") for each in api.get(f"{vm}/snapshot")}
    assert found == {"off": 0, "on": 1, "current": None}
    assert "local-lvm:vm-100-state-on" in {each.volid for each in api.simulator.cluster.volumes.values()}
    assert api.done(api.post(f"{vm}/snapshot/off/rollback")) == "OK"
    assert api.get(f"{vm}/status/current")["status"] == "stopped"
    assert api.done(api.post(f"{vm}/snapshot/on/rollback")) == "OK"
    assert api.get(f"{vm}/status/current")["status"] == "running"
    assert api.done(api.delete(f"{vm}/snapshot/on")) == "OK"
    assert {each.volid for each in api.simulator.cluster.volumes.values()} == {"local-lvm:vm-100-disk-0"}


def test_snapshots_that_cannot_be(api: Api) -> None:
    vm = made(api, scsi0="shared:1")
    assert api.get(f"{vm}/feature", feature="snapshot")["hasFeature"] == 0
    assert api.done(api.post(f"{vm}/snapshot", snapname="s1")) == "snapshot feature is not available"
    with pytest.raises(Refused, match=r"500 unable to use snapshot name 'current' \(reserved name\)"):
        api.post(f"{vm}/snapshot", snapname="current")
    with pytest.raises(Refused) as refused:
        api.post(f"{vm}/snapshot", snapname="x")
    assert refused.value.errors == {"snapname": "invalid format - invalid configuration ID 'x'\n"}
    with pytest.raises(Refused) as refused:
        api.post(f"{vm}/snapshot", snapname="a b")
    assert refused.value.errors == {"snapname": "invalid format - invalid configuration ID 'a b'\n"}
    assert api.done(api.delete(f"{vm}/snapshot/s1")) == "snapshot 's1' does not exist"
    assert api.get(f"{vm}/config").get("lock") is None


def test_zfs_knows_only_the_newest_snapshot(api: Api) -> None:
    vm = made(api, scsi0="tank:1")
    for name in ("s1", "s2"):
        assert api.done(api.post(f"{vm}/snapshot", snapname=name)) == "OK"
    assert api.done(api.post(f"{vm}/snapshot/s1/rollback")) == "can't rollback, 's1' is not most recent snapshot on 'tank:vm-100-disk-0'"
    assert api.done(api.post(f"{vm}/snapshot/s2/rollback")) == "OK"


def test_a_snapshot_locks_the_machine_while_it_is_made(api: Api) -> None:
    vm = made(api)
    upid = api.post(f"{vm}/snapshot", snapname="s1")
    assert api.get(f"{vm}/config")["lock"] == "snapshot"
    second = api.post(f"{vm}/snapshot", snapname="s2")
    assert api.done(second) == "VM is locked (snapshot)"
    assert api.done(upid) == "OK"


def test_the_agent(api: Api) -> None:
    api.simulator.cluster.new_guest = lambda vmid, name: Guest(agent_seconds=20, files={"/etc/motd": b"hello"})
    vm = made(api, net0="virtio,bridge=vmbr0", ipconfig0="ip=192.0.2.10/24,gw=192.0.2.1")
    place = f"{vm}/agent/network-get-interfaces"
    with pytest.raises(Refused, match="500 No QEMU guest agent configured"):
        api.get(place)
    api.put(f"{vm}/config", agent=1)
    with pytest.raises(Refused, match="500 VM 100 is not running"):
        api.get(place)
    api.done(api.post(f"{vm}/status/start"))
    with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
        api.get(place)
    api.simulator.clock.skip(20)
    lo, eth0 = api.get(place)["result"]
    assert (lo["name"], eth0["ip-addresses"][0]["ip-address"]) == ("lo", "192.0.2.10")
    assert api.get(f"{vm}/config")["net0"].partition(",")[0].lower() == f"virtio={eth0['hardware-address']}"
    pid = api.post(f"{vm}/agent/exec", command=["echo", "a", "b"])["pid"]
    assert api.get(f"{vm}/agent/exec-status", pid=pid) == {"exited": 1, "exitcode": 0, "out-data": "a b\n"}
    assert api.get(f"{vm}/agent/file-read", file="/etc/motd")["content"] == "hello"


def test_the_cloud_init_drive_is_written_at_the_start(api: Api) -> None:
    vm = made(api, ide2="local-lvm:cloudinit", net0="virtio,bridge=vmbr0")
    api.put(f"{vm}/config", ciuser="admin", cipassword="secret", sshkeys="ssh-ed25519%20AAAA%20me", ipconfig0="ip=192.0.2.10/24")
    api.done(api.post(f"{vm}/status/start"))
    user, network, meta = cloudinit.seen(api.simulator.park, api.simulator.machine(100))
    assert "user: admin" in user
    assert "  - ssh-ed25519 AAAA me" in user
    assert "secret" not in user
    assert "address: '192.0.2.10/24'" in network
    assert meta.startswith("instance-id: ")
    assert api.get(f"{vm}/config")["cipassword"] == "**********"
    api.put(f"{vm}/config", ciuser="other")
    assert "user: admin" in cloudinit.seen(api.simulator.park, api.simulator.machine(100))[0]
    with pytest.raises(Refused, match="500 ide0 - cloud-init drive is already attached at 'ide2'"):
        api.put(f"{vm}/config", ide0="local-lvm:cloudinit")
    with pytest.raises(Refused, match="500 SSH public key validation error"):
        api.put(f"{vm}/config", sshkeys="nothing")


def test_migration(api: Api) -> None:
    vm = made(api, scsi0="shared:1")
    assert api.get(f"{vm}/migrate")["allowed_nodes"] == ["pve2", "pve3"]
    with pytest.raises(Refused) as refused:
        api.post(f"{vm}/migrate", target="pve1")
    assert refused.value.errors == {"target": "target is local node."}
    api.done(api.post(f"{vm}/status/start"))
    with pytest.raises(Refused, match="500 can't migrate running VM without --online"):
        api.post(f"{vm}/migrate", target="pve2")
    assert api.done(api.post(f"{vm}/migrate", target="pve2", online=1)) == "OK"
    assert api.get("/nodes/pve2/qemu/100/status/current")["status"] == "running"
    with pytest.raises(Refused, match="500 Configuration file"):
        api.get(f"{vm}/config")


def test_pools_give_permissions_to_their_members(api: Api) -> None:
    api.post("/pools", poolid="team", comment="of the team")
    access = api.simulator.access
    user = Api(api.simulator, access.add_token("paddock@pve", "driver", separated=False))
    access.grant("/pool/team", "paddock@pve", "PVEVMAdmin", "PVEPoolUser", "PVEDatastoreUser")
    with pytest.raises(Refused, match="403 Permission check failed"):
        user.post(QEMU, vmid=100)
    assert user.done(user.post(QEMU, vmid=100, pool="team", cores=2)) == "OK"
    user.put(f"{QEMU}/100/config", cores=4)
    assert [each["vmid"] for each in user.get("/pools/team")["members"]] == [100]
    api.put("/pools/team", storage="local-lvm")
    user.put(f"{QEMU}/100/config", scsi0="local-lvm:1")
    with pytest.raises(Refused, match="500 delete pool failed: pool 'team' is not empty"):
        api.delete("/pools/team")
