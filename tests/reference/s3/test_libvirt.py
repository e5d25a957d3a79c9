"""A machine with two disks moves from the own engine to a libvirtd and back, through a bucket, and its guest finds what it had written."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.drivers.conftest import libvirtd
from tests.host.drivers.test_migration import BASE, PLACE, document, marked, provider, read, runs, write
from tests.host.guests import Shelf
from tests.host.runs.conftest import SECRETS, Data, Host, Talk, phase
from tests.reference.s3.gateway import BUCKET, KEY, REGION, SECRET, Gateway

pytest.importorskip("libvirt", reason="needs libvirtd: no libvirt-python")
from tests.host.drivers.libvirtd import Libvirtd

pytestmark = pytest.mark.long

# A fixture that pytest finds here.
__all__ = ["libvirtd"]
MARKS = {"root": "rootmark1", "data": "datamark1"}
SECTOR = 512


@pytest.fixture
def served(libvirtd: Libvirtd, tmp_path: Path) -> Iterator[str]:
    """The address of a provider for the libvirtd, served beside Paddock, which this host's socket refuses to Paddock's own."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    for name in ("credentials", "staging"):
        (tmp_path / name).mkdir()
    words = ["--address", "127.0.0.1", "--port", str(port), "--health-port", "0", "--insecure", "--end-with-stdin"]
    words += ["--credentials-dir", str(tmp_path / "credentials"), "--staging-dir", str(tmp_path / "staging")]
    environment = {**os.environ, "PROVIDER_ENDPOINT": libvirtd.uri}
    command = [sys.executable, "-m", "paddock.app", "provider", "serve", "--type", "libvirt", *words]
    with (tmp_path / "provider.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


async def moved(talk: Talk, name: str, source: str, target: Data, storage: Data) -> None:
    """Move a machine, and delete it after that."""
    spec = {"source": {"vmRef": {"name": source}, "deleteAfterMigration": True}, "target": {"classRef": {"name": "small"}, **target}}
    await talk.make(f"{BASE}/vmmigrations", document("VMMigration", name, **spec, storage=storage))
    found = await talk.until(f"{BASE}/vmmigrations/{name}", lambda each: phase(each) in ("Ready", "Failed"), "it has moved", 400)
    assert phase(found) == "Ready", found["status"]
    status = found["status"]
    assert status["validationResults"] == {"diskSizeMatch": True, "checksumMatch": True}
    assert [each["name"] for each in status["disks"]] == ["root", "data"]
    assert all(len(each["checksum"]) == 64 and each["checksum"] == each["targetChecksum"] for each in status["disks"])
    await talk.until(f"{BASE}/virtualmachines/{source}", lambda each: not each, "the source is deleted")


def marks_of(pool: Path, scratch: Path) -> dict[str, str]:
    """The marks on the disks in a pool, by the disk."""
    found = {}
    for file in pool.glob("*.qcow2"):
        subprocess.run(["qemu-img", "convert", "-U", "-O", "raw", file, scratch], timeout=120, check=True)
        with scratch.open("rb") as raw:
            raw.seek(PLACE * SECTOR)
            text = raw.read(len(MARKS["root"])).decode(errors="replace")
        found["root" if text.startswith("root") else "data"] = text
    scratch.unlink()
    return found


def perform(host: Host, script: Callable[[Talk], Awaitable[None]]) -> None:
    """Start a host, and run a script with it that takes minutes."""

    async def inside() -> None:
        async with asyncio.timeout(1500), host.client() as client:
            await script(Talk(host, client))

    host.start()
    asyncio.run(inside())


@pytest.mark.spec("virtrigaud", 87, 88, 89, 90)
def test_a_machine_moves_to_a_libvirtd_and_back(
    distant: Gateway, libvirtd: Libvirtd, served: str, host: Host, web: Shelf, tiny_guest: tiny.TinyImage
) -> None:
    host.options = ("--provider-from=127.0.0.0/8",)
    place = {"bucket": BUCKET, "endpoint": distant.endpoint, "region": REGION, "usePathStyle": True}
    storage = {"type": "s3", "s3": {**place, "credentialsSecretRef": {"name": "bucket"}}}
    keys = {"accessKeyID": KEY, "secretAccessKey": SECRET}

    async def script(talk: Talk) -> None:
        await talk.make(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket"}, "stringData": keys})
        plain = {"image": "none:1", "service": {"tls": {"enabled": False}}}
        far = document("Provider", "far", type="libvirt", endpoint="qemu:///system", credentialSecretRef={"name": "none"}, runtime=plain)
        far["metadata"]["annotations"] = {"virtrigaud.io/provider-address": served}
        for kind, body in (
            ("providers", provider("here")),
            ("providers", far),
            ("vmclasses", document("VMClass", "small", cpu=1, memory="256Mi", diskDefaults={"size": "1Gi"})),
            ("vmimages", document("VMImage", "tiny", source={"http": {"url": web.put(tiny_guest.disk)}})),
        ):
            await talk.make(f"{BASE}/{kind}", body)
        refs = {"providerRef": {"name": "here"}, "classRef": {"name": "small"}}
        machine = document("VirtualMachine", "web", **refs, imageRef={"name": "tiny"}, disks=[{"name": "data", "sizeGiB": 1}])
        await talk.make(f"{BASE}/virtualmachines", machine)
        await talk.until(f"{BASE}/virtualmachines/web", runs, "the source runs", 300)
        await marked(talk, "web", f"{write(MARKS['root'], 'vda')}; {write(MARKS['data'], 'vdb')}; sync")
        await moved(talk, "there", "web", {"name": "guest", "providerRef": {"name": "far"}}, storage)
        assert marks_of(libvirtd.pool, distant.folder.parent / "raw") == MARKS
        await moved(talk, "back", "guest", {"name": "home", "providerRef": {"name": "here"}, "powerOn": True}, storage)
        await talk.until(f"{BASE}/virtualmachines/home", runs, "it runs here again", 300)
        assert await marked(talk, "home", read("vda")) == MARKS["root"]
        assert await marked(talk, "home", read("vdb")) == MARKS["data"]
        assert not list(libvirtd.pool.glob("*.qcow2")) and distant.objects() == []

    perform(host, script)
