"""DataSources with addresses on the real engine: what is downloaded when, and what becomes of the disks."""

import asyncio
import lzma
import subprocess
from pathlib import Path

import pytest

from paddock.base.images.download import DownloadRules
from paddock.engine.storage import qemuimg
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.errors import Invalid
from tests.coroutines import played
from tests.host.fronts.conftest import MB, guest
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, condition, machine, phase
from tests.kit.servers.imageserver import Fault, Server
from tests.scenario.fronts.kubermatic.making import source, template

pytestmark = pytest.mark.needs("qemu")

CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default"
DISKS, SOURCES = f"{CDI}/datavolumes", f"{CDI}/datasources"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def installed(name: str, of: str = "image", strategy: str = "Always", size: str = "8Mi", namespace: str = "") -> Data:
    """A machine with a disk from a DataSource."""
    document = machine(name, strategy=strategy, volumes=[{"name": "root", "dataVolume": {"name": f"{name}-disk"}}])
    document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    document["spec"]["dataVolumeTemplates"] = [template(f"{name}-disk", of, size, namespace)]
    return document


async def disk(talk: Talk, name: str) -> Data:
    """A DataVolume; empty when it is not there."""
    return await talk.get(f"{DISKS}/{name}")


async def filled(talk: Talk, name: str) -> Data:
    """A DataVolume that has its content."""
    return await talk.until(f"{DISKS}/{name}", lambda found: phase(found) == "Succeeded", f"{name} is filled")


async def failed(talk: Talk, name: str) -> str:
    """Return the message of a DataVolume that cannot be filled."""
    found = await talk.until(f"{DISKS}/{name}", lambda found: phase(found) == "Failed", f"{name} has failed")
    return str(condition(found, "Running")["message"])


def resolved(found: Data) -> tuple[str, str]:
    """Return the status and the reason of a machine's DataSourceResolved."""
    said = condition(found, "DataSourceResolved")
    return said.get("status", ""), said.get("reason", "")


async def holds(talk: Talk, claim: str, filler: int) -> bool:
    """Return True if a disk has this byte where the guest does not write."""
    volume = Volumes(talk.host.root / "engine").get((await talk.get(f"{CLAIMS}/{claim}"))["metadata"]["uid"])
    assert volume is not None
    command = ["qemu-io", "-r", "-U", qemuimg._json(volume.layer), "-c", f"read -P {filler} 512k 64k"]
    said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30).stdout
    assert "read 65536/65536" in said, said
    return "verification failed" not in said


@pytest.mark.spec("kubermatic", 25, 27, 28, 29)
@played
async def test_a_data_source_that_comes_late_changes_and_goes(talk: Talk, /, origin: Server) -> None:
    first, second = origin.put("/first", guest(1)), origin.put("/second", guest(2))
    await talk.make(VMS, installed("one"))
    await talk.until(f"{VMS}/one", lambda found: resolved(found) == ("False", "DataSourceNotFound"), "it waits")
    assert await disk(talk, "one-disk") == {} == await talk.get(f"{VMIS}/one")
    await talk.make(SOURCES, source(url=first))
    await talk.until(f"{SOURCES}/image", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
    run = (await talk.running("one"))["metadata"]["uid"]
    assert resolved(await talk.get(f"{VMS}/one")) == ("True", "Resolved")
    await talk.change(f"{SOURCES}/image", {"spec": {"source": {"http": {"url": second}}}})
    await talk.make(VMS, installed("two"))
    await talk.running("two")
    urls = [(await disk(talk, f"{name}-disk"))["spec"]["source"]["http"]["url"] for name in ("one", "two")]
    assert urls == [first, second]
    assert await holds(talk, "one-disk", 1) and await holds(talk, "two-disk", 2)
    before = talk.host.qemus()
    await talk.client.request("DELETE", f"{SOURCES}/image")
    await talk.make(VMS, installed("three"))
    await talk.until(f"{VMS}/three", lambda found: resolved(found) == ("False", "DataSourceNotFound"), "the next one waits")
    await asyncio.sleep(2)
    assert talk.host.qemus() == before and (await talk.get(f"{VMIS}/one"))["metadata"]["uid"] == run


@pytest.mark.spec("kubermatic", 30)
@played
async def test_a_data_source_of_another_namespace(talk: Talk, /, origin: Server) -> None:
    url = origin.put("/a", guest(1))
    await talk.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "images"}})
    there = SOURCES.replace("default", "images")
    account = {"accessKeyId": "ada", "secretKey": "s3cret"}
    await talk.make("/api/v1/namespaces/images/secrets", {"metadata": {"name": "account"}, "stringData": account})
    await talk.make(there, source("plain", url, namespace="images"))
    await talk.make(there, source("secret", url, namespace="images", secretRef="account"))
    for name in ("secret", "plain"):
        await talk.make(VMS, installed(name, name, namespace="images"))
    await talk.running("plain")
    assert await holds(talk, "plain-disk", 1)
    await talk.until(f"{VMS}/secret", lambda found: resolved(found) == ("False", "CrossNamespaceSecret"), "it is refused")
    assert await disk(talk, "secret-disk") == {}


@pytest.mark.spec("kubermatic", 31, 32)
@played
async def test_disks_come_with_the_first_start_and_go_with_the_machine(talk: Talk, /, origin: Server) -> None:
    url = origin.put("/a", guest(1))
    await talk.make(SOURCES, source(url=url))
    eager = installed("eager", strategy="Halted")
    eager["metadata"]["annotations"] = {"kubevirt.io/immediate-data-volume-creation": "true"}
    await talk.make(VMS, installed("lazy", strategy="Halted"))
    await talk.make(VMS, eager)
    await filled(talk, "eager-disk")
    await asyncio.sleep(2)
    assert await disk(talk, "lazy-disk") == {} and talk.host.qemus() == {}
    await talk.change(f"{VMS}/lazy", {"spec": {"runStrategy": "Always"}})
    await talk.running("lazy")
    made, claim = await disk(talk, "lazy-disk"), await talk.get(f"{CLAIMS}/lazy-disk")
    owners = [[(each["kind"], each["uid"]) for each in found["metadata"]["ownerReferences"]] for found in (made, claim)]
    machine_uid = (await talk.get(f"{VMS}/lazy"))["metadata"]["uid"]
    assert owners == [[("VirtualMachine", machine_uid)], [("DataVolume", made["metadata"]["uid"])]]
    volumes = Volumes(talk.host.root / "engine")
    assert claim["metadata"]["uid"] in volumes.ids()
    await talk.client.request("DELETE", f"{VMS}/lazy")
    for path in (f"{VMS}/lazy", f"{DISKS}/lazy-disk", f"{CLAIMS}/lazy-disk"):
        await talk.until(path, lambda found: not found, f"{path} is gone")
    async with asyncio.timeout(30):
        while claim["metadata"]["uid"] in volumes.ids():
            await asyncio.sleep(0.1)
    assert talk.host.qemus() == {} and await talk.get(f"{SOURCES}/image") and await disk(talk, "eager-disk")


def backed(work: Path, raw: Path) -> bytes:
    """A qcow2 image that names a file of the host as its backing file."""
    path = work / "backed.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", raw, "-F", "raw", path], check=True)
    return path.read_bytes()


def as_qcow2(work: Path, raw: Path) -> bytes:
    """The same disk as qcow2."""
    path = work / "disk.qcow2"
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, path], check=True)
    return path.read_bytes()


@pytest.mark.spec("kubermatic", 24, 34, 35, 36)
@played
async def test_what_can_be_imported_and_what_cannot(talk: Talk, /, origin: Server, work: Path) -> None:
    raw = work / "guest.img"
    raw.write_bytes(guest(1))
    images = {"raw": guest(1), "qcow2": as_qcow2(work, raw), "xz": lzma.compress(guest(1)), "busy": guest(1)}
    images |= {"backed": backed(work, raw), "large": guest(1, 20 * MB), "sum": guest(1)}
    urls = {name: origin.put(f"/{name}", body) for name, body in images.items()} | {"gone": f"{origin.url}/gone"}
    # As often as one transfer tries by itself.
    origin.faults["/busy"] = [Fault(503)] * DownloadRules().attempts

    wrong: Data = {"checksum": f"sha256:{'0' * 64}"}
    with pytest.raises(Invalid, match="checksum"):
        await talk.make(SOURCES, source("bad", urls["sum"], checksum="sha256:zz"))
    for name, url in urls.items():
        await talk.make(SOURCES, source(name, url, **(wrong if name == "sum" else {})))
        await talk.make(VMS, installed(name, name))
    for name in ("raw", "qcow2", "xz", "busy"):
        await talk.running(name)
        assert await holds(talk, f"{name}-disk", 1), name
    assert (await filled(talk, "busy-disk"))["status"]["restartCount"] == 1
    said = {name: await failed(talk, f"{name}-disk") for name in ("backed", "large", "sum", "gone")}
    assert "the image needs 20Mi, the volume has 8Mi" in said["large"], said
    assert "backing file" in said["backed"] and "checksum" in said["sum"] and "404" in said["gone"], said
    assert sum(each.path == "/gone" and each.method == "GET" for each in origin.seen) == 1
    await talk.until(f"{VMS}/large", lambda found: found["status"]["printableStatus"] == "DataVolumeError", "its machine says so")


@pytest.mark.spec("kubermatic", 37)
@played
async def test_every_disk_asks_for_its_image_and_what_did_not_change_is_not_sent_again(talk: Talk, /, origin: Server) -> None:
    plain, kept = origin.put("/plain", guest(1)), origin.put("/kept", guest(2))
    await talk.make(SOURCES, source("plain", plain))
    await talk.make(SOURCES, source("kept", kept, cached=True))
    for name, of in (("one", "plain"), ("two", "plain"), ("three", "kept"), ("four", "kept")):
        await talk.make(VMS, installed(name, of))
        await talk.running(name)
        assert await holds(talk, f"{name}-disk", 1 if of == "plain" else 2)
    asked = {path: [each for each in origin.seen if each.path == path and each.method == "GET"] for path in ("/plain", "/kept")}
    assert [each.headers.get("if-none-match") for each in asked["/plain"]] == [None, '"one"']
    assert len(asked["/kept"]) == 1
    # What did change is sent.
    origin.put("/plain", guest(3), etag='"two"')
    await talk.make(VMS, installed("five", "plain"))
    await talk.running("five")
    assert await holds(talk, "five-disk", 3) and await holds(talk, "one-disk", 1)


@pytest.mark.spec("kubermatic", 74)
@played
async def test_a_disk_that_is_deleted_is_imported_again_at_the_next_start(talk: Talk, /, origin: Server) -> None:
    await talk.make(SOURCES, source(url=origin.put("/a", guest(1))))
    await talk.make(VMS, installed("stopped"))
    await talk.make(VMS, installed("running"))
    claims = {}
    for name in ("stopped", "running"):
        await talk.running(name)
        claims[name] = (await talk.get(f"{CLAIMS}/{name}-disk"))["metadata"]["uid"]
    await talk.verb("stopped", "stop")
    await talk.until(f"{VMIS}/stopped", lambda found: not found, "it is stopped")
    qemus = talk.host.qemus()
    for name in claims:
        await talk.client.request("DELETE", f"{DISKS}/{name}-disk")
    await talk.until(f"{CLAIMS}/stopped-disk", lambda found: not found, "its claim is gone")
    await asyncio.sleep(3)
    # The one that runs has its disk until it stops.
    assert talk.host.qemus() == qemus and claims["running"] in Volumes(talk.host.root / "engine").ids()
    await talk.verb("running", "stop")
    await talk.until(f"{CLAIMS}/running-disk", lambda found: found.get("metadata", {}).get("uid") != claims["running"], "its claim is gone")
    for name in claims:
        await talk.verb(name, "start")
    for name, former in claims.items():
        await talk.running(name)
        assert (await talk.get(f"{CLAIMS}/{name}-disk"))["metadata"]["uid"] != former
        assert await holds(talk, f"{name}-disk", 1)
