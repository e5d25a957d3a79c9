"""A disk into a registry, as a container disk: one layer that holds `/disk/NAME`, readable for QEMU's user in KubeVirt's pods."""

import gzip
import hashlib
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paddock.base.images.errors import ImageError, ImageRefused
from paddock.base.images.hashedfile import HashedFile
from paddock.base.images.http import UploadFile, WebClient, redirected
from paddock.base.images.progress import Meter
from paddock.base.images.references import endpoints, parse
from paddock.base.images.registry import RemoteRepository, describe, host_architecture, refusal, remote
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import RegistryImage
from paddock.base.images.stopflag import StopFlag
from paddock.base.images.store import Image, ImageStore

_QEMU_USER = 107
_CHUNK = 1 << 20
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class _Blob:
    path: Path
    digest: str
    size: int
    # of the tar file in it
    content: str
    kind: str


def push(image: Image, target: RegistryImage, store: ImageStore, web: WebClient, watched: tuple[ImageSettings, Meter, StopFlag]) -> str:
    """Upload a disk under a reference; returns the digest of its manifest."""
    settings, meter, stop = watched
    reference = parse(target.reference)
    try:
        if reference.digest:
            raise ImageRefused("Refused", "an image is pushed under a tag, not under a digest")
        # A mirror is for reading.
        one = remote(web, endpoints(reference, {}, settings.insecure_registries)[-1], target, stop)
        architecture = target.architecture or host_architecture()
        with store.work() as work:
            layer = _layer(image, work / "layer", meter, stop)
            config = _config(architecture, layer, work / "config")
            meter.begin("uploading", layer.size)
            _upload(one, layer, meter.at)
            _upload(one, config, lambda _: None)
            return _manifest(one, reference.tag, layer, config)
    except ImageError as error:
        described = describe(reference, error)
        described.what = described.what.replace("failed to pull", "failed to push", 1)
        raise described from error


def _layer(image: Image, path: Path, meter: Meter, stop: StopFlag) -> _Blob:
    """The tar file; packed when the disk is raw, since a qcow2 image is compact already."""
    info = tarfile.TarInfo(f"disk/disk.{'qcow2' if image.format == 'qcow2' else 'img'}")
    info.mode, info.uid, info.gid, info.size = 0o440, _QEMU_USER, _QEMU_USER, image.path.stat().st_size
    meter.begin("storing", info.size)
    with open(path, "xb") as file:
        outer = HashedFile(file)
        if image.format == "qcow2":
            _write_tar(outer, info, image.path, (meter, stop))
            return _Blob(path, outer.digest, outer.size, outer.digest, "application/vnd.oci.image.layer.v1.tar")
        # No time and no name, so that the same disk gives the same blob.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=outer, mtime=0) as packed:  # type: ignore[call-overload]
            inner = HashedFile(packed)
            _write_tar(inner, info, image.path, (meter, stop))
        return _Blob(path, outer.digest, outer.size, inner.digest, "application/vnd.oci.image.layer.v1.tar+gzip")


def _write_tar(out: HashedFile, info: tarfile.TarInfo, disk: Path, watched: tuple[Meter, StopFlag]) -> None:
    meter, stop = watched
    folder = tarfile.TarInfo("disk")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    out.write(folder.tobuf(tarfile.GNU_FORMAT) + info.tobuf(tarfile.GNU_FORMAT))
    done = 0
    with open(disk, "rb", buffering=0) as file:
        while data := file.read(_CHUNK):
            stop.check()
            out.write(data)
            done += len(data)
            meter.at(done)
    out.write(bytes(-info.size % 512) + bytes(1024))


def _config(architecture: str, layer: _Blob, path: Path) -> _Blob:
    document = {"architecture": architecture, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [layer.content]}}
    raw = json.dumps(document).encode()
    path.write_bytes(raw)
    return _Blob(path, f"sha256:{hashlib.sha256(raw).hexdigest()}", len(raw), "", "application/vnd.oci.image.config.v1+json")


def _upload(one: RemoteRepository, blob: _Blob, tell: Callable[[int], None]) -> None:
    with one.ask("HEAD", f"blobs/{blob.digest}") as response:
        if response.status == 200:
            return
    with one.ask("POST", "blobs/uploads/", body=b"") as response:
        if response.status != 202 or not response.headers.get("Location"):
            raise refusal(response)
        place = redirected(response.url, response.headers["Location"])
    place += ("&" if "?" in place else "?") + f"digest={blob.digest}"
    with one.ask("PUT", place, (("Content-Type", "application/octet-stream"),), UploadFile(blob.path, tell)) as response:
        if response.status != 201:
            raise refusal(response)


def _manifest(one: RemoteRepository, tag: str, layer: _Blob, config: _Blob) -> str:
    document = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": config.kind, "digest": config.digest, "size": config.size},
        "layers": [{"mediaType": layer.kind, "digest": layer.digest, "size": layer.size}],
    }
    raw = json.dumps(document).encode()
    with one.ask("PUT", f"manifests/{tag}", (("Content-Type", _MANIFEST),), raw) as response:
        if response.status not in (200, 201):
            raise refusal(response)
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"
