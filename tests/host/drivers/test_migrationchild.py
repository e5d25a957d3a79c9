"""A machine moves over a claim to a libvirtd and back, where root runs the server and another user its provider."""

import asyncio
import base64
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paddock.base.images.build import tiny
from paddock.engine.storage import qemuimg
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import played_by
from tests.host.drivers.test_libvirt import sshd
from tests.host.drivers.test_migration import BASE, PLACE, document, marked, provider, read, runs, write
from tests.host.guests import Shelf
from tests.host.runs.conftest import SECRETS, Data, Host, Talk, phase

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

__all__ = ["sshd"]
pytestmark = [pytest.mark.slow, pytest.mark.needs("libvirtd", "qemu", "root")]
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DISKS = {"root": "vda", "one": "vdb", "two": "vdc"}
MARKS = {"root": "rootmark1", "one": "datamark1", "two": "datamark2"}
# What the guest writes at libvirt, in the sector behind the first marks.
FURTHER = "backmark1"
SECONDS = 900


class SshHost(Host):
    """A host whose Providers may be on loopback."""

    options = ("--provider-from=127.0.0.1",)


@pytest.fixture
def server(work: Path) -> Iterator[SshHost]:
    """A host that was not started yet, in a directory beside that of the SSH server, which users of children must pass."""
    work.chmod(0o711)
    made = SshHost(work / "paddock", "127.0.0.1:1")
    made.root.mkdir()
    yield made
    made.end()


def _perform(server: SshHost, script: Callable[[Talk], Awaitable[None]]) -> None:
    """Start the server, and run a script with it that takes minutes."""

    async def inside() -> None:
        async with server.client() as client:
            await script(Talk(server, client))

    server.start()
    try:
        asyncio.run(inside())
    except BaseException as error:
        raise AssertionError(f"{error}\n{(server.root / 'said').read_text()[-4000:]}") from error
    assert "Exception in thread" not in (server.root / "said").read_text()


@pytest.mark.spec("virtrigaud", 87, 88, 90, 156, 175)
@played_by(_perform, "server")
async def test_a_machine_moves_to_a_child_of_another_user_and_back(
    talk: Talk, /, libvirtd: "Libvirtd", sshd: tuple[Path, int], work: Path, web: Shelf, tiny_guest: tiny.TinyImage
) -> None:
    port = sshd[1]
    known = f"[127.0.0.1]:{port} {(work / 'host.pub').read_text()}"
    secret = {"username": "root", "ssh-privatekey": (work / "key").read_text(), "known_hosts": known}
    endpoint = f"qemu+ssh://127.0.0.1:{port}/system?socket={libvirtd.socket}"
    lab = document("Provider", "lab", type="libvirt", endpoint=endpoint, credentialSecretRef={"name": "lab"}, runtime={"image": "none:1"})
    await talk.make(SECRETS, {"metadata": {"name": "lab"}, "stringData": secret})
    for kind, body in (
        ("providers", provider("here")),
        ("providers", lab),
        ("vmclasses", document("VMClass", "small", cpu=1, memory="256Mi", diskDefaults={"size": "1Gi"})),
        ("vmimages", document("VMImage", "tiny", source={"http": {"url": web.put(tiny_guest.disk)}})),
    ):
        await talk.make(f"{BASE}/{kind}", body)
    refs = {"providerRef": {"name": "here"}, "classRef": {"name": "small"}, "imageRef": {"name": "tiny"}}
    disks = [{"name": name, "sizeGiB": 1} for name in DISKS if name != "root"]
    await talk.make(f"{BASE}/virtualmachines", document("VirtualMachine", "web", **refs, disks=disks))
    await talk.until(f"{BASE}/virtualmachines/web", runs, "the source runs", SECONDS)
    await marked(talk, "web", "; ".join([*(write(MARKS[name], disk) for name, disk in DISKS.items()), "sync"]))
    await _there(talk, libvirtd)
    await _back(talk, libvirtd)


async def _there(talk: Talk, libvirtd: "Libvirtd") -> None:
    """To libvirt: the source is off and stays, so the bytes of both ends can be compared."""
    source = {"vmRef": {"name": "web"}, "powerOffBeforeMigration": True}
    await _moved(talk, "there", source, {"name": "guest", "providerRef": {"name": "lab"}})
    assert all(user != 0 for user in _users(talk.host.root)) and len(_users(talk.host.root)) == 1
    kept = await talk.get(f"{BASE}/virtualmachines/web")
    assert kept["status"]["powerState"] == "Off", kept["status"]
    here, there = await _sums_here(talk), _sums_there(libvirtd.pool)
    assert len(there) == len(DISKS) and sorted(there.values()) == sorted(here.values()), (here, there)
    await talk.change(f"{BASE}/virtualmachines/guest", {"spec": {"powerState": "On"}})
    await talk.until(f"{BASE}/virtualmachines/guest", runs, "it runs at libvirt", SECONDS)
    for name, disk in DISKS.items():
        assert await _inside(libvirtd, "guest", read(disk)) == MARKS[name]
    await _inside(libvirtd, "guest", f"echo {FURTHER} | dd of=/dev/vdc bs=512 seek={PLACE + 1} conv=notrunc; sync")


async def _back(talk: Talk, libvirtd: "Libvirtd") -> None:
    """Back to the own engine: the machine at libvirt is stopped, moved and deleted, and its successor runs."""
    source = {"vmRef": {"name": "guest"}, "deleteAfterMigration": True}
    await _moved(talk, "back", source, {"name": "home", "providerRef": {"name": "here"}, "powerOn": True})
    await talk.until(f"{BASE}/virtualmachines/home", runs, "it runs here again", SECONDS)
    for name, disk in DISKS.items():
        assert await marked(talk, "home", read(disk)) == MARKS[name]
    assert await marked(talk, "home", read("vdc").replace(str(PLACE), str(PLACE + 1))) == FURTHER
    await talk.until(f"{BASE}/virtualmachines/guest", lambda found: not found, "the machine at libvirt is deleted", SECONDS)
    for name in ("there", "back"):
        await talk.until(f"{CLAIMS}/{name}-storage", lambda found: not found, "the claim between them is deleted")
    # What the driver keeps for images stays; of the exports nothing does.
    staged = talk.host.root / "engine" / "staging"
    assert not list(libvirtd.pool.glob("*.qcow2")) and not [each for each in staged.rglob("*export*") if each.is_file()]


async def _moved(talk: Talk, name: str, source: Data, target: Data) -> None:
    """Move a machine over a claim; the checksums of all disks agree."""
    spec = {"source": source, "target": {"classRef": {"name": "small"}, **target}, "storage": {"type": "pvc"}}
    await talk.make(f"{BASE}/vmmigrations", document("VMMigration", name, **spec))
    found = await talk.until(f"{BASE}/vmmigrations/{name}", lambda each: phase(each) in ("Ready", "Failed"), "it has moved", SECONDS)
    assert phase(found) == "Ready", found["status"]
    assert found["status"]["validationResults"] == {"diskSizeMatch": True, "checksumMatch": True}
    disks = found["status"]["disks"]
    assert len(disks) == len(DISKS) and all(len(each["checksum"]) == 64 and each["checksum"] == each["targetChecksum"] for each in disks)


def _users(root: Path) -> list[int]:
    """The users that the programs of Providers below a directory run as."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words, user = (entry / "cmdline").read_bytes().split(b"\0"), entry.stat().st_uid
            except OSError:
                continue
            if b"--credentials-dir" in words and any(word.startswith(os.fsencode(root)) for word in words):
                found.append(user)
    return found


async def _sums_here(talk: Talk) -> Mapping[str, str]:
    """The SHA-256 of what a guest sees of each disk of the own engine."""
    volumes, found = Volumes(talk.host.root / "engine"), {}
    for claim in (await talk.get(CLAIMS))["items"]:
        volume = volumes.get(claim["metadata"]["uid"])
        if claim["metadata"]["name"].startswith("web") and volume is not None:
            found[claim["metadata"]["name"]] = _sum(qemuimg._json(volume.layer))
    return found


def _sums_there(pool: Path) -> Mapping[str, str]:
    """The SHA-256 of what a guest sees of each disk in a pool."""
    return {each.name: _sum(str(each)) for each in pool.glob("*.qcow2")}


def _sum(disk: str) -> str:
    with tempfile.TemporaryDirectory(prefix="pdk-", dir="/tmp") as directory:
        flat = Path(directory) / "flat"
        subprocess.run(["qemu-img", "convert", "-U", "-O", "raw", disk, flat], check=True)
        with flat.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


async def _inside(libvirtd: "Libvirtd", name: str, command: str) -> str:
    """What a command in a guest at libvirt says, by the guest's agent."""
    import libvirt  # noqa: PLC0415 - without the library, tests skip
    import libvirt_qemu  # noqa: PLC0415 - as above

    connection = libvirt.open(libvirtd.uri)
    domain = connection.lookupByName(name)

    async def ask(execute: str, **arguments: object) -> Data:
        text = json.dumps({"execute": execute, **({"arguments": arguments} if arguments else {})})
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    return dict(json.loads(libvirt_qemu.qemuAgentCommand(domain, text, 10, 0))["return"])
                except libvirt.libvirtError:
                    # A guest that boots has no agent yet.
                    await asyncio.sleep(1)

    try:
        await ask("guest-ping")
        words = {"path": "/bin/sh", "arg": ["-c", command], "capture-output": True}
        pid = (await ask("guest-exec", **words))["pid"]
        while not (ended := await ask("guest-exec-status", pid=pid))["exited"]:
            await asyncio.sleep(0.2)
        assert ended["exitcode"] == 0, ended
        return base64.b64decode(ended.get("out-data", "")).decode().strip()
    finally:
        connection.close()
