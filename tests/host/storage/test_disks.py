"""Disks of machines that run, by a whole server: their sizes, where they come from, what becomes of them."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from paddock.client.errors import Invalid
from paddock.engine.machine.config import Layer
from paddock.engine.machine.machine import Machine
from paddock.engine.storage import qemuimg
from paddock.plan import claimsizes
from tests.host.machines import bootsector
from tests.host.storage.conftest import CORE, MB, pvc
from tests.host.storage.machines import claim, machines
from tests.imageserver import Server, running

pytestmark = pytest.mark.needs("qemu")

GUEST = bootsector.marker().ljust(MB, b"\0")
CODE = GUEST[:16]


def path(machine: Machine, disk: str) -> Path:
    """The file that a disk is written to."""
    found = next(each.layer for each in machine.config.disks if each.name == disk)
    assert found is not None
    return found.path


def marked(layer: Layer) -> bool:
    """Whether the guest wrote on a disk, as whoever looks at all its layers sees it."""
    words = ["qemu-io", "-r", "-U", qemuimg._json(layer), "-c", f"read -P {CODE[0]} {bootsector.MARKED} 1"]
    said = subprocess.run(words, check=False, capture_output=True, text=True, timeout=30).stdout
    assert "read 1/1 bytes" in said, said
    return "verification failed" not in said


@pytest.mark.spec("kubevirt", 69)
def test_sizes(work: Path) -> None:
    server = Server()
    image = {"http": {"url": server.put("/guest", GUEST)}}
    large = {"http": {"url": server.put("/large", GUEST.ljust(2 * MB, b"\0"))}}

    async def script() -> None:
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
            assert requests["inflated"]["resources"]["requests"]["storage"] == str(claimsizes.inflated(8 * MB, "0.06"))
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

    with running(server):
        asyncio.run(script())


@pytest.mark.spec("kubevirt", 74)
def test_what_goes_with_a_run_and_what_stays(work: Path) -> None:
    server = Server()
    first = {"http": {"url": server.put("/first", GUEST)}}
    second = {"http": {"url": server.put("/second", bootsector.marker(1).ljust(MB, b"\0"))}}

    async def script() -> None:
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

    with running(server):
        asyncio.run(script())
