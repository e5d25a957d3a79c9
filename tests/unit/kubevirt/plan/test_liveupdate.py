"""The parts of a changed template that reach a running instance: cards, volumes, and those without another test."""

from itertools import pairwise
from typing import Any

import pytest

from paddock.base.jsondata import copied
from paddock.kubernetes.meta import patch
from paddock.kubevirt.plan.machine import liveupdate

Data = dict[str, Any]


def spec(**hardware: Any) -> Data:
    devices = hardware.pop("devices", {})
    return {"template": {"spec": {"domain": {"devices": devices}, **hardware}}}


def instance(of: Data) -> Data:
    return {"metadata": {"labels": {"own": "x"}}, "spec": copied(of["template"]["spec"]), "status": {}}


def changed(before: Data, now: Data, has: Data | None = None) -> tuple[Data, str]:
    seen = has or instance(before)
    update = liveupdate.update(before, now, seen)
    made: Data = patch.apply_json_patch(copied(seen), list(update.patch))
    return made, update.restart


BRIDGE = {"name": "lan", "bridge": {}}
LAN = {"name": "lan", "multus": {"networkName": "lan"}}
POD_CARD, POD = {"name": "default", "masquerade": {}}, {"name": "default", "pod": {}}
BASE = spec(devices={"interfaces": [POD_CARD]}, networks=[POD])


def test_a_card_on_a_bridge_comes_and_goes() -> None:
    more = spec(devices={"interfaces": [POD_CARD, BRIDGE]}, networks=[POD, LAN])
    made, restart = changed(BASE, more)
    assert not restart and made["spec"] == more["template"]["spec"]
    back, restart = changed(more, BASE)
    assert not restart and back["spec"] == BASE["template"]["spec"]


@pytest.mark.parametrize("state", ["down", "up", "absent"])
def test_a_link_changes_its_state(state: str) -> None:
    now = spec(devices={"interfaces": [{**POD_CARD, "state": state}]}, networks=[POD])
    made, restart = changed(BASE, now)
    assert not restart and made["spec"]["domain"]["devices"]["interfaces"][0]["state"] == state


def test_other_cards_and_other_models_wait() -> None:
    sriov = spec(devices={"interfaces": [POD_CARD, {"name": "lan", "sriov": {}}]}, networks=[POD, LAN])
    model = spec(devices={"interfaces": [{**POD_CARD, "model": "e1000"}]}, networks=[POD])
    for now in (sriov, model):
        made, restart = changed(BASE, now)
        assert restart == liveupdate.OTHER and made["spec"] == BASE["template"]["spec"]


def plugged(name: str, *, hot: bool = True) -> Data:
    return {"name": name, "persistentVolumeClaim": {"claimName": name, **({"hotpluggable": True} if hot else {})}}


def with_volumes(*volumes: Data) -> Data:
    return spec(devices={"disks": [{"name": each["name"], "disk": {"bus": "scsi"}} for each in volumes]}, volumes=list(volumes))


def test_volumes_that_say_so_are_plugged() -> None:
    root = plugged("root", hot=False)
    before, now = with_volumes(root, plugged("old")), with_volumes(root, plugged("new"))
    has = instance(before)
    has["spec"]["domain"]["devices"]["disks"][0]["serial"] = "kept"
    made, restart = changed(before, now, has)
    assert not restart
    assert [each["name"] for each in made["spec"]["volumes"]] == ["root", "new"]
    assert [each["name"] for each in made["spec"]["domain"]["devices"]["disks"]] == ["root", "new"]
    assert made["spec"]["domain"]["devices"]["disks"][0]["serial"] == "kept"


def test_other_volumes_wait() -> None:
    before, now = with_volumes(plugged("root", hot=False)), with_volumes(plugged("root", hot=False), plugged("more", hot=False))
    made, restart = changed(before, now)
    assert restart and made["spec"] == before["template"]["spec"]


def test_live_changes_are_carried_out_beside_those_that_wait() -> None:
    now = spec(devices={"interfaces": [{**POD_CARD, "state": "down"}], "rng": {}}, networks=[POD])
    made, restart = changed(BASE, now)
    assert restart == liveupdate.OTHER
    assert made["spec"]["domain"]["devices"]["interfaces"][0]["state"] == "down" and "rng" not in made["spec"]["domain"]["devices"]


def test_another_instancetype_waits() -> None:
    assert liveupdate.update(BASE, {**BASE, "instancetype": {"name": "large"}}, instance(BASE)).restart


def test_nothing_new_is_nothing_to_do() -> None:
    assert liveupdate.update(BASE, copied(BASE), instance(BASE)) == liveupdate.LiveUpdate()


@pytest.mark.parametrize(("waits", "moved"), [(False, "pool-2"), (True, "pool-1")])
def test_the_label_of_a_pool_tells_what_the_instance_is(waits: bool, moved: str) -> None:
    label = "kubevirt.io/vm-pool-revision-name"
    before, now = copied(BASE), copied(BASE)
    before["template"]["metadata"], now["template"]["metadata"] = {"labels": {label: "pool-1"}}, {"labels": {label: "pool-2"}}
    if waits:
        now["template"]["spec"]["domain"]["devices"]["rng"] = {}
    has = instance(before)
    has["metadata"]["labels"][label] = "pool-1"
    made, restart = changed(before, now, has)
    assert bool(restart) == waits and made["metadata"]["labels"] == {"own": "x", label: moved}


def drive(bus: str = "sata") -> Data:
    return {"disks": [{"name": "cd", "cdrom": {"bus": bus}}]}


@pytest.mark.spec("kubevirt", 168)
def test_the_medium_of_a_drive_comes_changes_and_goes() -> None:
    claim, disk = plugged("cd"), {"name": "cd", "dataVolume": {"name": "other", "hotpluggable": True}}
    media: tuple[list[Data], ...] = ([], [claim], [disk], [])
    for before, now in pairwise(media):
        made, restart = changed(spec(devices=drive(), volumes=before), spec(devices=drive(), volumes=now))
        assert (restart, made["spec"].get("volumes", [])) == ("", now)
        assert made["spec"]["domain"]["devices"] == drive()


@pytest.mark.spec("kubevirt", 168)
def test_a_drive_waits_and_its_medium_goes() -> None:
    made, restart = changed(spec(devices=drive(), volumes=[plugged("cd")]), spec())
    assert restart == liveupdate.OTHER
    assert "volumes" not in made["spec"] and made["spec"]["domain"]["devices"] == drive()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (spec(), spec(devices=drive(), volumes=[plugged("cd")])),
        (spec(devices=drive("virtio")), spec(devices=drive("virtio"), volumes=[plugged("cd")])),
        (spec(devices=drive()), spec(devices=drive(), volumes=[plugged("cd", hot=False)])),
    ],
    ids=["a drive that is new", "a disk on virtio", "a volume that is not plugged"],
)
def test_what_is_no_medium_waits(before: Data, now: Data) -> None:
    made, restart = changed(before, now)
    assert restart == liveupdate.OTHER and made["spec"] == before["template"]["spec"]
