"""Disks that come and go while a machine runs, as `tests/storage` of KubeVirt wants them."""

import asyncio
from typing import Any

import pytest

from paddock.engine.machine.errors import Unanswered
from tests.coroutines import played
from tests.kit.engine.enginefakes import FakeMachine
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.upstream.asking import DV, MACHINES, asked, condition, operation, patched

pytestmark = pytest.mark.spec("kubevirt", 110)

BLANK = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
KINDS = ["VirtualMachine", "VirtualMachineInstance"]


async def disk(host: FakeHost, name: str, source: str = "datavolume", mode: str = "Filesystem") -> Data:
    """A disk that is there, as the source of a volume."""
    resources = {"requests": {"storage": "1Gi"}}
    if source == "datavolume":
        spec = {**BLANK, "storage": {"volumeMode": mode, "resources": resources}}
        await host.make({"apiVersion": DV, "kind": "DataVolume", "metadata": {"name": name}, "spec": spec})
        await asyncio.sleep(20)
        return {"dataVolume": {"name": name}}
    claim = {"accessModes": ["ReadWriteOnce"], "volumeMode": mode, "resources": resources}
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": claim})
    await asyncio.sleep(20)
    return {"persistentVolumeClaim": {"claimName": name}}


def added(name: str, source: Data, bus: str = "scsi", **more: Any) -> Data:
    """The body of `addvolume`."""
    return {"name": name, "disk": {"name": name, "disk": {"bus": bus}}, "volumeSource": source, **more}


async def said(host: FakeHost, name: str) -> str:
    """Return the phase of a volume in the status; empty without it."""
    found = (await host.vmi()).get("status", {}).get("volumeStatus", ())
    return next((str(each["phase"]) for each in found if each["name"] == name), "")


def has(ran: FakeMachine) -> list[str]:
    """The disks of a machine."""
    return [each.name for each in ran.config.disks]


async def template(host: FakeHost) -> tuple[list[str], list[str]]:
    """The disks and the volumes that a machine starts with."""
    spec = (await host.vm())["spec"]["template"]["spec"]
    return [each["name"] for each in spec["domain"]["devices"].get("disks") or ()], [each["name"] for each in spec.get("volumes") or ()]


@pytest.mark.parametrize("source", ["datavolume", "claim"])
@played
async def test_volumes_of_a_machine_that_is_down_are_those_of_its_next_start(host: FakeHost, /, source: str) -> None:
    await host.make(machine(strategy="Halted"))
    for name in ("one", "two"):
        await asked(host, "web", "addvolume", added(name, await disk(host, name, source)))
    assert await template(host) == (["one", "two"], ["one", "two"])
    for name in ("one", "two"):
        await asked(host, "web", "removevolume", {"name": name})
    assert await template(host) == ([], [])


@pytest.mark.parametrize("source", ["datavolume", "claim"])
@played
async def test_a_machine_starts_with_what_was_added(host: FakeHost, /, source: str) -> None:
    await host.make(machine(strategy="Halted"))
    await asked(host, "web", "addvolume", added("more", await disk(host, "more", source, "Block")))
    await asked(host, "web", "start", seconds=20)
    assert has(await host.running()) == ["more"] and await said(host, "more") == "Ready"


@pytest.mark.parametrize("bus", ["scsi", "virtio"])
@pytest.mark.parametrize("source", ["datavolume", "claim", "block"])
@pytest.mark.parametrize("kind", KINDS)
@played
async def test_a_disk_comes_and_goes_while_it_runs(host: FakeHost, /, kind: str, source: str, bus: str) -> None:
    await host.make(machine())
    ran = await host.running()
    more = await disk(host, "more", "datavolume" if source == "block" else source, "Block" if source == "block" else "Filesystem")
    await asked(host, "web", "addvolume", added("more", more, bus), kind)
    assert has(ran) == ["more"] and await said(host, "more") == "Ready"
    assert await template(host) == ((["more"], ["more"]) if kind == "VirtualMachine" else ([], []))
    await asked(host, "web", "removevolume", {"name": "more"}, kind)
    assert has(ran) == [] and await said(host, "more") == "" and await template(host) == ([], [])
    assert ran.observed.phase == "running"


@pytest.mark.parametrize("source", ["datavolume", "claim"])
@played
async def test_a_disk_that_is_added_while_it_starts_waits_for_it(host: FakeHost, /, source: str) -> None:
    await host.make(machine(strategy="Halted"))
    define = host.engine.machines.define

    async def held(id: str, config: Any) -> Any:
        host.engine.machines.hold(id)
        return await define(id, config)

    host.engine.machines.define = held  # type: ignore[method-assign]
    more = await disk(host, "more", source)
    await asked(host, "web", "start")
    await asked(host, "web", "addvolume", added("more", more))
    (starting,) = host.engine.machines
    assert starting.observed.phase == "starting" and has(starting) == []
    host.engine.machines.release(starting.id)
    ran = await host.running(seconds=20)
    assert has(ran) == ["more"] and await said(host, "more") == "Ready"


@pytest.mark.parametrize("source", ["datavolume", "claim", "block"])
@played
async def test_a_disk_that_is_written_into_the_template_comes_and_goes(host: FakeHost, /, source: str) -> None:
    await host.make(machine())
    ran = await host.running()
    more = await disk(host, "more", "datavolume" if source == "block" else source, "Block" if source == "block" else "Filesystem")
    volume = {name: {**value, "hotpluggable": True} for name, value in more.items()}
    spec = {"domain": {"devices": {"disks": [{"name": "more", "disk": {"bus": "scsi"}}]}}, "volumes": [{"name": "more", **volume}]}
    await host.change("web", {"spec": {"template": {"spec": spec}}})
    await asyncio.sleep(10)
    assert has(ran) == ["more"] and await said(host, "more") == "Ready"
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}}}})
    await asyncio.sleep(10)
    assert has(ran) == [] and await said(host, "more") == ""
    assert condition(await host.vm(), "RestartRequired") in ("", "False")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", ["datavolume", "claim"])
@played
async def test_a_dry_run_adds_and_removes_nothing(host: FakeHost, /, kind: str, source: str) -> None:
    await host.make(machine())
    ran = await host.running()
    more = await disk(host, "more", source)
    await asked(host, "web", "addvolume", added("more", more, dryRun=["All"]), kind)
    assert has(ran) == [] and await said(host, "more") == "" and await template(host) == ([], [])
    await asked(host, "web", "addvolume", added("more", more), kind)
    await asked(host, "web", "removevolume", {"name": "more", "dryRun": ["All"]}, kind)
    assert has(ran) == ["more"] and await said(host, "more") == "Ready"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
@played
async def test_several_come_and_go_and_come_again(host: FakeHost, /, kind: str, mode: str) -> None:
    await host.make(machine())
    ran = await host.running()
    names = [f"disk-{number}" for number in range(5)]
    sources = {name: await disk(host, name, mode=mode) for name in names}
    for name in names:
        await asked(host, "web", "addvolume", added(name, sources[name]), kind, 2)
    assert has(ran) == names
    await asked(host, "web", "removevolume", {"name": names[2]}, kind)
    assert has(ran) == [*names[:2], *names[3:]]
    await asked(host, "web", "addvolume", added(names[2], sources[names[2]]), kind)
    assert sorted(has(ran)) == names and [await said(host, name) for name in names] == ["Ready"] * 5
    for name in names:
        await asked(host, "web", "removevolume", {"name": name}, kind, 2)
    assert has(ran) == [] and ran.observed.phase == "running"


@played
async def test_seventy_five_come_at_once(host: FakeHost, /) -> None:
    await host.make(machine())
    ran = await host.running()
    names = [f"disk-{number}" for number in range(75)]
    for name in names:
        await host.make({"apiVersion": DV, "kind": "DataVolume", "metadata": {"name": name}, "spec": BLANK})
    await asyncio.sleep(60)
    for name in names:
        await asked(host, "web", "addvolume", added(name, {"dataVolume": {"name": name}}), seconds=0)
    await asyncio.sleep(60)
    assert sorted(has(ran)) == sorted(names)
    assert [each["phase"] for each in (await host.vmi())["status"]["volumeStatus"]] == ["Ready"] * 75


@played
async def test_what_was_added_stays_over_a_restart_and_goes_then(host: FakeHost, /) -> None:
    await host.make(machine())
    first = await host.running()
    await asked(host, "web", "addvolume", added("more", await disk(host, "more", mode="Block")))
    await asked(host, "web", "stop", seconds=20)
    await asked(host, "web", "start", seconds=20)
    second = await host.running()
    assert second.id != first.id and has(second) == ["more"]
    volume = next(each for each in (await host.vmi())["spec"]["volumes"] if each["name"] == "more")
    assert volume["dataVolume"]["hotpluggable"] is True
    await asked(host, "web", "removevolume", {"name": "more"})
    assert has(second) == [] and await template(host) == ([], [])


@played
async def test_what_cannot_be_added_or_removed(host: FakeHost, /) -> None:
    await host.make(machine(volumes=[{"name": "disk0", "emptyDisk": {"capacity": "1Gi"}}]))
    await host.running()
    more = await disk(host, "more")
    for verb, body, why in (
        ("addvolume", added("disk0", more), "Unable to add volume [disk0] because volume with that name already exists"),
        ("removevolume", {"name": "disk0"}, "Unable to remove volume [disk0] because it is not hotpluggable"),
        ("removevolume", {"name": "nowhere"}, "Unable to remove volume [nowhere] because it does not exist"),
    ):
        reply = await host.verb("web", verb, body)
        assert reply.status == 409 and why in reply.data["message"], reply.data
    await asked(host, "web", "addvolume", added("more", more))
    reply = await host.verb("web", "addvolume", added("other", more))
    assert reply.status == 409, reply.data
    assert "Unable to add volume source [more] because it already exists" in reply.data["message"]


@played
async def test_files_and_blocks_side_by_side(host: FakeHost, /) -> None:
    await host.make(machine())
    ran = await host.running()
    for mode in ("Filesystem", "Block"):
        await asked(host, "web", "addvolume", added(mode.lower(), await disk(host, mode.lower(), mode=mode)))
    assert has(ran) == ["filesystem", "block"]


def drives(bus: str = "sata") -> Data:
    """A machine with an empty drive."""
    body = machine()
    body["spec"]["template"]["spec"]["domain"]["devices"]["disks"] = [{"name": "cd", "cdrom": {"bus": bus}}]
    return body


async def with_medium(host: FakeHost, volumes: list[Data]) -> None:
    await patched(host, f"{MACHINES}/web", operation("add", "/spec/template/spec/volumes", volumes))
    await asyncio.sleep(10)


@pytest.mark.spec("kubevirt", 168)
@pytest.mark.parametrize("bus", ["sata", "scsi", "usb"])
@played
async def test_a_medium_is_put_in_exchanged_and_taken_out(host: FakeHost, /, bus: str) -> None:
    await host.make(drives(bus))
    ran = await host.running()
    found = set()
    media = {name: {"name": "cd", **await disk(host, name, source)} for name, source in (("one", "datavolume"), ("two", "claim"))}
    for name in ("one", "two", "", "one", ""):
        hot = {key: {**value, "hotpluggable": True} if isinstance(value, dict) else value for key, value in media.get(name, {}).items()}
        await with_medium(host, [hot] if hot else [])
        (drive,) = ran.config.disks
        found.add(drive.layer)
        assert (drive.layer is not None, drive.hotplugged) == (bool(name), False)
        statuses = {each["name"]: each for each in (await host.vmi())["status"].get("volumeStatus", [])}
        assert [(each["phase"], each["persistentVolumeClaimInfo"]["claimName"]) for each in statuses.values()] == (
            [("Ready", name)] if name else []
        )
        assert condition(await host.vm(), "RestartRequired") in ("", "False")
    assert len(found) == 3 and ran.observed.phase == "running"
    assert [each["name"] for each in (await host.vmi())["spec"]["domain"]["devices"]["disks"]] == ["cd"]


@pytest.mark.spec("kubevirt", 168)
@played
async def test_a_medium_that_the_guest_has_mounted_goes_when_it_lets_go(host: FakeHost, /) -> None:
    await host.make(drives())
    ran = await host.running()
    await disk(host, "one")
    await with_medium(host, [{"name": "cd", "dataVolume": {"name": "one", "hotpluggable": True}}])
    change = ran.change_medium

    async def locked(drive: Any) -> None:
        raise Unanswered("cannot change the medium", why="the guest keeps its tray locked")

    ran.change_medium = locked  # type: ignore[method-assign]
    await with_medium(host, [])
    await asyncio.sleep(60)
    assert ran.config.disks[0].layer is not None
    assert (await host.events("web")).count("HotplugFailed") == 1
    ran.change_medium = change  # type: ignore[method-assign]
    await asyncio.sleep(15)
    assert ran.config.disks[0].layer is None


@played
async def test_a_medium_that_is_known_at_the_start_is_in_its_drive(host: FakeHost, /) -> None:
    body = drives()
    await disk(host, "one")
    body["spec"]["template"]["spec"]["volumes"] = [{"name": "cd", "dataVolume": {"name": "one", "hotpluggable": True}}]
    await host.make(body)
    (drive,) = (await host.running()).config.disks
    assert (drive.role, drive.layer is not None, drive.hotplugged) == ("cdrom", True, False)


@played
async def test_a_medium_that_is_not_there_yet_leaves_the_drive_as_it_is(host: FakeHost, /) -> None:
    await host.make(drives())
    ran = await host.running()
    await with_medium(host, [{"name": "cd", "dataVolume": {"name": "one", "hotpluggable": True}}])
    assert [each.layer for each in ran.config.disks] == [None] and await said(host, "cd") == "Pending"
    await disk(host, "one")
    await asyncio.sleep(10)
    assert ran.config.disks[0].layer is not None and await said(host, "cd") == "Ready"


@played
async def test_a_drive_that_is_taken_away_waits_for_a_restart(host: FakeHost, /) -> None:
    await host.make(drives())
    ran = await host.running()
    await disk(host, "one")
    await with_medium(host, [{"name": "cd", "dataVolume": {"name": "one", "hotpluggable": True}}])
    assert await said(host, "cd") == "Ready"
    assert condition(await host.vm(), "RestartRequired") in ("", "False")
    hardware = "/spec/template/spec"
    both = (operation("replace", f"{hardware}/domain/devices/disks", []), operation("replace", f"{hardware}/volumes", []))
    await patched(host, f"{MACHINES}/web", *both)
    await asyncio.sleep(10)
    assert await said(host, "cd") == "" and [each.layer for each in ran.config.disks] == [None]
    assert condition(await host.vm(), "RestartRequired") == "True"
