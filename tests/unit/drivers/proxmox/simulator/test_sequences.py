"""Random calls in any order: the simulator never fails by itself, and no volume is lost or named twice."""

import contextlib
import random
from typing import Any

import pytest

from tests.kit.proxmox import drives
from tests.kit.proxmox.client import Api, Refused
from tests.kit.proxmox.simulator import Simulator
from tests.kit.proxmox.tasks import TaskFault

QEMU = "/nodes/pve1/qemu"
IDS = (100, 101, 102)
STORAGES = ("local-lvm", "tank", "shared", "local")
FIXED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(("POST", f"status/{verb}", {}) for verb in ("start", "stop", "shutdown", "reboot", "reset", "suspend", "resume")),
    *(("POST", "snapshot", {"snapname": name, "vmstate": 1}) for name in ("s1", "s2", "s3")),
    *(("DELETE", f"snapshot/{name}", {}) for name in ("s1", "s2", "s3")),
    *(("POST", f"snapshot/{name}/rollback", {}) for name in ("s1", "s2", "s3")),
    *(("PUT", "config", {"delete": key}) for key in ("scsi1", "scsi2", "sata0", "ide2", "unused0", "unused1", "net0")),
    ("PUT", "config", {"delete": "scsi1", "force": 1}),
    ("PUT", "config", {"revert": "scsi1,sata0"}),
    ("PUT", "config", {"cores": 2, "memory": 2048, "description": "x"}),
    ("PUT", "config", {"net0": "virtio,bridge=vmbr0", "tags": "a;b"}),
    ("PUT", "resize", {"disk": "scsi0", "size": "+1G"}),
    ("POST", "template", {}),
    ("DELETE", "", {}),
    ("GET", "pending", {}),
)


def call(api: Api, chance: random.Random) -> str | None:
    """Make a call; return the UPID that it answers with."""
    vmid, storage = chance.choice(IDS), chance.choice(STORAGES)
    own = f"{QEMU}/{vmid}"
    special: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("POST", QEMU, {"vmid": vmid, "scsi0": f"{storage}:1", "ide2": f"{storage}:cloudinit"}),
        ("POST", QEMU, {"vmid": vmid, "scsi0": f"{storage}:1", "scsi1": "local:0,import-from=local:import/none.raw"}),
        ("POST", f"{own}/clone", {"newid": chance.choice(IDS)}),
        ("POST", f"{own}/clone", {"newid": chance.choice(IDS), "full": 1, "storage": storage}),
        ("POST", f"{own}/clone", {"newid": chance.choice(IDS), "full": 0, "snapname": "s1"}),
        ("POST", f"{own}/move_disk", {"disk": "scsi0", "storage": storage, "delete": chance.choice((0, 1))}),
        ("PUT", f"{own}/config", {chance.choice(("scsi1", "scsi2", "sata0")): f"{storage}:1"}),
        ("PUT", f"{own}/config", {"ide2": f"{storage}:cloudinit"}),
    )
    fixed = tuple((method, f"{own}/{path}".rstrip("/"), values) for method, path, values in FIXED)
    method, path, values = chance.choice(special if chance.random() < 0.4 else fixed)
    answer = None
    with contextlib.suppress(Refused):
        answer = api.call(method, path, **values)
    return answer if isinstance(answer, str) and answer.startswith("UPID:") else None


def check(simulator: Simulator) -> None:
    """No volume is lost, and no machine names one that is not there, once nothing runs any more."""
    named: list[str] = []
    for machine in simulator.cluster.machines.values():
        confs = (machine.conf, machine.pending, *machine.snapshots.values())
        own = {each.file for conf in confs for each in (*drives.drives(conf), *drives.unused(conf)) if each.storage and each.is_disk}
        named += own | {conf["vmstate"] for conf in confs if "vmstate" in conf}
        # What a worker that was killed leaves locked stays so.
        assert machine.conf.get("lock") in (None, "suspended", "snapshot-delete", "rollback")
    # A cloud-init drive is made again whenever it is needed.
    there = sorted(volume.volid for volume in simulator.cluster.volumes.values() if "cloudinit" not in volume.volid)
    # A base that clones stand on stays when its template's disk moves.
    lost = {each for each in set(there) - set(named) if "base-" not in each}
    assert (sorted(lost), sorted(set(named) - set(there))) == ([], []), simulator.calls[-8:]


@pytest.mark.parametrize("seed", range(12))
def test_no_volume_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    simulator = Simulator(monotonic=lambda: 0.0)
    api = Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))
    for _ in range(300):
        if chance.random() < 0.05:
            simulator.tasks.faults.append(TaskFault("*", "unexpected status"))
        upid = call(api, chance)
        if upid and chance.random() < 0.05:
            with contextlib.suppress(Refused):
                api.delete(f"/nodes/pve1/tasks/{upid}")
        if chance.random() < 0.7:
            simulator.settle()
            check(simulator)
    assert simulator.tasks.all
