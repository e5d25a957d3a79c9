"""Volumes of machines on a whole host: what is said of them."""

import asyncio

import pytest
from msgspec.structs import replace

from tests.coroutines import played
from tests.kit.engine.fakehost import GIB, FakeHost, machine

TEMPLATE = {"metadata": {"name": "data"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "plain"},
    "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "resources": {"requests": {"storage": "2Gi"}}},
}
VOLUMES = [
    {"name": "template", "dataVolume": {"name": "data"}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "plain"}},
    {"name": "over", "ephemeral": {"persistentVolumeClaim": {"claimName": "plain"}}},
    {"name": "image", "containerDisk": {"image": "registry/disk:1"}},
    {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
]
TARGETS = {"template": "vda", "claim": "vdb", "over": "vdc", "image": "vdd", "scratch": "vde"}


@pytest.mark.spec("kubevirt", 80)
@played
async def test_what_is_said_of_volumes(host: FakeHost, /) -> None:
    host.engine.images.offer("registry/disk:1")
    await host.make(CLAIM, machine(volumes=VOLUMES, templates=[TEMPLATE]))
    guest = await host.running()
    guest.observe(disks={name: replace(disk, size=GIB) for name, disk in guest.observed.disks.items()})
    await asyncio.sleep(5)
    snapshots = {each["name"]: each for each in (await host.vm())["status"]["volumeSnapshotStatuses"]}
    assert {name for name, each in snapshots.items() if each["enabled"]} == {"template", "claim"}
    for name in ("over", "image", "scratch"):
        assert snapshots[name]["reason"] == f"Snapshot is not supported for this volumeSource type [{name}]"
    assert list(snapshots) == [each["name"] for each in VOLUMES]

    volumes = {each["name"]: each for each in (await host.vmi())["status"]["volumeStatus"]}
    assert {name: each["target"] for name, each in volumes.items()} == TARGETS
    assert volumes["image"] == {"name": "image", "target": "vdd", "size": GIB}
    assert volumes["scratch"] == {"name": "scratch", "target": "vde", "size": GIB}
    template, plain = (volumes[name]["persistentVolumeClaimInfo"] for name in ("template", "claim"))
    claim = await host.get("PersistentVolumeClaim", "v1", "data")
    assert template == {
        "claimName": "data",
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "capacity": claim["status"]["capacity"],
        "requests": claim["spec"]["resources"]["requests"],
        "filesystemOverhead": "0.06",
    }
    assert plain == {
        "claimName": "plain",
        "accessModes": ["ReadWriteMany"],
        "volumeMode": "Block",
        "capacity": {"storage": "2Gi"},
        "requests": {"storage": "2Gi"},
    }
    assert volumes["over"]["persistentVolumeClaimInfo"] == plain


@pytest.mark.spec("kubevirt", 80)
@played
async def test_what_is_said_of_a_plugged_volume(host: FakeHost, /) -> None:
    await host.make(machine())
    await host.running()
    spec = {
        "domain": {"devices": {"disks": [{"name": "more", "disk": {"bus": "scsi"}}]}},
        "volumes": [{"name": "more", "persistentVolumeClaim": {"claimName": "plain", "hotpluggable": True}}],
    }
    await host.change("web", {"spec": {"template": {"spec": spec}}})
    await asyncio.sleep(5)
    more = (await host.vmi())["status"]["volumeStatus"][0]
    assert (more["phase"], "plain" in more["message"]) == ("Pending", True)
    await host.make(CLAIM)
    await asyncio.sleep(5)
    more = (await host.vmi())["status"]["volumeStatus"][0]
    assert (more["name"], more["target"], more["phase"], more["reason"]) == ("more", "sda", "Ready", "VolumeReady")
    assert more["persistentVolumeClaimInfo"]["claimName"] == "plain" and "hotplugVolume" in more
    statuses = (await host.vm())["status"]["volumeSnapshotStatuses"]
    assert statuses == [{"name": "more", "enabled": True}]


@played
async def test_of_two_machines_that_begin_together_one_has_the_claim(host: FakeHost, /) -> None:
    alone = {**CLAIM, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volumes = [VOLUMES[1], VOLUMES[3]]
    host.engine.images.offer("registry/disk:1")
    host.engine.images.hold("registry/disk:1")
    await host.make(alone, machine("left", volumes=volumes), machine("right", volumes=volumes))
    await asyncio.sleep(5)
    host.engine.images.release("registry/disk:1")
    await asyncio.sleep(10)
    phases = {name: (await host.vmi(name))["status"]["phase"] for name in ("left", "right")}
    assert sorted(phases.values()) == ["Running", "Scheduling"]
    first, second = sorted(phases, key=lambda name: phases[name])
    await host.change(first, {"spec": {"runStrategy": "Halted"}})
    await host.running(second, 30)
