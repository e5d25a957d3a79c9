"""Texts of objects that look like programs: every one comes through as it is, and none leads anywhere else."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from paddock.base.jsondata import Data, copied
from paddock.fleet.kinds import VM
from paddock.fleet.machines.finding import MachineView
from paddock.web.api import actionstates, graphs, guestparts, hardware, history, objectparts, snapshottrees

EVIL = "</script><img src=x onerror=alert('&')>\u202e\n`\"${x}"
Path = tuple[str | int, ...]


def example() -> Data:
    spec = {
        "domain": {
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "image", "cdrom": {"bus": "sata"}}],
                "interfaces": [{"name": "default", "masquerade": {}, "model": "virtio", "macAddress": "02:00"}],
            },
            "machine": {"type": "q35"},
        },
        "networks": [{"name": "default", "multus": {"networkName": "lan"}}],
        "volumes": [
            {"name": "root", "dataVolume": {"name": "root"}},
            {"name": "image", "containerDisk": {"image": "quay.io/x"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config", "networkDataSecretRef": {"name": "net"}}},
        ],
    }
    metadata = {
        "name": "web",
        "namespace": "default",
        "uid": "u",
        "labels": {"tier": "gold"},
        "annotations": {"note": "text"},
        "managedFields": [{"manager": "ada", "operation": "Update", "time": "T", "fieldsV1": {"f:spec": {"f:x": {}}}}],
    }
    status = {
        "printableStatus": "Running",
        "phase": "Running",
        "nodeName": "host",
        "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "M", "lastTransitionTime": "T"}],
        "interfaces": [{"name": "default", "ipAddress": "10.0.0.1", "mac": "02:00", "linkState": "up"}],
        "volumeStatus": [{"name": "root", "target": "vda"}],
        "guestOSInfo": {"prettyName": "Debian", "kernelRelease": "6.1"},
    }
    return {"metadata": metadata, "spec": {"runStrategy": "Always", "template": {"spec": spec}}, "status": status}


REPORT = {
    "hostname": "web",
    "timezone": "UTC, 0",
    "os": {"prettyName": "Debian", "kernelRelease": "6.1"},
    "userList": [{"userName": "ada", "loginTime": 1.7e9}],
    "fsInfo": {"disks": [{"mountPoint": "/", "fileSystemType": "ext4", "usedBytes": 1, "totalBytes": 2}]},
}


def leaves(data: Any, before: Path = ()) -> Iterator[Path]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from leaves(value, (*before, key))
    if isinstance(data, str):
        yield before


def replaced(data: Data, *paths: Path) -> Data:
    made: Any = copied(data)
    for path in paths:
        below = made
        for step in path[:-1]:
            below = below[step]
        below[path[-1]] = EVIL
    return dict(made)


def answers(data: Data, report: Data) -> list[msgspec.Struct]:
    instance = {**data, "spec": data["spec"]["template"]["spec"]}
    machine = MachineView(kind=VM, data=data, vm=data, vmi=instance)
    claims = {"root": {"metadata": {"name": "root"}, "spec": {"storageClassName": EVIL}, "status": {"phase": EVIL}}}
    snapshots = snapshottrees.snapshot_parts([{"metadata": {"name": EVIL}, "status": {"phase": EVIL}}], [])
    return [
        *hardware.disk_parts(machine, claims, {}, {}),
        *hardware.nic_parts(machine),
        *objectparts.objects(machine, claims, {}),
        *objectparts.condition_parts(machine),
        *history.writes(VM, data),
        guestparts.guest_part(machine, report),
        guestparts.cloud_init(machine),
        guestparts.access(machine, is_paddock=True),
        graphs.graph(machine, (claims, {}, {}), snapshots),
        *actionstates.states(machine, snapshots, can_suspend=True),
        *snapshots,
    ]


@pytest.mark.parametrize("path", list(leaves(example())), ids=lambda path: ".".join(map(str, path)))
def test_a_text_in_any_field(path: Path) -> None:
    for each in answers(replaced(example(), path), REPORT):
        assert msgspec.json.decode(msgspec.json.encode(each), type=type(each)) == each


def test_texts_come_through_as_they_are() -> None:
    everything = list(leaves(example()))
    found = msgspec.to_builtins(answers(replaced(example(), *everything), replaced(REPORT, *leaves(REPORT))))
    texts = [text for path in leaves(found) if (text := _at(found, path))]
    assert sum(text == EVIL for text in texts) > 20
    for text in texts:
        if EVIL not in text and "<img" in text:
            # In YAML it is written in another way, and read as it was.
            assert EVIL in str(yaml.safe_load(text)["metadata"]["name"])


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data
