"""The simulator against known facts of the real API: machines, their configuration, power and disks."""

from typing import Any

import pytest

from tests.kit.proxmox.client import Api, Refused
from tests.kit.proxmox.inventory import GIB, HaService
from tests.kit.proxmox.simulator import Simulator

QEMU = "/nodes/pve1/qemu"


@pytest.fixture
def api() -> Api:
    simulator = Simulator(("pve1", "pve2", "pve3"), monotonic=lambda: 0.0)
    return Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))


def made(api: Api, vmid: int = 100, **values: Any) -> str:
    upid = api.post(QEMU, vmid=vmid, **{"name": f"vm{vmid}", "memory": 2048, "cores": 2, **values})
    assert api.done(upid) == "OK"
    return f"{QEMU}/{vmid}"


def test_create_makes_disks_and_fills_in_what_is_left_out(api: Api) -> None:
    vm = made(api, scsi0="local-lvm:8,discard=on", ide2="local-lvm:cloudinit", net0="virtio,bridge=vmbr0", tags="Web;db")
    config = api.get(f"{vm}/config")
    assert config["scsi0"] == "local-lvm:vm-100-disk-0,discard=on,size=8G"
    assert config["ide2"].startswith("local-lvm:vm-100-cloudinit,media=cdrom")
    assert config["net0"].startswith("virtio=BC:24:11:")
    assert config["boot"] == "order=scsi0;net0"
    assert config["cores"] == 2
    assert config["memory"] == "2048"
    assert config["tags"] == "db;web"
    assert len(config["digest"]) == 40
    assert "vmgenid" in config


def test_a_machine_that_is_being_made_has_only_its_lock(api: Api) -> None:
    api.post(QEMU, vmid=100, name="web", scsi0="local-lvm:8")
    api.simulator.tasks.all[next(iter(api.simulator.tasks.all))].due += 1000
    assert api.get(f"{QEMU}/100/config")["lock"] == "create"
    assert "name" not in api.get(f"{QEMU}/100/config")
    with pytest.raises(Refused, match="500 unable to create VM 100 - VM 100 already exists on node 'pve1'"):
        api.post(QEMU, vmid=100)


def test_a_failed_create_leaves_nothing(api: Api) -> None:
    upid = api.post(QEMU, vmid=100, scsi0="local-lvm:8", scsi1="local:0,import-from=local:import/none.qcow2")
    assert "unable to create VM 100 - cannot import from 'local:import/none.qcow2'" in api.done(upid)
    assert api.simulator.cluster.machines == {}
    assert api.simulator.cluster.volumes == {}


def test_names_are_not_unique_and_ids_are(api: Api) -> None:
    made(api, 100, name="web")
    made(api, 101, name="web")
    assert api.get("/cluster/nextid") == "102"
    with pytest.raises(Refused) as refused:
        api.get("/cluster/nextid", vmid=100)
    assert refused.value.errors == {"vmid": "VM 100 already exists"}


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({"vmid": 99}, {"vmid": "invalid format - value does not look like a valid VM ID\n"}),
        ({"vmid": 100, "name": "a_b"}, {"name": "invalid format - value does not look like a valid DNS name\n"}),
        ({"vmid": 100, "cores": 0}, {"cores": "value must have a minimum value of 1"}),
        ({"vmid": 100, "cores": "two"}, {"cores": "type check ('integer') failed - got 'two'"}),
        ({"vmid": 100, "onboot": "yes"}, {"onboot": "type check ('boolean') failed - got 'yes'"}),
        ({"vmid": 100, "bios": "efi"}, {"bios": "value 'efi' does not have a value in the enumeration 'seabios, ovmf'"}),
        (
            {"vmid": 100, "colour": "red"},
            {"colour": "property is not defined in schema and the schema does not allow additional properties"},
        ),
        ({"name": "a"}, {"vmid": "property is missing and it is not optional"}),
        ({"vmid": 100, "unique": 1}, {"archive": "missing property required by 'unique'"}),
        (
            {"vmid": 100, "scsi31": "local-lvm:8"},
            {"scsi31": "property is not defined in schema and the schema does not allow additional properties"},
        ),
        (
            {"vmid": 100, "scsi0": "local-lvm:8,colour=red"},
            {"scsi0": "invalid format - invalid key in comma-separated list property: colour\n"},
        ),
    ],
)
def test_parameters_are_held_against_the_schema(api: Api, values: dict[str, Any], errors: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        api.post(QEMU, **values)
    assert (refused.value.status, refused.value.reason) == (400, "Parameter verification failed.")
    assert refused.value.errors == errors


def test_unknown_calls_and_nodes(api: Api) -> None:
    with pytest.raises(Refused, match="501 Method 'GET /nodes/pve1/vms' not implemented"):
        api.get("/nodes/pve1/vms")
    with pytest.raises(Refused, match="500 hostname lookup 'pve9' failed"):
        api.get("/nodes/pve9/qemu")
    with pytest.raises(Refused, match=r"500 Configuration file 'nodes/pve1/qemu-server/100\.conf' does not exist"):
        api.get(f"{QEMU}/100/config")


def test_a_node_that_is_away(api: Api) -> None:
    made(api)
    api.simulator.cluster.nodes["pve2"].online = False
    with pytest.raises(Refused, match="595 No route to host"):
        api.get("/nodes/pve2/qemu")
    assert [each["status"] for each in api.get("/nodes")] == ["online", "offline", "online"]
    api.simulator.cluster.nodes["pve3"].online = False
    with pytest.raises(Refused, match="500 cluster not ready - no quorum"):
        api.post(QEMU, vmid=101)


def test_power(api: Api) -> None:
    vm = made(api, scsi0="local-lvm:8")
    assert api.done(api.post(f"{vm}/status/start")) == "OK"
    assert api.get(f"{vm}/status/current")["status"] == "running"
    assert api.done(api.post(f"{vm}/status/start")) == "VM 100 already running"
    with pytest.raises(Refused, match="500 VM 100 is running - destroy failed"):
        api.delete(vm)
    assert api.done(api.post(f"{vm}/status/suspend")) == "OK"
    found = api.get(f"{vm}/status/current")
    assert (found["status"], found["qmpstatus"]) == ("running", "paused")
    with pytest.raises(Refused, match="500 VM is paused - cannot shutdown"):
        api.post(f"{vm}/status/shutdown")
    assert api.done(api.post(f"{vm}/status/resume")) == "OK"
    assert api.done(api.post(f"{vm}/status/shutdown", timeout=10)) == "OK"
    assert api.done(api.post(f"{vm}/status/stop")) == "OK"
    with pytest.raises(Refused, match="500 VM 100 not running"):
        api.post(f"{vm}/status/reset")
    assert api.done(api.delete(vm)) == "OK"
    assert api.simulator.cluster.volumes == {}


def test_a_guest_that_ignores_the_power_button(api: Api) -> None:
    vm = made(api, name="web-hang")
    api.done(api.post(f"{vm}/status/start"))
    assert api.done(api.post(f"{vm}/status/shutdown", timeout=5)) == "VM quit/powerdown failed - got timeout"
    assert api.done(api.post(f"{vm}/status/shutdown", timeout=5, forceStop=1)) == "OK"
    assert api.get(f"{vm}/status/current")["status"] == "stopped"


def test_changes_of_a_running_machine_wait_where_qemu_cannot_make_them(api: Api) -> None:
    vm = made(api, scsi0="local-lvm:8", net0="virtio,bridge=vmbr0")
    api.done(api.post(f"{vm}/status/start"))
    api.put(f"{vm}/config", memory=4096, description="new", scsi1="local-lvm:1", sata0="local-lvm:1", cpulimit=1)
    assert api.get(f"{vm}/config")["memory"] == "4096"
    current = api.get(f"{vm}/config", current=1)
    assert current["memory"] == "2048"
    assert (current["description"], current["scsi1"]) == ("new", "local-lvm:vm-100-disk-1,size=1G")
    waiting = {each["key"]: each["pending"] for each in api.get(f"{vm}/pending") if "pending" in each}
    assert waiting == {"memory": "4096", "sata0": "local-lvm:vm-100-disk-2,size=1G"}
    api.put(f"{vm}/config", revert="sata0")
    api.done(api.post(f"{vm}/status/stop"))
    assert api.get(f"{vm}/config", current=1)["memory"] == "4096"


def test_a_detached_disk_becomes_unused_and_deleting_that_removes_it(api: Api) -> None:
    vm = made(api, scsi0="local-lvm:8", scsi1="local-lvm:1")
    api.put(f"{vm}/config", delete="scsi1")
    assert api.get(f"{vm}/config")["unused0"] == "local-lvm:vm-100-disk-1"
    api.put(f"{vm}/config", delete="unused0")
    assert [volid for _, volid in api.simulator.cluster.volumes] == ["local-lvm:vm-100-disk-0"]
    with pytest.raises(Refused) as refused:
        api.put(f"{vm}/config", delete="colour")
    assert refused.value.errors == {"delete": "unknown option 'colour'"}


def test_a_digest_guards_against_others(api: Api) -> None:
    vm = made(api)
    digest = api.get(f"{vm}/config")["digest"]
    api.put(f"{vm}/config", cores=4, digest=digest)
    with pytest.raises(Refused, match=r"500 checksum mismatch \(file change by other user\?\)"):
        api.put(f"{vm}/config", cores=8, digest=digest)


def test_disks_only_grow(api: Api) -> None:
    vm = made(api, scsi0="local-lvm:8", ide2="none,media=cdrom")
    assert api.done(api.put(f"{vm}/resize", disk="scsi0", size="+2G")) == "OK"
    assert api.get(f"{vm}/config")["scsi0"] == "local-lvm:vm-100-disk-0,size=10G"
    assert api.done(api.put(f"{vm}/resize", disk="scsi0", size="9G")) == "shrinking disks is not supported"
    assert api.done(api.put(f"{vm}/resize", disk="scsi1", size="9G")) == "disk 'scsi1' does not exist"
    assert api.done(api.put(f"{vm}/resize", disk="ide2", size="9G")) == "you can't resize a cdrom"
    assert api.done(api.put(f"{vm}/resize", disk="scsi0", size="12G")) == "OK"
    assert next(iter(api.simulator.cluster.volumes.values())).size == 12 * GIB


def test_locks_and_protection(api: Api) -> None:
    vm = made(api)
    api.simulator.cluster.machines[100].conf["lock"] = "backup"
    with pytest.raises(Refused, match=r"500 VM is locked \(backup\)"):
        api.put(f"{vm}/config", cores=4)
    assert api.done(api.post(f"{vm}/status/start")) == "VM is locked (backup)"
    assert api.done(api.delete(vm)) == "VM is locked (backup)"
    del api.simulator.cluster.machines[100].conf["lock"]
    api.put(f"{vm}/config", protection=1)
    with pytest.raises(Refused, match="500 can't remove VM 100 - protection mode enabled"):
        api.delete(vm)


def test_resources_show_what_nodes_last_reported(api: Api) -> None:
    assert [each["type"] for each in api.get("/cluster/resources", type="vm")] == []
    made(api)
    (entry,) = api.get("/cluster/resources", type="vm")
    assert (entry["vmid"], entry["status"]) == (100, "unknown")
    assert "name" not in entry
    api.simulator.clock.skip(10)
    (entry,) = api.get("/cluster/resources", type="vm")
    assert (entry["name"], entry["status"], entry["maxmem"]) == ("vm100", "stopped", 2 * GIB)


def test_tasks(api: Api) -> None:
    upid = api.post(QEMU, vmid=100)
    place = f"/nodes/pve1/tasks/{upid}"
    assert api.get(f"{place}/status")["status"] == "running"
    assert "exitstatus" not in api.get(f"{place}/status")
    assert api.done(upid) == "OK"
    assert api.get(f"{place}/log")[-1]["t"] == "TASK OK"
    assert [each["upid"] for each in api.get("/nodes/pve1/tasks", vmid=100)] == [upid]
    with pytest.raises(Refused) as refused:
        api.get(f"/nodes/pve1/tasks/{upid.replace('qmcreate', 'qmstart')}/status")
    assert refused.value.errors == {"upid": "no such task"}
    with pytest.raises(Refused) as refused:
        api.get("/nodes/pve1/tasks/UPID/status")
    assert refused.value.errors == {"upid": "unable to parse worker upid"}


def test_memory_is_plugged_in_modules(api: Api) -> None:
    vm = made(api, hotplug="network,disk,memory,cpu", numa=1, cores=4, vcpus=2)
    api.done(api.post(f"{vm}/status/start"))
    api.put(f"{vm}/config", memory=2500, vcpus=4)
    current = api.get(f"{vm}/config", current=1)
    assert (current["memory"], current["vcpus"]) == ("2560", 4)
    with pytest.raises(Refused) as refused:
        api.put(f"{vm}/config", vcpus=5)
    assert refused.value.errors == {"vcpus": "hotplug problem - you can't add more vcpus than maxcpus\n"}
    with pytest.raises(Refused) as refused:
        api.put(f"{vm}/config", memory=1024)
    assert "error unplug memory module" in refused.value.errors["memory"]
    assert api.done(api.post(QEMU, vmid=101, hotplug="memory", memory=2048)) == "OK"
    assert api.done(api.post(f"{QEMU}/101/status/start")) == "NUMA needs to be enabled for memory hotplug"


def test_a_running_machine_keeps_what_it_boots_from(api: Api) -> None:
    vm = made(api, scsi0="local-lvm:8", scsi1="local-lvm:1")
    api.done(api.post(f"{vm}/status/start"))
    api.put(f"{vm}/config", delete="scsi1")
    assert "scsi1" not in api.get(f"{vm}/config", current=1)
    with pytest.raises(Refused) as refused:
        api.put(f"{vm}/config", delete="scsi0")
    assert refused.value.errors == {"scsi0": "hotplug problem - can't unplug bootdisk 'scsi0'\n"}
    assert {each["key"] for each in api.get(f"{vm}/pending") if "delete" in each} == {"scsi0"}


def test_a_shutdown_that_lasts_keeps_everybody_else_out(api: Api) -> None:
    vm = made(api, name="web-hang")
    api.done(api.post(f"{vm}/status/start"))
    shutdown = api.post(f"{vm}/status/shutdown", timeout=60)
    locked = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"
    with pytest.raises(Refused, match=f"500 {locked}"):
        api.put(f"{vm}/config", description="new")
    stop = api.post(f"{vm}/status/stop")
    api.simulator.clock.skip(11)
    assert api.get(f"/nodes/pve1/tasks/{stop}/status")["exitstatus"] == locked
    assert api.done(api.post(f"{vm}/status/stop", **{"overrule-shutdown": 1})) == "OK"
    assert api.get(f"/nodes/pve1/tasks/{shutdown}/status")["exitstatus"] == "received interrupt"
    assert api.get(f"{vm}/status/current")["status"] == "stopped"


def test_short_work_is_waited_for(api: Api) -> None:
    vm = made(api)
    start = api.post(f"{vm}/status/start")
    stop = api.post(f"{vm}/status/stop")
    api.put(f"{vm}/config", description="new")
    assert (api.done(start), api.done(stop)) == ("OK", "OK")
    assert api.get(f"{vm}/status/current")["status"] == "stopped"


# --- high availability --------------------------------------------------------------------------------------------------------


def highly_available(api: Api) -> str:
    """Make a machine that the HA manager looks after, running."""
    vm = made(api)
    assert api.done(api.post(f"{vm}/status/start")) == "OK"
    api.simulator.cluster.services[100] = HaService()
    return vm


def test_the_ha_manager_stops_and_starts_its_resources_after_the_task_has_ended(api: Api) -> None:
    vm = highly_available(api)
    with pytest.raises(Refused, match="400") as refused:
        api.post(f"{vm}/status/stop", **{"overrule-shutdown": 1})
    assert refused.value.errors == {"overrule-shutdown": "Not applicable for HA resources."}
    for verb, kind, before, after in (("stop", "hastop", "running", "stopped"), ("start", "hastart", "stopped", "running")):
        upid = api.post(f"{vm}/status/{verb}")
        assert f":{kind}:100:" in upid and api.get(f"/nodes/pve1/tasks/{upid}/status")["status"] == "running"
        api.simulator.clock.skip(1)
        assert api.get(f"/nodes/pve1/tasks/{upid}/status")["exitstatus"] == "OK"
        assert api.get(f"{vm}/status/current")["status"] == before
        api.simulator.clock.skip(10)
        now = api.get(f"{vm}/status/current")
        assert (now["status"], now["ha"]) == (after, {"managed": 1, "state": "started" if verb == "start" else "stopped"})


def test_a_guest_that_ignores_the_ha_managers_shutdown_is_ended(api: Api) -> None:
    vm = made(api, name="web-hang")
    api.done(api.post(f"{vm}/status/start"))
    api.simulator.cluster.services[100] = HaService()
    assert ":hastop:" in api.post(f"{vm}/status/shutdown", timeout=30)
    api.simulator.clock.skip(30)
    assert api.get(f"{vm}/status/current")["status"] == "running"
    api.simulator.clock.skip(20)
    assert api.get(f"{vm}/status/current")["status"] == "stopped"


def test_an_ha_resource_is_destroyed_by_a_purge_alone_and_not_suspended_to_disk(api: Api) -> None:
    vm = highly_available(api)
    with pytest.raises(Refused, match="Cannot suspend HA managed VM to disk"):
        api.post(f"{vm}/status/suspend", todisk=1)
    api.post(f"{vm}/status/stop")
    api.simulator.clock.skip(20)
    with pytest.raises(Refused, match="used in HA resources and purge parameter not set"):
        api.delete(vm)
    assert api.done(api.delete(vm, purge=1)) == "OK"
    assert not api.simulator.cluster.services and 100 not in api.simulator.cluster.machines


def test_a_resource_that_ha_ignores_is_changed_directly(api: Api) -> None:
    vm = highly_available(api)
    api.simulator.cluster.services[100].requested = "ignored"
    assert api.get(f"{vm}/status/current")["ha"] == {"managed": 0}
    assert ":qmstop:" in api.post(f"{vm}/status/stop", **{"overrule-shutdown": 1})
