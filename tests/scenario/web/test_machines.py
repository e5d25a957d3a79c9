"""Machines as the page asks for them, on a whole host in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.web.pages import Page, Refused

Script = Callable[[FakeHost, Page], Awaitable[None]]
WEB = "machines/vm/default/web"
EVIL = "<script>alert(1)</script>\"'&"
BLANK = {"metadata": {"name": "data"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}


def play(root: Path, script: Script) -> None:
    async def inside() -> None:
        async with FakeHost(root) as host, Page(host) as page:
            await script(host, page)

    virtualtime.run(inside())


def with_disk(**more: Any) -> dict[str, Any]:
    volumes = [{"name": "data", "dataVolume": {"name": "data"}}]
    return machine(volumes=volumes, templates=[BLANK], **more)


def allowed(detail: dict[str, Any]) -> set[str]:
    return {each["verb"] for each in detail["actions"] if each["allowed"]}


@played_by(play, "tmp_path")
async def test_a_running_machine(host: FakeHost, page: Page, /) -> None:
    await host.make(with_disk())
    await host.running(seconds=60)
    found = await page.get(WEB)
    assert (found["row"]["id"], found["row"]["status"], found["runStrategy"]) == ("vm/default/web", "Running", "Always")
    assert [(each["kind"], each["role"]) for each in found["objects"]] == [
        ("VirtualMachine", "written"),
        ("VirtualMachineInstance", "made"),
        ("DataVolume", "made"),
        ("PersistentVolumeClaim", "made"),
    ]
    (disk,) = found["disks"]
    assert (disk["name"], disk["type"], disk["bus"], disk["claim"], disk["state"]) == ("data", "disk", "virtio", "data", "attached")
    assert disk["size"] >= 1 << 30
    assert [(each["name"], each["network"]) for each in found["nics"]] == [("default", "pod")]
    assert found["firmware"] == "BIOS"
    assert allowed(found) == {"stop", "restart", "pause", "suspend", "reset", "snapshot", "clone", "protect", "delete"}
    assert found["pending"] == []
    assert found["access"]["ssh"] == "paddock ssh web"
    assert {each["type"]: each["good"] for each in found["conditions"]}["Ready"] is True
    kinds = {each["id"]: each["kind"] for each in found["graph"]["nodes"]}
    arrows = {(kinds[each["from"]], each["label"], kinds[each["to"]]) for each in found["graph"]["edges"]}
    assert ("VirtualMachine", "runs as", "VirtualMachineInstance") in arrows
    assert ("VirtualMachine", "disk data", "DataVolume") in arrows
    assert ("DataVolume", "fills", "PersistentVolumeClaim") in arrows


@played_by(play, "tmp_path")
async def test_a_stopped_machine(host: FakeHost, page: Page, /) -> None:
    await host.make(machine(strategy="Halted"))
    await asyncio.sleep(10)
    found = await page.get(WEB)
    assert allowed(found) == {"start", "snapshot", "clone", "protect", "delete"}
    reasons = {each["verb"]: each["reason"] for each in found["actions"] if not each["allowed"]}
    assert reasons["stop"] == reasons["pause"] == "it does not run"
    assert reasons["restore"] == "it has no snapshot that is ready"
    assert found["access"]["note"] == "the machine does not run"


@pytest.mark.parametrize("place", ["vm/default/nothing", "vm/elsewhere/web", "stakater/default/web"])
@played_by(play, "tmp_path")
async def test_a_machine_that_is_not_there(host: FakeHost, page: Page, /, place: str) -> None:
    await host.make(machine())
    for more in ("", "/why", "/events", "/history", "/usage", "/log"):
        with pytest.raises(Refused) as caught:
            await page.get(f"machines/{place}{more}")
        assert caught.value.code == 404


@played_by(play, "tmp_path")
async def test_texts_that_look_like_programs_stay_texts(host: FakeHost, page: Page, /) -> None:
    seed = {"name": "seed", "cloudInitNoCloud": {"userData": f"#cloud-config\n# {EVIL}"}}
    wanted = machine(volumes=[seed])
    wanted["metadata"]["annotations"] = {"note": EVIL}
    await host.make(wanted)
    (await host.running(seconds=60)).directory.serial = b"\x1b]0;title\x07" + EVIL.encode() + b"\x1b[2J\r\nmore\n"
    found = await page.get(WEB)
    assert found["cloudInit"]["userData"].endswith(EVIL)
    assert "<script>alert(1)</script>" in found["objects"][0]["yaml"]
    log = await page.read(f"{WEB}/log")
    assert log.content_type == "text/plain; charset=utf-8"
    assert log.body == EVIL.encode() + b"\nmore\n"


@played_by(play, "tmp_path")
async def test_power(host: FakeHost, page: Page, /) -> None:
    await host.make(machine(strategy="Halted"))
    await asyncio.sleep(5)
    assert (await page.post(f"{WEB}/actions/start"))["text"] == "vm/web started: requested"
    await host.running()
    assert (await page.post(f"{WEB}/actions/pause"))["text"] == "vm/web paused: requested"
    await asyncio.sleep(5)
    assert allowed(await page.get(WEB)) >= {"unpause", "stop"}
    await page.post(f"{WEB}/actions/unpause")
    await asyncio.sleep(5)
    before = (await host.vmi())["metadata"]["uid"]
    await page.post(f"{WEB}/actions/restart", {"options": {"force": True}})
    await asyncio.sleep(30)
    assert (await host.vmi())["metadata"]["uid"] != before
    await page.post(f"{WEB}/actions/stop", {"options": {"force": True}})
    await asyncio.sleep(30)
    assert await host.vmi() == {}
    with pytest.raises(Refused) as caught:
        await page.post(f"{WEB}/actions/restart")
    assert (caught.value.code, caught.value.why) == (400, "it does not run")


@pytest.mark.parametrize(
    ("verb", "options", "code"),
    [
        ("dance", {}, 404),
        ("levitate", {}, 404),
        ("restore", {}, 400),
        ("restore", {"snapshot": "nothing"}, 400),
        ("snapshot", {"name": "a/b"}, 400),
        ("clone", {}, 400),
        ("clone", {"name": "../x"}, 400),
        ("stop", {"force": "perhaps"}, 400),
    ],
)
@played_by(play, "tmp_path")
async def test_actions_that_are_refused(host: FakeHost, page: Page, /, verb: str, options: dict[str, Any], code: int) -> None:
    await host.make(machine())
    await host.running()
    with pytest.raises(Refused) as caught:
        await page.post(f"{WEB}/actions/{verb}", {"options": options})
    assert caught.value.code == code, caught.value


@played_by(play, "tmp_path")
async def test_protection(host: FakeHost, page: Page, /) -> None:
    await host.make(machine())
    await host.running()
    assert "protected" in (await page.post(f"{WEB}/actions/protect"))["text"]
    found = await page.get(WEB)
    assert (found["row"]["protected"], "delete" in allowed(found), "unprotect" in allowed(found)) == (True, False, True)
    with pytest.raises(Refused) as caught:
        await page.post(f"{WEB}/actions/delete", {"options": {"purge": True}})
    assert "protected" in caught.value.message
    await page.post(f"{WEB}/actions/unprotect")
    assert (await page.post(f"{WEB}/actions/delete", {"options": {"purge": True}}))["text"] == "vm/web deleted"
    await asyncio.sleep(60)
    assert await host.vm() == {}


@played_by(play, "tmp_path")
async def test_disks_stay_unless_they_are_to_go(host: FakeHost, page: Page, /) -> None:
    await host.make(with_disk())
    await host.running(seconds=60)
    assert (await page.post(f"{WEB}/actions/delete"))["text"] == "vm/web deleted; its disks stay"
    await asyncio.sleep(60)
    assert await host.vm() == {}
    assert await host.get("PersistentVolumeClaim", "v1", "data")


@played_by(play, "tmp_path")
async def test_snapshots_are_a_tree(host: FakeHost, page: Page, /) -> None:
    await host.make(with_disk())
    await host.running(seconds=60)
    for name in ("one", "two"):
        assert name in (await page.post(f"{WEB}/actions/snapshot", {"options": {"name": name}}))["text"]
        await asyncio.sleep(30)
    assert (await page.post(f"{WEB}/actions/restore", {"options": {"snapshot": "one"}}))["text"] == "vm/web restored to one"
    # It ran, so it runs again.
    await host.running(seconds=60)
    await page.post(f"{WEB}/actions/snapshot", {"options": {"name": "three"}})
    await asyncio.sleep(30)
    found = await page.get(WEB)
    assert [(each["name"], each["parent"], each["current"], each["state"]) for each in found["snapshots"]] == [
        ("one", "", False, "ready"),
        ("two", "one", False, "ready"),
        ("three", "one", True, "ready"),
    ]
    assert "restore" in allowed(found)


@played_by(play, "tmp_path")
async def test_a_restore_ends_although_the_page_goes_away(host: FakeHost, page: Page, /) -> None:
    await host.make(with_disk())
    await host.running(seconds=60)
    await page.post(f"{WEB}/actions/snapshot", {"options": {"name": "one"}})
    await asyncio.sleep(30)
    asking = asyncio.create_task(page.post(f"{WEB}/actions/restore", {"options": {"snapshot": "one"}}))
    await asyncio.sleep(0.5)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(120)
    assert await host.status() == "Running"


@played_by(play, "tmp_path")
async def test_a_clone(host: FakeHost, page: Page, /) -> None:
    await host.make(with_disk())
    await host.running(seconds=60)
    assert (await page.post(f"{WEB}/actions/clone", {"options": {"name": "copy", "start": True}}))["text"] == "vm/web cloned as vm/copy"
    await host.running("copy", seconds=60)
    with pytest.raises(Refused) as caught:
        await page.post(f"{WEB}/actions/clone", {"options": {"name": "copy"}})
    assert "there is vm/copy already" in caught.value.why


@played_by(play, "tmp_path")
async def test_what_waits_for_a_restart(host: FakeHost, page: Page, /) -> None:
    await host.make(machine(domain={"memory": {"guest": "128Mi"}, "cpu": {"cores": 1}, "devices": {}}))
    await host.running()
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}})
    await asyncio.sleep(10)
    (found,) = (await page.get(WEB))["pending"]
    assert (found["field"], found["from"], found["to"], found["effect"]) == (
        "spec.template.spec.domain.cpu.cores",
        "1",
        "2",
        "restart",
    )
    assert found["why"]
    await page.post(f"{WEB}/actions/restart")
    await asyncio.sleep(60)
    assert (await page.get(WEB))["pending"] == []


@played_by(play, "tmp_path")
async def test_why(host: FakeHost, page: Page, /) -> None:
    await host.make(machine(nodeSelector={"kubernetes.io/hostname": "elsewhere"}))
    await asyncio.sleep(30)
    found = await page.get(f"{WEB}/why")
    assert found["state"] in ("fails", "waits")
    assert found["causes"][0]["fix"]
    assert found["causes"][0]["evidence"]
    await host.make(machine("well"))
    await host.running("well")
    well = await page.get("machines/vm/default/well/why")
    assert (well["causes"], well["state"]) == ([], "unknown" if well["gaps"] else "good")


@played_by(play, "tmp_path")
async def test_events_and_history(host: FakeHost, page: Page, /) -> None:
    await host.make(machine(), machine("other"))
    await host.running()
    await host.change("web", {"metadata": {"labels": {"tier": "gold"}}})
    events = (await page.get(f"{WEB}/events"))["events"]
    assert {each["object"].partition("/")[2] for each in events} == {"web"}
    assert [each["time"] for each in events] == sorted((each["time"] for each in events), reverse=True)
    history = (await page.get(f"{WEB}/history"))["history"]
    assert any("metadata.labels.tier" in each["fields"] for each in history)
    assert any(each["operation"].startswith("Start with generation") for each in history)
    assert [each["time"] for each in history] == sorted((each["time"] for each in history), reverse=True)


@played_by(play, "tmp_path")
async def test_usage(host: FakeHost, page: Page, /) -> None:
    await host.make(machine())
    await host.running()
    found = await page.get(f"{WEB}/usage?range=24h")
    assert (found["range"], found["step"], len(found["times"]), found["missing"]) == ("24h", 240, 360, "")
    with pytest.raises(Refused) as caught:
        await page.get(f"{WEB}/usage?range=2h")
    assert caught.value.code == 400
    # A cluster does not have it.
    del host.api.api.subresources["subresources.kubevirt.io", "virtualmachines", "usagehistory", "get"]
    found = await page.get(f"{WEB}/usage")
    assert (found["times"], "keeps no history" in found["missing"]) == ([], True)


@played_by(play, "tmp_path")
async def test_logs_and_pictures(host: FakeHost, page: Page, /) -> None:
    await host.make(machine())
    guest = await host.running()
    guest.directory.serial = b"boots\nhost login: root\nsecret session\n"
    assert (await page.read(f"{WEB}/log?kind=boot")).body == b"boots\nhost login: "
    assert (await page.read(f"{WEB}/log?kind=console")).body.endswith(b"secret session\n")
    with pytest.raises(Refused):
        await page.read(f"{WEB}/log?kind=cloud-init")
    with pytest.raises(Refused) as caught:
        await page.read(f"{WEB}/log?kind=kernel")
    assert caught.value.code == 400
    picture = await page.read(f"{WEB}/screenshot")
    assert (picture.content_type, picture.body[:4]) == ("image/png", b"\x89PNG")
    await page.post(f"{WEB}/actions/stop", {"options": {"force": True}})
    await asyncio.sleep(30)
    assert (await page.read(f"{WEB}/screenshot")).body == b""
