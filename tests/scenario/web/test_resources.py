"""The host, images, keys, schemas, and objects that are no machines, on a whole server."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from paddock.kubernetes import catalog
from paddock.web.answers.rows import WebHostCheck
from paddock.web.session import WebHost
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.web.pages import Page, Refused

Script = Callable[[FakeHost, Page], Awaitable[None]]


def play(root: Path, script: Script, *, about: WebHost | None = None, identity: str = "kubeconfig") -> None:
    async def inside() -> None:
        async with FakeHost(root) as host, Page(host, about=about, identity=identity) as page:
            await script(host, page)

    virtualtime.run(inside())


async def checks() -> list[WebHostCheck]:
    return [WebHostCheck(name="accelerator", state="waits", text="there is no KVM", fix="load kvm")]


async def give(host: FakeHost, name: str) -> None:
    """Give the node what a real one has."""
    status = {
        "capacity": {"cpu": "8", "memory": "16Gi", "devices.kubevirt.io/kvm": "1k"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"osImage": "Debian", "kernelVersion": "6.1", "architecture": "amd64"},
    }
    assert (await host.api.merge(f"/api/v1/nodes/{name}/status", {"status": status})).status == 200


@played_by(play, "tmp_path", about=WebHost(checks=checks))
async def test_the_host(host: FakeHost, page: Page, /) -> None:
    await give(host, "host")
    await host.make(machine(), machine("off", "Halted"))
    await host.running()
    found = await page.get("host")
    (node,) = found["nodes"]
    assert (node["name"], node["state"], node["cpus"], node["memory"], node["accelerator"]) == ("host", "good", 8, 16 << 30, "KVM")
    assert (node["machines"], node["promisedCpus"], node["promisedMemory"]) == (1, 1, 128 << 20)
    assert (node["pressure"]["cpu"], node["usedDisk"], node["os"]) == (-1, -1, "Debian")
    assert [(each["name"], each["state"]) for each in found["checks"]] == [("accelerator", "waits")]


@run_by(virtualtime.run)
async def test_the_host_that_the_console_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "HOST")
    async with FakeHost(tmp_path) as host:
        about = WebHost(local=True, directory=tmp_path, checks=checks)
        async with Page(host, about=about) as page:
            # Threads and virtual time do not go together.
            monkeypatch.setattr(asyncio, "to_thread", _at_once)
            await give(host, "host")
            (node,) = (await page.get("host"))["nodes"]
            assert node["disk"] >= node["usedDisk"] > 0
            # The node promises /dev/kvm; the check of the host knows better.
            assert node["accelerator"] == "TCG"


async def _at_once(work: Callable[..., object], *given: object) -> object:
    return work(*given)


@played_by(play, "tmp_path")
async def test_images(host: FakeHost, page: Page, /) -> None:
    assert await page.get("catalog") == {"images": []}


@run_by(virtualtime.run)
async def test_keys_are_those_of_the_user_of_the_console_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id.pub").write_text("ssh-ed25519 AAAA ada@host\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(asyncio, "to_thread", _at_once)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with FakeHost(tmp_path / "a") as host, Page(host, identity="kubeconfig") as page:
        (key,) = (await page.get("keys"))["keys"]
        assert (key["name"], key["type"], key["text"]) == ("ada@host", "ssh-ed25519", "ssh-ed25519 AAAA ada@host")
    async with FakeHost(tmp_path / "b") as host, Page(host, identity="a digest of a token") as page:
        assert await page.get("keys") == {"keys": []}


@played_by(play, "tmp_path")
async def test_schemas(host: FakeHost, page: Page, /) -> None:
    for group, kind in (("kubevirt.io", "VirtualMachine"), ("vitistack.io", "Machine"), ("core", "PersistentVolumeClaim")):
        answer = await page.read(f"schema/{group}/{kind}")
        document = msgspec.json.decode(answer.body)
        assert document["properties"]["spec"]
        assert catalog.find("" if group == "core" else group, kind) is not None
    for path in ("schema/kubevirt.io/Nothing", "schema/core/VirtualMachine"):
        with pytest.raises(Refused) as caught:
            await page.read(path)
        assert caught.value.code == 404


@played_by(play, "tmp_path")
async def test_objects_are_deleted_and_machines_are_not(host: FakeHost, page: Page, /) -> None:
    await host.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes"}}, machine())
    assert (await page.delete("objects/core/ConfigMap/default/notes"))["text"] == "ConfigMap notes deleted"
    assert await host.get("ConfigMap", "v1", "notes") == {}
    for path, code in (
        ("objects/core/ConfigMap/default/notes", 404),
        ("objects/core/ConfigMap/-/notes", 404),
        ("objects/core/Sorcery/default/notes", 404),
        ("objects/kubevirt.io/ConfigMap/default/notes", 404),
        ("objects/kubevirt.io/VirtualMachine/default/web", 409),
        ("objects/core/ConfigMap/default/..", 404),
    ):
        with pytest.raises(Refused) as caught:
            await page.delete(path)
        assert caught.value.code == code, path
    assert await host.vm()
    spec = {"metadata": {"name": "slow"}, "provisioner": "paddock.dev/directory"}
    path = "/apis/storage.k8s.io/v1/storageclasses"
    assert (await host.api.post(path, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **spec})).status == 201
    assert (await page.delete("objects/storage.k8s.io/StorageClass/-/slow"))["text"] == "StorageClass slow deleted"
