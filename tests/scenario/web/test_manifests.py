"""Manifests as the page sends them: plans, applies, forms and conversions, on a whole server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.web.images import NoImages, WebImageAddress
from paddock.web.session import WebHost
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.web.pages import Page, Refused

Script = Callable[[FakeHost, Page], Awaitable[None]]
WEB = "machines/vm/default/web"
EVIL = "<img src=x onerror=alert(1)>"
URL = "https://images.example/debian-12.qcow2"


def play(root: Path, script: Script) -> None:
    async def inside() -> None:
        async with FakeHost(root) as host, Page(host) as page:
            await script(host, page)

    virtualtime.run(inside())


async def text_of(page: Page) -> str:
    found = await page.get(WEB)
    return str(found["objects"][0]["yaml"])


def changed(text: str, *path: str, value: Any) -> str:
    data = yaml.safe_load(text)
    below = data
    for name in path[:-1]:
        below = below.setdefault(name, {})
    below[path[-1]] = value
    return yaml.safe_dump(data)


CORES = ("spec", "template", "spec", "domain", "cpu", "cores")


def sized(strategy: str = "Always") -> dict[str, Any]:
    return machine(strategy=strategy, domain={"memory": {"guest": "128Mi"}, "cpu": {"cores": 1}, "devices": {}})


# --- plans ------------------------------------------------------------------------------------------------------------------


@played_by(play, "tmp_path")
async def test_the_plan_of_an_edit(host: FakeHost, page: Page, /) -> None:
    await host.make(sized())
    await host.running()
    before = await text_of(page)
    found = await page.post("plan", {"before": before, "after": changed(before, *CORES, value=2)})
    (change,) = found["changes"]
    assert (change["field"], change["change"], change["effect"]) == ("spec.template.spec.domain.cpu.cores", "1 -> 2", "restart")
    assert (found["running"], found["findings"]) == (True, [])
    assert "restart" in found["summary"]
    assert (await page.post("plan", {"before": before, "after": before}))["summary"] == "Nothing changes."


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("kind: [", 2, ""),
        ("apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: web}\nspec:\n  template: 3\n", 5, "template"),
        ("apiVersion: kubevirt.io/v1\nkind: VirtualMachin\nmetadata: {name: web}\n", 2, "VirtualMachine"),
        (f"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: '{EVIL}'}}\nspec: {{}}\n", 3, ""),
    ],
)
@played_by(play, "tmp_path")
async def test_findings_have_places(host: FakeHost, page: Page, /, text: str, line: int, words: str) -> None:
    found = await page.post("plan", {"after": text})
    errors = [each for each in found["findings"] if each["severity"] == "error"]
    assert any(each["line"] == line and each["column"] > 0 and words in each["message"] + each["field"] for each in errors), found
    assert found["changes"] == []


@played_by(play, "tmp_path")
async def test_objects_of_the_server_are_no_missing_references(host: FakeHost, page: Page, /) -> None:
    text = yaml.safe_dump(machine(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "elsewhere"}}]))
    assert (await page.post("plan", {"after": text}))["findings"] == []


# --- applies ----------------------------------------------------------------------------------------------------------------


@played_by(play, "tmp_path")
async def test_an_edit_survives_changes_of_the_status(host: FakeHost, page: Page, /) -> None:
    await host.make(sized("Halted"))
    await asyncio.sleep(5)
    text = await text_of(page)
    revision = yaml.safe_load(text)["metadata"]["resourceVersion"]
    await page.post(f"{WEB}/actions/protect")
    reply = await host.api.merge(
        "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web/status", {"status": {"printableStatus": "Stopped", "ready": False}}
    )
    assert reply.status == 200
    assert (await host.vm())["metadata"]["resourceVersion"] != revision
    edited = changed(text, *CORES, value=3)
    dry = await page.post("apply", {"yaml": edited, "dryRun": True})
    assert dry["objects"] == [{"kind": "VirtualMachine", "namespace": "default", "name": "web", "result": "changed"}]
    assert (await host.vm())["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 1
    await page.post("apply", {"yaml": edited})
    after = await host.vm()
    assert after["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 3
    assert after["status"]["printableStatus"] == "Stopped"


@played_by(play, "tmp_path")
async def test_a_conflict_says_who_changed_what(host: FakeHost, page: Page, /) -> None:
    await host.make(sized("Halted"))
    await asyncio.sleep(5)
    text = await text_of(page)
    path = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web?fieldManager=ada"
    spec = {"template": {"spec": {"domain": {"cpu": {"cores": 7}}}}}
    assert (await host.api.merge(path, {"spec": spec})).status == 200
    with pytest.raises(Refused) as caught:
        await page.post("apply", {"yaml": changed(text, *CORES, value=2)})
    assert caught.value.code == 409
    assert "ada wrote spec.template.spec.domain.cpu.cores at" in caught.value.why
    assert (await host.vm())["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 7


@played_by(play, "tmp_path")
async def test_new_objects(host: FakeHost, page: Page, /) -> None:
    text = yaml.safe_dump_all([machine("a", "Halted"), {**machine("b", "Halted")}])
    found = await page.post("apply", {"yaml": text})
    assert [(each["name"], each["namespace"], each["result"]) for each in found["objects"]] == [
        ("a", "default", "created"),
        ("b", "default", "created"),
    ]
    again = await page.post("apply", {"yaml": text})
    assert {each["result"] for each in again["objects"]} <= {"unchanged", "changed"}
    for text, code in (("", 400), ("kind: [", 400), ("kind: Nothing\napiVersion: a/v1\nmetadata: {name: x}", 400)):
        with pytest.raises(Refused) as caught:
            await page.post("apply", {"yaml": text})
        assert caught.value.code == code


@played_by(play, "tmp_path")
async def test_an_object_that_is_refused_names_those_before_it(host: FakeHost, page: Page, /) -> None:
    wrong = machine("b", "Halted")
    wrong["spec"]["template"]["spec"]["volumes"] = [{"name": "x", "emptyDisk": {"capacity": "much"}}]
    with pytest.raises(Refused) as caught:
        await page.post("apply", {"yaml": yaml.safe_dump_all([machine("a", "Halted"), wrong])})
    assert caught.value.code == 422
    assert "written before it: VirtualMachine/a" in caught.value.why


@played_by(play, "tmp_path")
async def test_an_object_that_was_deleted_meanwhile_is_not_made_again(host: FakeHost, page: Page, /) -> None:
    await host.make(sized("Halted"))
    await asyncio.sleep(5)
    text = await text_of(page)
    await page.post(f"{WEB}/actions/delete", {"options": {"purge": True}})
    await asyncio.sleep(30)
    with pytest.raises(Refused) as caught:
        await page.post("apply", {"yaml": changed(text, *CORES, value=2)})
    assert (caught.value.code, caught.value.why) == (409, "somebody deleted it")
    assert await host.vm() == {}


@played_by(play, "tmp_path")
async def test_what_kubectl_applied_last_stays(host: FakeHost, page: Page, /) -> None:
    wanted = sized("Halted")
    last = "kubectl.kubernetes.io/last-applied-configuration"
    wanted["metadata"]["annotations"] = {last: "{}"}
    await host.make(wanted)
    await asyncio.sleep(5)
    text = await text_of(page)
    assert last not in text
    await page.post("apply", {"yaml": changed(text, *CORES, value=2)})
    assert (await host.vm())["metadata"]["annotations"][last] == "{}"


# --- forms ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["kubevirt", "kubermatic", "stakater", "virtrigaud", "vitistack"])
@played_by(play, "tmp_path")
async def test_a_form_in_every_dialect(host: FakeHost, page: Page, /, dialect: str) -> None:
    key = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA {EVIL}"
    form = {"image": URL, "name": "web", "dialect": dialect, "cpus": 2, "memory": "2Gi", "disk": "20Gi", "keys": [key]}
    found = await page.post("compose", {**form, "labels": {"tier": "gold"}})
    assert (found["errors"], found["losses"]) == ([], [])
    word = dialect if dialect in ("stakater", "virtrigaud", "vitistack") else "vm"
    assert found["machines"] == [f"{word}/default/web"]
    objects = list(yaml.safe_load_all(found["yaml"]))
    assert EVIL not in found["yaml"]
    assert any(each["metadata"].get("labels", {}).get("tier") == "gold" for each in objects)
    assert await host.vm() == {}
    plan = await page.post("plan", {"after": found["yaml"]})
    assert [each for each in plan["findings"] if each["severity"] == "error"] == []


@played_by(play, "tmp_path")
async def test_a_form_becomes_a_machine(host: FakeHost, page: Page, /) -> None:
    found = await page.post("compose", {"image": URL, "count": 2, "start": False})
    assert found["machines"] == ["vm/default/debian-12-1", "vm/default/debian-12-2"]
    assert (await page.post("apply", {"yaml": found["yaml"]}))["objects"][0]["result"] == "created"
    assert (await host.vm("debian-12-1"))["spec"]["runStrategy"] == "Halted"
    # Names that are taken are not given again.
    assert (await page.post("compose", {"image": URL}))["machines"] == ["vm/default/debian-12-3"]
    taken = await page.post("compose", {"image": URL, "name": "debian-12-1"})
    assert [each["field"] for each in taken["errors"]] == ["name"]


@pytest.mark.parametrize(
    ("member", "value", "field"),
    [
        ("image", "/etc/passwd", "image"),
        ("image", "", "image"),
        ("image", "file:///etc/passwd", "image"),
        ("name", "Web", "name"),
        ("name", EVIL, "name"),
        ("namespace", "../kube-system", "namespace"),
        ("dialect", "vmware", "dialect"),
        ("count", 0, "count"),
        ("cpus", -1, "cpus"),
        ("memory", "4GB", "memory"),
        ("disk", "-1Gi", "disk"),
        ("user", EVIL, "user"),
        ("keys", ["-----BEGIN OPENSSH PRIVATE KEY-----"], "keys"),
        ("network", EVIL, "network"),
        ("ports", [{"host": 0, "guest": 22}], "ports"),
        ("ports", [{"host": 80, "guest": 80, "protocol": "ICMP"}], "ports"),
        ("labels", {EVIL: "x"}, "labels"),
        ("labels", {"a": EVIL}, "labels"),
    ],
)
@played_by(play, "tmp_path")
async def test_fields_of_a_form_that_are_wrong(host: FakeHost, page: Page, /, member: str, value: Any, field: str) -> None:
    found = await page.post("compose", {"image": URL, "name": "web", member: value})
    assert [each["field"] for each in found["errors"]] == [field]
    assert (found["yaml"], found["errors"][0]["message"] != "") == ("", True)


@played_by(play, "tmp_path")
async def test_a_password_and_a_network(host: FakeHost, page: Page, /) -> None:
    found = await page.post("compose", {"image": URL, "name": "web", "user": "ada", "password": EVIL, "network": "lan"})
    assert any("plain text" in each for each in found["remarks"])
    (vm,) = yaml.safe_load_all(found["yaml"])
    spec = vm["spec"]["template"]["spec"]
    assert spec["networks"] == [{"name": "default", "multus": {"networkName": "lan"}}]
    (seed,) = [each["cloudInitNoCloud"] for each in spec["volumes"] if "cloudInitNoCloud" in each]
    document = yaml.safe_load(seed["userData"])
    assert document["users"][1]["plain_text_passwd"] == EVIL
    both = await page.post("compose", {"image": URL, "password": "x", "userData": "#cloud-config"})
    assert [each["field"] for each in both["errors"]] == ["userData"]


@played_by(play, "tmp_path")
async def test_conversions(host: FakeHost, page: Page, /) -> None:
    text = (await page.post("compose", {"image": URL, "name": "web"}))["yaml"]
    found = await page.post("convert", {"yaml": text, "dialect": "vitistack"})
    assert (found["machines"], found["errors"]) == (["vitistack/default/web"], [])
    back = await page.post("convert", {"yaml": found["yaml"], "dialect": "kubevirt"})
    assert back["machines"] == ["vm/default/web"]
    wrong = await page.post("convert", {"yaml": text.replace("VirtualMachine", "VirtualMachin"), "dialect": "stakater"})
    assert (wrong["yaml"], len(wrong["errors"])) == ("", 1)
    with pytest.raises(Refused) as caught:
        await page.post("convert", {"yaml": text, "dialect": "vmware"})
    assert caught.value.code == 400


@played_by(play, "tmp_path")
async def test_losses_of_a_conversion(host: FakeHost, page: Page, /) -> None:
    text = yaml.safe_dump(machine(domain={"memory": {"guest": "128Mi"}, "devices": {"rng": {}, "watchdog": {"name": "w", "i6300esb": {}}}}))
    found = await page.post("convert", {"yaml": text, "dialect": "vitistack"})
    assert any("watchdog" in each for each in found["losses"]), found["losses"]


@played_by(play, "tmp_path")
async def test_bodies_that_do_not_fit(host: FakeHost, page: Page, /) -> None:
    for path in ("plan", "apply", "compose", "convert", f"{WEB}/actions/start"):
        with pytest.raises(Refused) as caught:
            await page.post(path, ["no object"])
        assert (caught.value.code, caught.value.message) == (400, "cannot read the body of the request")


@run_by(virtualtime.run)
async def test_images_of_the_host_are_provided(tmp_path: Path) -> None:
    class Images(NoImages):
        async def catalog(self) -> list[Any]:
            return []

        async def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
            return ("tiny",), ("debian-12",)

        async def provide(self, image: Any) -> WebImageAddress:
            return WebImageAddress(address=f"https://here/{image.kind}/{image.text}", disk="1Gi", memory="192Mi")

    async with FakeHost(tmp_path) as host, Page(host, about=WebHost(images=Images())) as page:
        found = await page.post("compose", {"image": "tiny"})
        assert "https://here/library/tiny" in found["yaml"]
        assert "192Mi" in found["yaml"]
        assert [each["fix"] for each in (await page.post("compose", {"image": "tinny"}))["errors"]] == ['did you mean "tiny"?']
