"""Faults of images and of the way to them. The errors are made by the functions that make them in the engine."""

import errno
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import msgspec

from paddock.base.images import facts, http, job, registry, sparse
from paddock.base.images.errors import ImageError, ImageRefused, ImageUnavailable
from paddock.base.images.http import DownloadResponse
from paddock.base.images.reachpolicy import ReachPolicy
from paddock.engine.storage import errors as storage
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.why.faults import Fault, Inject

URL = "https://images.example/debian.qcow2"
IMAGE = "registry.example/debian:12"


def answer(status: int, reason: str, body: bytes = b"") -> DownloadResponse:
    return cast(DownloadResponse, SimpleNamespace(url=URL, status=status, reason=reason, read=lambda _: body, headers={}))


def _unresolved() -> ImageError:
    with patch("socket.getaddrinfo", side_effect=socket.gaierror(-2, "Name or service not known")):
        try:
            ReachPolicy().dial("images.example", 443, 1.0)
        except ImageError as error:
            return error
    raise AssertionError("the name was resolved")


def _untrusted() -> ImageError:
    error = ssl.SSLCertVerificationError()
    error.verify_message = "self-signed certificate"
    return http.trouble(URL, error)


def _for_another_architecture() -> ImageError:
    index = {"manifests": [{"digest": f"sha256:{'a' * 64}", "size": 7, "platform": {"os": "linux", "architecture": "amd64"}}]}
    try:
        registry._pick(msgspec.convert(index, registry._Document), "arm64")
    except ImageError as error:
        return registry.describe(IMAGE, error)
    raise AssertionError("the image was found")


def _denied() -> ImageError:
    body = b'{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}'
    return registry.describe(IMAGE, registry.refusal(answer(401, "Unauthorized", body)))


def template(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The DataVolume of a machine's disk."""
    storage_spec = {"resources": {"requests": {"storage": "1Gi"}}, **more}
    return {"metadata": {"name": "web-root"}, "spec": {"source": source, "storage": storage_spec}}


DISK = [{"name": "root", "dataVolume": {"name": "web-root"}}]


def imported(error: ImageError) -> Inject:
    """A machine whose disk is imported from a server that fails so."""

    async def inject(host: FakeHost) -> None:
        host.engine.images.offer(URL)
        host.engine.images.script(URL, [error] * 50)
        await host.make(machine(volumes=DISK, templates=[template({"http": {"url": URL}})]))

    return inject


def pulled(error: ImageError) -> Inject:
    """A machine that boots from a container image that cannot be had."""

    async def inject(host: FakeHost) -> None:
        host.engine.images.offer(IMAGE)
        host.engine.images.script(IMAGE, [error] * 50)
        await host.make(machine(volumes=[{"name": "root", "containerDisk": {"image": IMAGE}}]))

    return inject


def refused_by_store(error: Exception) -> Inject:
    """The import succeeds, and the volume cannot be made of it."""

    async def inject(host: FakeHost) -> None:
        host.engine.images.offer(URL)
        host.engine.volumes.failures = [error] * 50
        await host.make(machine(volumes=DISK, templates=[template({"http": {"url": URL}})]))

    return inject


async def _smaller(host: FakeHost) -> None:
    host.engine.images.offer(URL, virtual_size=20 << 30)
    await host.make(machine(volumes=DISK, templates=[template({"http": {"url": URL}})]))


def _pull(code: Any, text: str, **more: str) -> ImageError:
    return registry.describe(IMAGE, ImageRefused(code, text, **more))


_FULL = storage.of(OSError(errno.ENOSPC, "No space left on device"), "cannot make a volume", Path("/var/lib/paddock"))
_READ_ONLY = storage.of(OSError(errno.EROFS, "Read-only file system"), "cannot make a volume", Path("/var/lib/paddock"))
_ROOT = "DataVolume web-root"
_GUEST = "VirtualMachineInstance web"
IMAGE_FAULTS: tuple[Fault, ...] = (
    Fault("no image at the address", imported(http.bad_status(answer(404, "Not Found"))), "image-missing", _ROOT),
    Fault("the server wants a password", imported(http.bad_status(answer(401, "Unauthorized"))), "image-credentials", _ROOT),
    Fault("the server forbids it", imported(http.bad_status(answer(403, "Forbidden"))), "image-credentials", _ROOT),
    Fault("the server fails", imported(http.bad_status(answer(503, "Service Unavailable"))), "image-server-failing", _ROOT),
    Fault("the server's name is unknown", imported(_unresolved()), "image-server-unknown", _ROOT),
    Fault("the server's certificate is not trusted", imported(_untrusted()), "image-server-certificate", _ROOT),
    Fault("the server does not answer", imported(http.trouble(URL, TimeoutError())), "image-server-unreachable", _ROOT),
    Fault("the server drips", imported(http.too_slow(URL)), "image-server-slow", _ROOT),
    Fault("the connection breaks", imported(http.trouble(URL, ConnectionResetError(104, "reset"))), "image-server-unreachable", _ROOT),
    Fault(
        "the address is one of the host",
        imported(ImageRefused("Denied", "images may not come from localhost (127.0.0.1)", why="it is an address of this host itself")),
        "image-server-forbidden",
        _ROOT,
    ),
    Fault(
        "the checksum is wrong",
        imported(ImageRefused("Checksum", "the checksum does not match: expected sha256:aa, got sha256:bb")),
        "image-checksum",
        _ROOT,
    ),
    Fault("a hostile image", imported(facts.unsafe("has a backing file, which would be read from this host")), "image-unsafe", _ROOT),
    Fault("an encrypted image", imported(ImageRefused("Encrypted", "the image is encrypted (LUKS)")), "image-encrypted", _ROOT),
    Fault("a web page", imported(ImageRefused("NotAnImage", f"{URL} is a web page, not a disk image")), "image-not-an-image", _ROOT),
    Fault("an image that is cut off", imported(facts.truncated()), "image-not-an-image", _ROOT),
    Fault("the image is larger than the disk", imported(job.too_large(20 << 30, 1 << 30)), "image-too-large", _ROOT),
    Fault("the image's disk is larger than the volume", _smaller, "image-too-large", _ROOT),
    Fault("no space for the image", imported(sparse.disk_trouble(OSError(errno.ENOSPC, "x"))), "host-disk-full", _ROOT),
    Fault("no space for the volume", refused_by_store(_FULL), "host-disk-full", _ROOT),
    Fault("the store is read-only", refused_by_store(_READ_ONLY), "host-disk-read-only", _ROOT),
    Fault("the registry wants a password", pulled(_denied()), "image-credentials", _GUEST),
    Fault("no such tag", pulled(registry.describe(IMAGE, http.bad_status(answer(404, "Not Found")))), "image-missing", _GUEST),
    Fault(
        "not for this architecture",
        pulled(_for_another_architecture()),
        "image-architecture",
        _GUEST,
    ),
    Fault(
        "never to be pulled",
        pulled(_pull("ErrImageNeverPull", f"container image {IMAGE} is not present with pull policy of Never")),
        "image-never-pull",
        _GUEST,
    ),
    Fault(
        "the registry is away",
        pulled(
            registry.describe(IMAGE, ImageUnavailable("Unreachable", "registry.example:443 cannot be reached", why="Connection refused"))
        ),
        "image-server-unreachable",
        _GUEST,
    ),
)
