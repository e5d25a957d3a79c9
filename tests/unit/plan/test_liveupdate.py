"""The parts of a changed template that reach a running instance: cards, volumes, and those without another test."""

from typing import Any

import pytest

from paddock.base.jsondata import copied
from paddock.meta import patch
from paddock.plan.machine import liveupdate

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


def test_a_medium_for_a_drive_that_is_there_waits() -> None:
    drive = {"disks": [{"name": "cd", "cdrom": {"bus": "sata"}}]}
    before, now = spec(devices=drive), spec(devices=drive, volumes=[plugged("cd")])
    for old, new in ((before, now), (now, before)):
        made, restart = changed(old, new)
        assert restart == liveupdate.OTHER and made["spec"] == old["template"]["spec"]
    # The drive itself may come and go with it.
    made, restart = changed(spec(), now)
    assert not restart and made["spec"]["volumes"] == [plugged("cd")]
