"""Disks of machines that run, by a whole server: their sizes, where they come from, what becomes of them."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from paddock.engine.machine.config import DiskLayer
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.storage import qemuimg
from paddock.kubernetes.client.errors import Invalid
from tests.coroutines import run_by
from tests.host.machines import bootsector
from tests.host.storage.conftest import CORE, MB, Data, base64_of, pvc
from tests.host.storage.machines import Machines, claim, machines
from tests.kit.servers.imageserver import Registry, Server, layer, running

pytestmark = pytest.mark.needs("qemu")

GUEST = bootsector.marker().ljust(MB, b"\0")
CODE = GUEST[:16]


def path(machine: QemuMachine, disk: str) -> Path:
    """The file that a disk is written to."""
    found = next(each.layer for each in machine.config.disks if each.name == disk)
    assert found is not None
    return found.path


def marked(layer: DiskLayer) -> bool:
    """Return whether the guest wrote on a disk, as seen through all its layers."""
    words = ["qemu-io", "-r", "-U", qemuimg._json(layer), "-c", f"read -P {CODE[0]} {bootsector.MARKED} 1"]
    said = subprocess.run(words, check=False, capture_output=True, text=True, timeout=30).stdout
    assert "read 1/1 bytes" in said, said
    return "verification failed" not in said


@pytest.mark.spec("kubevirt", 69)
@run_by(asyncio.run)
async def test_sizes(work: Path) -> None:
    server = Server()
    image = {"http": {"url": server.put("/guest", GUEST)}}
    large = {"http": {"url": server.put("/large", GUEST.ljust(2 * MB, b"\0"))}}
    with running(server):
        async with machines(work / "root") as host:
            here = host.here
            await here.data_volume("literal", {"source": image, "pvc": pvc("8Mi")})
            await here.data_volume("inflated", {"source": image, "storage": {"resources": {"requests": {"storage": "8Mi"}}}})
            await here.data_volume("small", {"source": large, "pvc": pvc("1Mi")})
            await here.until_phase("small", "Failed")
            assert "A larger PVC is required" in (await here.running_condition("small"))["message"]
            await host.make("web", [{"name": name, "dataVolume": {"name": name}} for name in ("literal", "inflated")])
            await host.running("web")
            run = (await host.instance("web"))["metadata"]["uid"]
            requests = {name: (await here.get(f"{CORE}/persistentvolumeclaims/{name}"))["spec"] for name in ("literal", "inflated")}
            assert requests["literal"]["resources"]["requests"]["storage"] == "8Mi"
            # 8 MiB and 6 % of it, rounded up.
            assert requests["inflated"]["resources"]["requests"]["storage"] == "8891925"
            for name in requests:
                await host.until_size("web", name, 8 * MB)
            # while it runs, without another start
            await host.resize("literal", "16Mi")
            await host.resize("inflated", "20Mi")
            await host.until_size("web", "literal", 16 * MB)
            await host.until_size("web", "inflated", 20 * MB)
            await host.until_capacity("literal", "16Mi")
            await host.until_capacity("inflated", "20Mi")
            assert (await host.instance("web"))["metadata"]["uid"] == run
            # at rest
            await host.stopped("web")
            await host.resize("literal", "24Mi")
            await host.until_capacity("literal", "24Mi")
            await host.set_strategy("web", "Always")
            await host.running("web")
            await host.until_size("web", "literal", 24 * MB)
            await host.until_size("web", "inflated", 20 * MB)
            with pytest.raises(Invalid, match="less than"):
                await host.resize("literal", "8Mi")


@pytest.mark.spec("kubevirt", 74)
@run_by(asyncio.run)
async def test_what_goes_with_a_run_and_what_stays(work: Path) -> None:
    server = Server()
    first = {"http": {"url": server.put("/first", GUEST)}}
    second = {"http": {"url": server.put("/second", bootsector.marker(1).ljust(MB, b"\0"))}}
    with running(server):
        async with machines(work / "root") as host:
            here = host.here
            for name, source in (("kept", first), ("below", first), ("second", second)):
                await here.data_volume(name, {"source": source, "pvc": pvc("1Mi")})
                await here.until_phase(name, "Succeeded")
            await host.make("kept", [{"name": "root", **claim("kept")}])
            await host.mark(await host.running("kept"))
            assert not path(await host.again("kept"), "root").is_relative_to(work / "root" / "engine" / "scratch")
            await host.stopped("kept")
            assert marked(await here.layer("kept"))
            # what is written over a claim is not written to it
            await host.make("empty", [{"name": "root", **claim("second")}, {"name": "data", "emptyDisk": {"capacity": "4Mi"}}])
            await host.make("above", [{"name": "root", "ephemeral": claim("below")}])
            empty, above = await host.running("empty"), await host.running("above")
            assert (await host.disk("empty", "data"))["size"] == 4 * MB
            for _ in range(2):
                scratch = [path(empty, "data"), path(above, "root")]
                assert not any(CODE in each.read_bytes() for each in scratch)
                await host.mark(empty)
                await host.mark(above)
                assert all(CODE in each.read_bytes() for each in scratch)
                ended = {empty.id, above.id}
                empty, above = await host.again("empty"), await host.again("above")
                assert not ended & host.engine.volumes.scratch_owners()
                assert not any(each.exists() for each in scratch)
            assert marked(await here.layer("kept"))
            assert not marked(await here.layer("below")) and not marked(await here.layer("second"))


class Pictures:
    """A registry for everybody and one for those who have a secret, with images of the guest."""

    def __init__(self) -> None:
        self.public, self.private = Registry(), Registry("basic")
        disk = layer({"disk/guest.img": GUEST})
        self.digest = self.public.image("guest", "1", disk)
        self.private.image("guest", "1", disk)
        self.public.image("two", "1", layer({"disk/bad.img": b"\0" * MB, "disk/guest.img": GUEST}))
        other = self.public.image("many", "other", layer({"disk/bad.img": b"\0" * MB}))
        ours = self.public.image("many", "ours", disk)
        self.public.index("many", "1", {"arm64": other, "amd64": ours, "s390x": other})

    def disk(self, name: str, *, private: bool = False, **more: str) -> list[Data]:
        """The volumes of a machine whose root is an image."""
        host = self.private.host if private else self.public.host
        return [{"name": "root", "containerDisk": {"image": f"{host}/{name}", **more}}]

    def asked(self) -> int:
        """Return how often the public registry was asked for a manifest since the last call."""
        count = sum("/manifests/" in each.path for each in self.public.seen)
        self.public.seen.clear()
        return count

    @property
    def secret(self) -> Data:
        """The pull secret of the private one."""
        auths = {self.private.host: {"auth": base64_of("me:secret")}}
        return {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": json.dumps({"auths": auths})}}


async def found(host: Machines, pictures: Pictures) -> None:
    await host.here.post(f"{CORE}/secrets", {"metadata": {"name": "pull"}, **pictures.secret})
    for name, volumes in {
        "secret": pictures.disk("guest:1", private=True, imagePullSecret="pull"),
        "digest": pictures.disk(f"guest@{pictures.digest}"),
        "public": pictures.disk("guest:1"),
        "many": pictures.disk("many:1"),
        "path": pictures.disk("two:1", path="/disk/guest.img"),
    }.items():
        await host.make(name, volumes)
        await host.running(name)
        await host.stopped(name)


async def refused(host: Machines, pictures: Pictures) -> None:
    # that somebody with the secret had it pulled helps nobody else
    await host.make("nobody", pictures.disk("guest:1", private=True))
    assert "authentication required" in await host.held("nobody", "ErrImagePull")
    await host.make("both", pictures.disk("two:1"))
    assert "/disk" in await host.held("both", "ErrImagePull")
    for name in ("nobody", "both"):
        await host.stopped(name)


async def policies(host: Machines, pictures: Pictures) -> None:
    await host.make("never", pictures.disk("later:1", imagePullPolicy="Never"))
    assert "pull policy of Never" in await host.held("never", "ErrImagePull")
    pictures.asked()
    for policy, count in (("IfNotPresent", 0), ("Never", 0), ("Always", 1)):
        await host.make(policy.lower() + "-here", pictures.disk("guest:1", imagePullPolicy=policy))
        await host.running(policy.lower() + "-here")
        assert (policy, pictures.asked()) == (policy, count)
        # so with every start
        await host.again(policy.lower() + "-here")
        assert (policy, pictures.asked()) == (policy, count)
        await host.stopped(policy.lower() + "-here")


async def recovery(host: Machines, pictures: Pictures) -> None:
    await host.make("missing", pictures.disk("missing:1"))
    for reason in ("ErrImagePull", "ImagePullBackOff"):
        assert "manifest unknown" in await host.held("missing", reason)
        # The machine says it a moment after its instance.
        while await host.word("missing") != reason:
            await asyncio.sleep(0.05)
    pictures.public.image("missing", "1", layer({"disk/guest.img": GUEST}))
    await host.running("missing", 40)


@pytest.mark.spec("kubevirt", 73)
@run_by(asyncio.run)
async def test_container_disks(work: Path) -> None:
    pictures = Pictures()
    with running(pictures.public), running(pictures.private):
        registries = (pictures.public.host, pictures.private.host)
        async with machines(work / "root", insecure_registries=registries) as host:
            for part in (found, refused, policies, recovery):
                await part(host, pictures)


@contextmanager
def mounted(at: Path, kind: str) -> Iterator[Path]:
    """A file system of its own: in memory, or in a file."""
    at.mkdir()
    words = ["-t", kind, "-o", "mode=755", "paddock-test"]
    if kind in ("ext4", "xfs"):
        file = at.with_suffix(".fs")
        file.touch()
        os.truncate(file, 400 * MB)
        subprocess.run([f"mkfs.{kind}", "-q", file], check=True)
        words = ["-o", "loop", str(file)]
    subprocess.run(["mount", *words, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def can_direct(directory: Path) -> bool:
    """Return whether the file system of a directory has O_DIRECT: ramfs never, tmpfs since Linux 6.6."""
    file = directory / "probe"
    file.write_bytes(b"")
    try:
        os.close(os.open(file, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def opened(machine: QemuMachine, disk: str) -> tuple[bool, str, str]:
    """Return how QEMU opened a disk: past the host's cache, by which calls, and if the guest sees a cache."""
    words = Path(f"/proc/{machine.observed.pid}/cmdline").read_bytes().decode().split("\0")
    nodes = [json.loads(word) for word in words if word.startswith("{")]
    device = next(each for each in nodes if each.get("id") == f"ua-{disk}")
    node = next(each for each in nodes if each.get("node-name") == device["drive"])
    assert node["cache"] == node["file"]["cache"]
    return node["cache"]["direct"], node["file"]["aio"], device["write-cache"]


@pytest.mark.spec("kubevirt", 78)
@pytest.mark.needs("root", "filesystems")
def test_caches_by_file_system(work: Path) -> None:
    def volumes(directory: Path) -> list[Data]:
        (directory / "solid.img").write_bytes(b"\1" * MB)
        bootsector.write(directory / "root.img")
        return [{"name": name, "hostDisk": {"path": f"{directory / name}.img", "type": "Disk"}} for name in ("root", "solid")]

    async def script(places: dict[str, Path]) -> None:
        async with machines(work / "root", host_paths=tuple(places.values())) as host:
            for name, directory in places.items():
                direct = can_direct(directory)
                await host.make(name, volumes(directory))
                guest = await host.running(name)
                assert opened(guest, "root") == ((True, "threads", "on") if direct else (False, "threads", "off")), name
                assert opened(guest, "solid") == ((True, "native", "on") if direct else (False, "threads", "off")), name
                await host.stopped(name)
                explicit = [{**each, "disk": {"cache": "none"}} for each in volumes(directory)]
                await host.make(f"{name}-none", explicit)
                if direct:
                    assert opened(await host.running(f"{name}-none"), "root")[0]
                else:
                    await host.until_told(f"{name}-none", "O_DIRECT")
                await host.stopped(f"{name}-none")

    with ExitStack() as stack:
        work.chmod(0o755)
        places = {kind: stack.enter_context(mounted(work / kind, kind)) for kind in ("ext4", "xfs", "tmpfs", "ramfs")}
        assert can_direct(places["ext4"]) and can_direct(places["xfs"]) and not can_direct(places["ramfs"])
        asyncio.run(script(places))


@pytest.mark.spec("kubevirt", 77)
@run_by(asyncio.run)
async def test_a_claim_has_one_writer_unless_it_is_shared(work: Path) -> None:
    server = Server()
    image = {"http": {"url": server.put("/guest", GUEST)}}
    with running(server):
        async with machines(work / "root") as host:
            here = host.here
            for name, mode in (("alone", "ReadWriteOnce"), ("raced", "ReadWriteOnce"), ("shared", "ReadWriteMany")):
                await here.data_volume(name, {"source": image, "pvc": {**pvc("1Mi"), "accessModes": [mode]}})
                await here.until_phase(name, "Succeeded")
            await host.make("first", [{"name": "root", **claim("alone")}])
            await host.running("first")
            await host.make("second", [{"name": "root", **claim("alone")}])
            said = await host.held("second", "PVCInUse")
            assert "alone" in said and "first" in said
            # both at the same moment: one of them runs, and nothing fails
            pair = ("left", "right")
            await asyncio.gather(*(host.make(name, [{"name": "root", **claim("raced")}]) for name in pair))

            async def one_runs() -> bool:
                return "Running" in [(await host.status(name)).get("phase") for name in pair]

            await here.until("one of two runs", one_runs)
            await asyncio.sleep(1)
            phases = {(await host.status(name)).get("phase"): name for name in pair}
            assert phases.keys() == {"Running", "Pending"}, phases
            await host.held(phases["Pending"], "PVCInUse")
            # the next is let in when the first has gone
            await host.stopped("first")
            await host.running("second")
            # both say that they share
            for name in ("one", "other"):
                await host.make(name, [{"name": "root", "disk": {"shareable": True}, **claim("shared")}])
            for name in ("one", "other"):
                await host.mark(await host.running(name))
