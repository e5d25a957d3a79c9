"""Uploads over TLS as virtctl does them: the kubeconfig's authority, a token, HEAD, POST, chunked or not."""

import asyncio
import gzip
import io
import lzma
import resource
import ssl
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from paddock.engine.storage.pools import MARKER
from tests.coroutines import run_by
from tests.host.storage.conftest import CORE, MB, Site, disk, holds, pvc, site

pytestmark = pytest.mark.needs("qemu")
TOKENS = "/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/default/uploadtokenrequests"


async def token(here: Site, name: str) -> str:
    made = await here.post(TOKENS, {"metadata": {"name": "t"}, "spec": {"pvcName": name}})
    return str(made["status"]["token"])


async def open_connection(here: Site) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = (await here.get("/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config"))["status"]["uploadProxyURL"]
    parts = urlsplit(address)
    context = ssl.create_default_context(cadata=here.authority)
    return await asyncio.open_connection(parts.hostname, parts.port, ssl=context)


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 100_000):
        yield body[start : start + 100_000]


async def send(
    here: Site, request: str, body: bytes, secret: str, *, chunked: bool = False, stop_after: int | None = None
) -> tuple[int, str]:
    """One request; `stop_after` goes away in the middle."""
    reader, writer = await open_connection(here)
    length = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % len(body)
    head = f"{request} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: application/octet-stream\r\n".encode()
    writer.write(head + length + b"\r\n\r\n")
    sent = 0
    async for piece in pieces(body):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        await writer.drain()
        sent += len(piece)
        if stop_after is not None and sent > stop_after:
            writer.transport.abort()
            return 0, ""
    if chunked:
        writer.write(b"0\r\n\r\n")
    answer = await reader.readuntil(b"\r\n\r\n")
    size = next((int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.startswith(b"content-length")), 0)
    text = await reader.readexactly(size) if not request.startswith("HEAD") else b""
    writer.close()
    return int(answer.split()[1]), text.decode()


async def target(here: Site, name: str, kind: str, **more: Any) -> None:
    """A claim to upload to, made by a DataVolume or by itself."""
    if kind == "dv":
        await here.data_volume(name, {"source": {"upload": {}}, "pvc": pvc("64Mi"), **more})
        await here.until_phase(name, "UploadReady")
        return
    notes = {"cdi.kubevirt.io/storage.upload.target": ""}
    await here.post(f"{CORE}/persistentvolumeclaims", {"metadata": {"name": name, "annotations": notes}, "spec": pvc("64Mi")})
    await here.until("ready", lambda: has_note(here, name, "cdi.kubevirt.io/storage.pod.ready", "true"))


async def has_note(here: Site, name: str, note: str, value: str) -> bool:
    found = await here.get(f"{CORE}/persistentvolumeclaims/{name}")
    return bool((found["metadata"].get("annotations") or {}).get(note) == value)


@pytest.mark.parametrize("kind", ["dv", "pvc"])
@run_by(asyncio.run)
async def test_disks_of_all_forms_are_uploaded(work: Path, kind: str) -> None:
    raw, qcow2 = disk(work, form="raw", size=24 * MB), disk(work)
    bodies = {"raw": raw, "qcow2": qcow2, "gz": gzip.compress(raw, 1), "xz": lzma.compress(raw, preset=0)}
    async with site(work / "root") as here:
        for number, (form, body) in enumerate(bodies.items()):
            name = f"{kind}-{form}"
            await target(here, name, kind)
            secret = await token(here, name)
            asynchronous = number % 2 == 0
            path = "/v1beta1/upload-async" if asynchronous else "/v1beta1/upload"
            assert (await send(here, f"HEAD {path}", b"", secret))[0] == 200
            assert (await send(here, f"POST {path}", body, "not.a.token"))[0] == 401
            assert await send(here, f"POST {path}", body, secret, chunked=asynchronous) == (200, "")
            await here.until("whole", lambda name=name: has_note(here, name, "cdi.kubevirt.io/storage.pod.phase", "Succeeded"))  # type: ignore[misc]
            assert holds(await here.layer(name), 7) and holds(await here.layer(name), 0, "20M"), form
            assert (await send(here, f"POST {path}", body, secret))[0] == 409


@run_by(asyncio.run)
async def test_an_upload_that_breaks_can_be_repeated(work: Path) -> None:
    raw = disk(work, form="raw", size=24 * MB)
    async with site(work / "root") as here:
        await target(here, "a", "dv")
        await send(here, "POST /v1beta1/upload", raw, await token(here, "a"), stop_after=8 * MB)
        # half of it is nowhere, and the claim waits again
        await asyncio.sleep(1)
        assert (await here.status("a"))["phase"] == "UploadReady"
        assert {each.name for each in (here.root / "engine" / "volumes").iterdir()} <= {MARKER}
        hostile = disk(work, "hostile").replace(b"QFI\xfb\x00\x00\x00\x03", b"QFI\xfb\x00\x00\x00\x09", 1)
        status, text = await send(here, "POST /v1beta1/upload", hostile, await token(here, "a"))
        assert status == 400 and text
        assert (await send(here, "POST /v1beta1/upload", raw, await token(here, "a")))[0] == 200
        await here.until_phase("a", "Succeeded")
        assert holds(await here.layer("a"), 7)


def archive(*names: str, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 5
            tar.addfile(entry, io.BytesIO(b"hello"))
        if link:
            entry = tarfile.TarInfo("link")
            entry.type, entry.linkname = tarfile.SYMTYPE, link
            tar.addfile(entry)
    return out.getvalue()


@run_by(asyncio.run)
async def test_an_archive_is_unpacked_and_what_leaves_it_refused(work: Path) -> None:
    async with site(work / "root") as here:
        await target(here, "a", "dv", contentType="archive")
        for bad in (archive("../../out"), archive(link="/etc/passwd"), b"no archive"):
            status, text = await send(here, "POST /v1beta1/upload", bad, await token(here, "a"))
            assert status == 400 and "archive" in text
        assert (await send(here, "POST /v1beta1/upload", archive("one", "two/three", link="one"), await token(here, "a")))[0] == 200
        await here.until_phase("a", "Succeeded")
        uid = (await here.get(f"{CORE}/persistentvolumeclaims/a"))["metadata"]["uid"]
        volume = here.volumes.get(uid)
        assert volume is not None and volume.files is not None
        assert (volume.files / "two" / "three").read_bytes() == b"hello" and (volume.files / "link").read_text() == "hello"
        assert not (work / "out").exists() and not (here.root / "out").exists()


@run_by(asyncio.run)
async def test_memory_stays_small_however_large_the_upload(work: Path) -> None:
    """The server takes a gigabyte of zeros in pieces."""
    async with site(work / "root") as here:
        await here.data_volume("a", {"source": {"upload": {}}, "pvc": pvc("1Gi")})
        await here.until_phase("a", "UploadReady")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reader, writer = await open_connection(here)
        size = 512 * MB
        head = f"POST /v1beta1/upload HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {await token(here, 'a')}\r\n"
        writer.write(head.encode() + b"content-length: %d\r\n\r\n" % size)
        piece = bytes(MB)
        for _ in range(size // MB):
            writer.write(piece)
            await writer.drain()
        assert (await reader.readuntil(b"\r\n\r\n")).split()[1] == b"200"
        writer.close()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        assert grown < 100, f"{grown} MB more"
