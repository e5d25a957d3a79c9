"""Images in the OCI layout: layers, configuration, manifest, and the archive of them. The same files give the same bytes."""

import gzip
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

from paddock.base.images.hashedfile import HashedFile
from tools.container.recipes import FOLDERS, ContainerRecipe

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True)
class Layer:
    """A packed layer. `content` is the digest of the tar file in it."""

    path: Path
    digest: str
    size: int
    content: str
    content_size: int


@dataclass(frozen=True)
class ImageFacts:
    """The version, commit, time and architecture of an image."""

    version: str
    commit: str
    # seconds since 1970; the time of every file, too
    created: int
    architecture: str

    @property
    def day(self) -> str:
        """The creation time as labels have it."""
        return datetime.fromtimestamp(self.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def layer(root: Path, names: Sequence[str], target: Path, time: int) -> Layer:
    """Pack files and folders of a root. Owner, time and mode do not depend on who builds, nor the order on the file system."""
    with target.open("wb") as file:
        outer = HashedFile(file)
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=cast(IO[bytes], outer), mtime=0) as packed:
            inner = HashedFile(cast(IO[bytes], packed))
            with tarfile.open(fileobj=cast(IO[bytes], inner), mode="w|", format=tarfile.PAX_FORMAT) as archive:
                for name in sorted(names):
                    _add(archive, root / name, name, time)
    return Layer(target, outer.digest, outer.size, inner.digest, inner.size)


def _add(archive: tarfile.TarFile, path: Path, name: str, time: int) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = time
    if path.is_symlink():
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, str(path.readlink())
        archive.addfile(info)
    elif path.is_dir():
        info.type, info.mode = tarfile.DIRTYPE, FOLDERS.get(name, 0o755)
        archive.addfile(info)
    else:
        data = path.read_bytes()
        # No set-user-ID bit either: nobody in a container gains rights by running a program.
        info.mode, info.size = 0o755 if path.stat().st_mode & 0o111 else 0o644, len(data)
        archive.addfile(info, BytesIO(data))


def labels(recipe: ContainerRecipe, facts: ImageFacts) -> Mapping[str, str]:
    """Return the labels of an image."""
    return {
        "org.opencontainers.image.title": recipe.title,
        "org.opencontainers.image.version": facts.version,
        "org.opencontainers.image.revision": facts.commit,
        "org.opencontainers.image.created": facts.day,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.vendor": "The authors of Paddock",
    }


def configuration(recipe: ContainerRecipe, facts: ImageFacts, layers: Sequence[Layer]) -> Mapping[str, Any]:
    """Return the configuration of an image."""
    return {
        "created": facts.day,
        "architecture": facts.architecture,
        "os": "linux",
        "config": {
            "User": recipe.user,
            "Env": ["PATH=/usr/bin:/usr/sbin", "LANG=C.UTF-8", *recipe.variables],
            "Entrypoint": ["/usr/bin/paddock", *recipe.entry],
            "Cmd": list(recipe.command),
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": labels(recipe, facts),
        },
        "rootfs": {"type": "layers", "diff_ids": [each.content for each in layers]},
        "history": [{"created": facts.day, "created_by": f"paddock {name}"} for name in ("debian", "packages", "program")],
    }


def manifest(config: bytes, layers: Sequence[Layer], annotations: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the manifest of an image."""
    return {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": _digest(config), "size": len(config)},
        "layers": [{"mediaType": _LAYER, "digest": each.digest, "size": each.size} for each in layers],
        "annotations": annotations,
    }


def archive(recipe: ContainerRecipe, facts: ImageFacts, layers: Sequence[Layer], target: Path) -> str:
    """Write an OCI archive, and return the digest of its manifest."""
    config = _json(configuration(recipe, facts, layers))
    raw = _json(manifest(config, layers, labels(recipe, facts)))
    entry = {
        "mediaType": _MANIFEST,
        "digest": _digest(raw),
        "size": len(raw),
        "platform": {"architecture": facts.architecture, "os": "linux"},
        # The tag alone for the tools of the specification, the whole name for containerd.
        "annotations": {
            "org.opencontainers.image.ref.name": facts.version,
            "io.containerd.image.name": f"localhost/{recipe.name}:{facts.version}",
        },
    }
    small = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}),
        _blob(_digest(config)): config,
        _blob(_digest(raw)): raw,
    }
    large = {_blob(each.digest): each for each in layers}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
        for name in sorted({*small, *large}):
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = facts.created, 0o644
            if name in small:
                info.size = len(small[name])
                out.addfile(info, BytesIO(small[name]))
            else:
                info.size = large[name].size
                with large[name].path.open("rb") as file:
                    out.addfile(info, file)
    return _digest(raw)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
