"""Instancetypes and preferences in a machine: what is set, what is filled in, and where they are found."""

from typing import Any

import pytest

from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.plan.machine import instancetypes as instancetype
from paddock.kubevirt.plan.machine.commoninstancetypes import instancetypes
from paddock.kubevirt.plan.machine.commonpreferences import preferences
from paddock.kubevirt.plan.machine.instancetypes import MissingInstancetype, expanded, topology

Data = dict[str, Any]


@pytest.mark.parametrize(
    ("guest", "wishes", "wanted"),
    [
        (4, {}, (4, 1, 1)),
        (4, {"cpu": {"preferredCPUTopology": "preferCores"}}, (1, 4, 1)),
        (4, {"cpu": {"preferredCPUTopology": "threads"}}, (1, 1, 4)),
        (4, {"cpu": {"preferredCPUTopology": "any"}}, (4, 1, 1)),
        (8, {"cpu": {"preferredCPUTopology": "spread"}}, (4, 2, 1)),
        (8, {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"ratio": 4}}}, (2, 4, 1)),
        (8, {"cpu": {"preferredCPUTopology": "spread"}, "preferSpreadSocketToCoreRatio": 8}, (1, 8, 1)),
        (8, {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "SocketsCoresThreads"}}}, (2, 2, 2)),
        (8, {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "CoresThreads"}}}, (1, 4, 2)),
        (3, {"cpu": {"preferredCPUTopology": "spread"}}, (3, 1, 1)),
    ],
)
def test_how_processors_are_arranged(guest: int, wishes: Data, wanted: tuple[int, int, int]) -> None:
    found = topology(guest, wishes)
    assert (found["sockets"], found["cores"], found["threads"]) == wanted
    assert found["sockets"] * found["cores"] * found["threads"] == guest


@pytest.mark.spec("kubevirt", 153)
@pytest.mark.parametrize(
    ("guest", "percent", "request_"),
    [("192Mi", 15, "171127616"), ("128Mi", 15, "114085072"), ("1Gi", 50, "512Mi"), ("4G", 25, "3G"), ("1Gi", 100, "0")],
)
def test_overcommitted_memory_is_reckoned_in_single_precision(guest: str, percent: int, request_: str) -> None:
    size = {"cpu": {"guest": 1}, "memory": {"guest": guest, "overcommitPercent": percent}}
    assert expanded({"domain": {"devices": {}}}, size, None)["domain"]["resources"]["requests"] == {"memory": request_}


def test_an_instancetype_is_set() -> None:
    size = {
        "cpu": {"guest": 2, "model": "EPYC", "dedicatedCPUPlacement": True, "maxSockets": 8},
        "memory": {"guest": "4Gi", "overcommitPercent": 25, "hugepages": {"pageSize": "2Mi"}},
        "ioThreadsPolicy": "auto",
        "nodeSelector": {"zone": "a"},
        "gpus": [{"name": "g", "deviceName": "d"}],
    }
    made = expanded({"domain": {"devices": {}}}, size, None)
    domain = made["domain"]
    assert domain["cpu"] == {"sockets": 2, "cores": 1, "threads": 1, "model": "EPYC", "dedicatedCpuPlacement": True, "maxSockets": 8}
    assert domain["memory"] == {"guest": "4Gi", "hugepages": {"pageSize": "2Mi"}}
    assert domain["resources"]["requests"] == {"memory": "3Gi"}
    assert made["nodeSelector"] == {"zone": "a"} and domain["devices"]["gpus"] and domain["ioThreadsPolicy"] == "auto"


WISHES: Data = {
    "clock": {"preferredClockOffset": {"utc": {}}, "preferredTimer": {"hpet": {"present": False}}},
    "cpu": {"preferredCPUFeatures": [{"name": "vmx", "policy": "require"}]},
    "devices": {
        "preferredDiskBus": "scsi",
        "preferredCdromBus": "usb",
        "preferredLunBus": "scsi",
        "preferredDiskCache": "none",
        "preferredInterfaceModel": "e1000",
        "preferredInterfaceMasquerade": {},
        "preferredInputBus": "virtio",
        "preferredInputType": "tablet",
        "preferredRng": {},
        "preferredTPM": {"persistent": True},
        "preferredVideoType": "bochs",
        "preferredAutoattachMemBalloon": False,
        "preferredNetworkInterfaceMultiQueue": True,
    },
    "features": {"preferredSmm": {}, "preferredHyperv": {"relaxed": {}, "vapic": {}}},
    "firmware": {"preferredEfi": {"secureBoot": True}},
    "machine": {"preferredMachineType": "pc-q35-7.2"},
    "preferredSubdomain": "inside",
    "preferredTerminationGracePeriodSeconds": 5,
}


@pytest.mark.spec("kubevirt", 92)
def test_a_preference_fills_what_is_open() -> None:
    hardware: Data = {
        "domain": {"devices": {"disks": [{"name": "root"}, {"name": "iso", "cdrom": {}}, {"name": "own", "disk": {"bus": "sata"}}]}},
        "volumes": [{"name": name, "emptyDisk": {"capacity": "1Gi"}} for name in ("root", "iso", "own", "unlisted")],
    }
    made = expanded(hardware, None, WISHES)
    devices = made["domain"]["devices"]
    buses = {disk["name"]: next(iter(disk[kind].get("bus") for kind in ("disk", "cdrom") if kind in disk)) for disk in devices["disks"]}
    assert buses == {"root": "scsi", "iso": "usb", "own": "sata", "unlisted": "scsi"}
    assert devices["interfaces"] == [{"name": "default", "model": "e1000", "masquerade": {}}]
    assert made["networks"] == [{"name": "default", "pod": {}}]
    assert (devices["rng"], devices["tpm"], devices["video"]) == ({}, {"persistent": True}, {"type": "bochs"})
    assert devices["autoattachMemBalloon"] is False and devices["networkInterfaceMultiqueue"] is True
    assert made["domain"]["firmware"]["bootloader"] == {"efi": {"secureBoot": True}}
    assert made["domain"]["features"] == {"smm": {}, "hyperv": {"relaxed": {}, "vapic": {}}}
    assert made["domain"]["clock"] == {"utc": {}, "timer": {"hpet": {"present": False}}}
    assert (made["subdomain"], made["terminationGracePeriodSeconds"]) == ("inside", 5)
    assert from_data(made, VirtualMachineInstanceSpec).domain.machine is not None
    assert "interfaces" not in hardware["domain"]["devices"]


def test_a_preference_takes_nothing_away() -> None:
    said: Data = {
        "domain": {
            "devices": {"interfaces": [{"name": "default", "model": "virtio", "bridge": {}}], "rng": {}, "autoattachMemBalloon": True},
            "firmware": {"bootloader": {"bios": {}}},
            "features": {"smm": {"enabled": False}, "hyperv": {"relaxed": {"enabled": False}}},
            "machine": {"type": "q35"},
            "clock": {"timezone": "Europe/Oslo"},
            "cpu": {"features": [{"name": "vmx", "policy": "disable"}]},
        },
        "networks": [{"name": "default", "pod": {}}],
        "subdomain": "mine",
    }
    made = expanded(said, None, WISHES)
    domain = made["domain"]
    assert domain["devices"]["interfaces"] == said["domain"]["devices"]["interfaces"]
    assert domain["devices"]["autoattachMemBalloon"] is True
    assert domain["firmware"] == said["domain"]["firmware"] and domain["machine"] == {"type": "q35"}
    assert domain["features"]["smm"] == {"enabled": False}
    assert domain["features"]["hyperv"] == {"relaxed": {"enabled": False}, "vapic": {}}
    assert domain["clock"]["timezone"] == "Europe/Oslo" and "utc" not in domain["clock"]
    assert domain["cpu"]["features"] == [{"name": "vmx", "policy": "disable"}] and made["subdomain"] == "mine"


def objects(*found: Data) -> instancetype.Find:
    by_place = {(each["resource"], each.get("namespace", ""), each["name"]): each["object"] for each in found}
    return lambda resource, namespace, name: by_place.get((resource, namespace, name))


CLUSTER = "virtualmachineclusterinstancetypes.instancetype.kubevirt.io"
HERE = "virtualmachineinstancetypes.instancetype.kubevirt.io"


@pytest.mark.parametrize(
    ("kind", "resource", "namespace"),
    [
        (None, CLUSTER, ""),
        ("virtualmachineclusterinstancetypes", CLUSTER, ""),
        ("VirtualMachineInstancetype", HERE, "here"),
        ("virtualmachineinstancetypes", HERE, "here"),
    ],
)
def test_where_an_instancetype_is_found(kind: str | None, resource: str, namespace: str) -> None:
    look = objects({"resource": resource, "namespace": namespace, "name": "small", "object": {"spec": {"cpu": {"guest": 2}}}})
    found = instancetype.find("instancetype", {"instancetype": {"name": "small", "kind": kind}}, "here", look)
    assert found is not None and found.spec == {"cpu": {"guest": 2}}
    assert found.everywhere == (resource == CLUSTER)
    with pytest.raises(MissingInstancetype, match="small"):
        instancetype.find("instancetype", {"instancetype": {"name": "small", "kind": kind}}, "here", objects())


def test_the_copy_that_was_kept_comes_first() -> None:
    kept = {"data": {"spec": {"cpu": {"guest": 1}}}}
    look = objects(
        {"resource": CLUSTER, "name": "small", "object": {"spec": {"cpu": {"guest": 2}}}},
        {"resource": "controllerrevisions.apps", "namespace": "here", "name": "copy", "object": kept},
    )
    status = {"instancetypeRef": {"name": "small", "controllerRevisionRef": {"name": "copy"}}}
    matcher = {"instancetype": {"name": "small"}}
    found = instancetype.find("instancetype", matcher, "here", look, status)
    assert found is not None and (found.revision, found.spec["cpu"]["guest"]) == ("copy", 1)
    other = instancetype.find("instancetype", matcher, "here", look, {"instancetypeRef": {"name": "large"}})
    assert other is not None and not other.revision
    with pytest.raises(MissingInstancetype, match="gone"):
        instancetype.find("instancetype", {"instancetype": {"name": "small", "revisionName": "gone"}}, "here", look)


def inferring(**disk: Any) -> Data:
    volume = {"name": "root", **disk}
    return {"instancetype": {"inferFromVolume": "root"}, "template": {"spec": {"volumes": [volume]}}}


LABELS = {"instancetype.kubevirt.io/default-instancetype": "small", "instancetype.kubevirt.io/default-instancetype-kind": "X"}
MARKED = {"metadata": {"labels": LABELS}, "spec": {}}


@pytest.mark.spec("kubevirt", 92)
@pytest.mark.parametrize(
    ("volume", "found"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, [("persistentvolumeclaims", "here", "c", MARKED)]),
        ({"dataVolume": {"name": "d"}}, [("datavolumes.cdi.kubevirt.io", "here", "d", MARKED)]),
        ({"dataVolume": {"name": "d"}}, [("persistentvolumeclaims", "here", "d", MARKED)]),
        (
            {"dataVolume": {"name": "d"}},
            [
                ("datavolumes.cdi.kubevirt.io", "here", "d", {"spec": {"sourceRef": {"name": "s", "namespace": "there"}}}),
                ("datasources.cdi.kubevirt.io", "there", "s", MARKED),
            ],
        ),
        (
            {"dataVolume": {"name": "d"}},
            [
                ("datavolumes.cdi.kubevirt.io", "here", "d", {"spec": {"sourceRef": {"name": "s"}}}),
                ("datasources.cdi.kubevirt.io", "here", "s", {"spec": {"source": {"pvc": {"name": "p", "namespace": "far"}}}}),
                ("persistentvolumeclaims", "far", "p", MARKED),
            ],
        ),
    ],
)
def test_what_an_instancetype_is_inferred_from(volume: Data, found: list[tuple[str, str, str, Data]]) -> None:
    look = objects(*({"resource": r, "namespace": n, "name": name, "object": data} for r, n, name, data in found))
    assert instancetype.inferred("instancetype", inferring(**volume), "here", look) == {"name": "small", "kind": "X"}


@pytest.mark.parametrize("volume", [{"emptyDisk": {}}, {"persistentVolumeClaim": {"claimName": "c"}}, {"dataVolume": {"name": "d"}}])
def test_what_nothing_can_be_inferred_from(volume: Data) -> None:
    with pytest.raises(MissingInstancetype):
        instancetype.inferred("instancetype", inferring(**volume), "here", objects())
    spec = inferring(**volume)
    spec["instancetype"]["inferFromVolumeFailurePolicy"] = "Ignore"
    assert instancetype.inferred("instancetype", spec, "here", objects()) is None


@pytest.mark.spec("kubevirt", 92)
def test_an_expanded_machine_refers_to_nothing() -> None:
    size = instancetype.ResolvedInstancetype("instancetype", "VirtualMachineClusterInstancetype", "small", next(iter(instancetypes())))
    machine = {"spec": {"instancetype": {"name": "small"}, "template": {"spec": {"domain": {"devices": {}}}}}}
    made = instancetype.expanded_machine(machine, [size])
    assert "instancetype" not in made["spec"] and made["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "512Mi"
    assert "instancetype" in machine["spec"]


def test_common_names_are_unique() -> None:
    for every in (list(instancetypes()), list(preferences())):
        assert len({each["metadata"]["name"] for each in every}) == len(every)
