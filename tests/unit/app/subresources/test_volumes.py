"""addvolume, removevolume and memorydump: what is stored afterwards."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.unit.app.subresources.world import World

CLAIM = {
    "name": "more",
    "disk": {"disk": {"bus": "scsi"}, "serial": "more"},
    "volumeSource": {"persistentVolumeClaim": {"claimName": "data"}},
}
DATA_VOLUME = {"name": "dv", "disk": {"disk": {"bus": "virtio"}}, "volumeSource": {"dataVolume": {"name": "fill"}}}


def template(world: World) -> dict[str, Any]:
    spec: dict[str, Any] = world.vm()["spec"]["template"]["spec"]
    return spec


def names(spec: dict[str, Any]) -> tuple[list[str], list[str]]:
    return [each["name"] for each in spec.get("volumes") or ()], [each["name"] for each in spec["domain"]["devices"].get("disks") or ()]


@scripted
async def test_a_volume_of_a_machine_stays_in_its_template_and_comes_to_what_runs() -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        assert (await world.put("vm", "vm", "addvolume", CLAIM)).status == 202
        for spec in (template(world), world.vmi()["spec"]):
            (volume,) = spec["volumes"]
            assert volume == {"name": "more", "persistentVolumeClaim": {"claimName": "data", "hotpluggable": True}}
            assert spec["domain"]["devices"]["disks"] == [{"name": "more", "disk": {"bus": "scsi"}, "serial": "more"}]
        assert (await world.put("vm", "vm", "addvolume", DATA_VOLUME)).status == 202
        assert names(template(world)) == names(world.vmi()["spec"]) == (["more", "dv"], ["more", "dv"])
        assert (await world.put("vm", "vm", "removevolume", {"name": "more"})).status == 202
        assert names(template(world)) == names(world.vmi()["spec"]) == (["dv"], ["dv"])


@scripted
async def test_a_machine_that_is_down_gets_it_with_its_next_start() -> None:
    async with World() as world:
        await world.machine(runStrategy="Halted")
        assert (await world.put("vm", "vm", "addvolume", CLAIM)).status == 202
        assert names(template(world)) == (["more"], ["more"])
        assert (await world.put("vm", "vm", "removevolume", {"name": "more"})).status == 202
        assert names(template(world)) == ([], [])


@scripted
async def test_a_volume_of_an_instance_leaves_the_machine_alone() -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        before = world.vm()
        assert (await world.put("vmi", "vm", "addvolume", CLAIM)).status == 202
        assert (names(world.vmi()["spec"]), world.vm()) == ((["more"], ["more"]), before)
        assert (await world.put("vmi", "vm", "removevolume", {"name": "more"})).status == 202
        assert names(world.vmi()["spec"]) == ([], [])


@scripted
async def test_what_a_controller_brought_there_already_is_no_conflict() -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        assert (await world.put("vmi", "vm", "addvolume", CLAIM)).status == 202
        assert (await world.put("vm", "vm", "addvolume", CLAIM)).status == 202
        assert names(world.vmi()["spec"]) == (["more"], ["more"])


@pytest.mark.parametrize("kind", ["vm", "vmi"])
@pytest.mark.parametrize(
    ("verb", "body", "code", "words"),
    [
        ("addvolume", None, 400, "Request with no body, a new name is expected as the request body"),
        ("addvolume", {**CLAIM, "name": ""}, 400, "AddVolumeOptions requires name to be set"),
        ("addvolume", {"name": "a", "volumeSource": {}}, 400, "AddVolumeOptions requires disk to not be nil"),
        ("addvolume", {"name": "a", "disk": {}}, 400, "AddVolumeOptions requires VolumeSource to not be nil"),
        ("addvolume", {"name": "a", "disk": {}, "volumeSource": {}}, 400, "AddVolumeOptions requires VolumeSource to name"),
        ("addvolume", {**CLAIM, "name": "root"}, 409, "Unable to add volume [root] because volume with that name already exists"),
        (
            "addvolume",
            {**CLAIM, "volumeSource": {"dataVolume": {"name": "rootclaim"}}},
            409,
            "Unable to add volume source [rootclaim] because it already exists",
        ),
        ("addvolume", {**CLAIM, "disk": {"disk": {"bus": "floppy"}}}, 422, "floppy"),
        ("removevolume", None, 400, "Request with no body"),
        ("removevolume", {}, 400, "RemoveVolumeOptions requires name to be set"),
        ("removevolume", {"name": "none"}, 409, "Unable to remove volume [none] because it does not exist"),
        ("removevolume", {"name": "root"}, 409, "Unable to remove volume [root] because it is not hotpluggable"),
    ],
)
@scripted
async def test_refusals(kind: str, verb: str, body: Any, code: int, words: str) -> None:
    async with World() as world:
        disk = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "memory": {"guest": "64Mi"}}
        spec = {"domain": disk, "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "rootclaim"}}]}
        await world.machine(template={"spec": spec})
        await world.running(spec=spec)
        before = (world.vm(), world.vmi())
        reply = await world.put(kind, "vm", verb, body)
        assert (reply.status, words in reply.data["message"]) == (code, True), reply.data["message"]
        assert (world.vm(), world.vmi()) == before


@scripted
async def test_what_is_not_there_or_does_not_run() -> None:
    async with World() as world:
        for kind, noun in (("vm", "virtualmachine"), ("vmi", "virtualmachineinstance")):
            reply = await world.put(kind, "vm", "addvolume", CLAIM)
            assert (reply.status, reply.data["message"]) == (404, f'{noun}.kubevirt.io "vm" not found')
        await world.instance(phase="Scheduled")
        reply = await world.put("vmi", "vm", "addvolume", CLAIM)
        assert (reply.status, "VMI is not running" in reply.data["message"]) == (409, True)


@pytest.mark.parametrize("kind", ["vm", "vmi"])
@scripted
async def test_a_dry_run_checks_and_changes_nothing(kind: str) -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        before = world.api.store.revision
        assert (await world.put(kind, "vm", "addvolume", {**CLAIM, "dryRun": ["All"]})).status == 202
        assert world.api.store.revision == before


# --- memory dumps ---------------------------------------------------------------------------------------------------------


async def claim(world: World, name: str, size: str, **spec: Any) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }
    made = await world.api.post("/api/v1/namespaces/default/persistentvolumeclaims", body)
    assert made.status == 201, made.data


@scripted
async def test_a_dump_is_a_wish_in_the_status() -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        await claim(world, "dump", "1Gi")
        none = await world.put("vm", "vm", "memorydump", {})
        assert (none.status, none.data["message"]) == (400, "Memory dump requires claim name to be set")
        assert (await world.put("vm", "vm", "memorydump", {"claimName": "dump"})).status == 202
        assert world.vm()["status"]["memoryDumpRequest"] == {"claimName": "dump", "phase": "Associating"}
        again = await world.put("vm", "vm", "memorydump", {"claimName": "dump"})
        assert (again.status, "memory dump request for pvc [dump] already in progress" in again.data["message"]) == (409, True)
        other = await world.put("vm", "vm", "memorydump", {"claimName": "other"})
        assert (other.status, "while pvc [dump] is still associated" in other.data["message"]) == (409, True)
        await world.set_machine_status("vm", memoryDumpRequest={"claimName": "dump", "phase": "Completed", "fileName": "a.dump"})
        # The claim is known by now.
        assert (await world.put("vm", "vm", "memorydump", {"claimName": ""})).status == 202
        assert (await world.put("vm", "vm", "removememorydump")).status == 202
        assert world.vm()["status"]["memoryDumpRequest"] == {"claimName": "dump", "phase": "Dissociating", "remove": True}
        twice = await world.put("vm", "vm", "removememorydump")
        assert (twice.status, "already exists" in twice.data["message"]) == (409, True)


@pytest.mark.parametrize(
    ("size", "spec", "code", "words"),
    [
        ("100Mi", {}, 409, "should be bigger then"),
        ("1Gi", {"volumeMode": "Block"}, 409, "pvc should be filesystem pvc"),
        ("1Gi", {"accessModes": ["ReadOnlyMany"]}, 409, "pvc access mode can't be read only"),
        ("", {}, 404, 'persistentvolumeclaim.kubevirt.io "dump" not found'),
    ],
)
@scripted
async def test_claims_that_cannot_take_a_dump(size: str, spec: dict[str, Any], code: int, words: str) -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        if size:
            await claim(world, "dump", size, **spec)
        reply = await world.put("vm", "vm", "memorydump", {"claimName": "dump"})
        assert (reply.status, words in reply.data["message"]) == (code, True), reply.data["message"]
        assert "memoryDumpRequest" not in (world.vm().get("status") or {})


@scripted
async def test_a_dump_needs_a_guest_and_its_removal_a_dump() -> None:
    async with World() as world:
        assert (await world.put("vm", "vm", "memorydump", {"claimName": "dump"})).status == 404
        await world.machine()
        await world.instance(phase="Scheduled")
        reply = await world.put("vm", "vm", "memorydump", {"claimName": "dump"})
        assert (reply.status, "VMI is not running" in reply.data["message"]) == (409, True)
        gone = await world.put("vm", "vm", "removememorydump")
        assert (gone.status, "no association found" in gone.data["message"]) == (409, True)
