"""OCI archives, written without a container engine: layers that are tar files, and images that share them."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock.base.images.build import packages

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Layer:
    """A tar file, uncompressed, and its digest."""

    path: Path
    digest: str


@dataclass(frozen=True)
class Image:
    """An image with all its names."""

    names: Sequence[str]
    layers: Sequence[Layer]
    # of the container: Entrypoint, Cmd, User, Env
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class File:
    """A file of a layer: the content of another file, a text, or the target of a link."""

    content: Path | str
    mode: int = 0o644
    owner: int = 0
    link: bool = False
    # extended attributes, by name; tar carries them as text
    attributes: Mapping[str, str] = field(default_factory=dict)


def layer(path: Path, files: Mapping[str, File]) -> Layer:
    """Write a layer with these files, by their paths without the leading slash; a path that ends with a slash is a directory."""
    with tarfile.open(path, "w") as archive:
        for name, file in files.items():
            _add(archive, name, file)
    return measured(path)


def measured(path: Path) -> Layer:
    """Return the layer that a tar file is."""
    return Layer(path, packages.digest(path))


def write(path: Path, images: Sequence[Image]) -> None:
    """Write an archive of images."""
    with tarfile.open(path, "w") as archive:
        _add(archive, "oci-layout", File('{"imageLayoutVersion":"1.0.0"}'))
        described, added = [], set[str]()
        for image in images:
            for one in image.layers:
                if one.digest not in added:
                    added.add(one.digest)
                    _add(archive, f"blobs/sha256/{one.digest}", File(one.path))
            manifest = _manifest(archive, image)
            described += [{**manifest, "annotations": {"io.containerd.image.name": name}} for name in image.names]
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": described}
        _add(archive, "index.json", File(json.dumps(index)))


def _manifest(archive: tarfile.TarFile, image: Image) -> dict[str, Any]:
    """Add the manifest and the configuration of an image, and return the descriptor of the manifest."""
    config = {
        "created": _EPOCH,
        "architecture": "amd64",
        "os": "linux",
        "config": dict(image.config),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one.digest}" for one in image.layers]},
        "history": [{"created": _EPOCH} for _ in image.layers],
    }
    layers = [{"mediaType": _LAYER, "digest": f"sha256:{one.digest}", "size": one.path.stat().st_size} for one in image.layers]
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": _blob(archive, config, _CONFIG), "layers": layers}
    return {**_blob(archive, manifest, _MANIFEST), "platform": {"architecture": "amd64", "os": "linux"}}


def _blob(archive: tarfile.TarFile, document: Mapping[str, Any], kind: str) -> dict[str, Any]:
    text = json.dumps(document, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    _add(archive, f"blobs/sha256/{digest}", File(text))
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(text.encode())}


def _add(archive: tarfile.TarFile, name: str, file: File) -> None:
    entry = tarfile.TarInfo(name.rstrip("/"))
    entry.mode, entry.uid, entry.gid = file.mode, file.owner, file.owner
    entry.pax_headers = {f"SCHILY.xattr.{key}": value for key, value in file.attributes.items()}
    if name.endswith("/"):
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    elif file.link:
        entry.type, entry.linkname = tarfile.SYMTYPE, str(file.content)
        archive.addfile(entry)
    elif isinstance(file.content, Path):
        entry.size = file.content.stat().st_size
        with file.content.open("rb") as stream:
            archive.addfile(entry, stream)
    else:
        data = file.content.encode()
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
