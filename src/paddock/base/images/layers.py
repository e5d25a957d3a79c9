"""Files in the layers of a container image, taken from the top: what a layer holds or deletes hides what is below it."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from paddock.base.images.errors import ImageRefused
from paddock.base.images.formats import head_of, stays, wrapper_of
from paddock.base.images.sparse import SparseWriter
from paddock.base.images.tar import Tar, TarEntry
from paddock.base.images.unpack import PackedFile, UnpackLimit

_DISK = ("disk",)
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
# Below /disk, where any name may be the wanted one.
_MOST_HIDDEN = 10_000

Parts = tuple[str, ...]


@dataclass
class LayerQuery:
    """The files to find: certain paths, or with none named the only file below /disk. Found files are written to `directory`."""

    paths: tuple[Parts, ...]
    directory: Path
    limit: Callable[[], int]
    check: Callable[[], None]
    found: dict[Parts, tuple[Path, str]] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """True when lower layers cannot matter."""
        return bool(self.paths) and len(self.found) == len(self.paths)

    def covers(self, parts: Parts) -> bool:
        """Return whether a name is one of the paths, or on the way to one."""
        if self.paths:
            return any(path[: len(parts)] == parts for path in self.paths)
        return parts[:1] == _DISK and len(parts) <= 2

    def is_target(self, parts: Parts) -> bool:
        """Return whether a name is one of the paths."""
        return parts in self.paths if self.paths else len(parts) == 2 and parts[:1] == _DISK


def path_parts(path: str) -> Parts:
    """A path in the image, as a user wrote it."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if not parts or ".." in parts or "\0" in path:
        raise ImageRefused(
            "Refused", "the path in the container image cannot be used", fix="write an absolute path such as /disk/fedora.qcow2"
        )
    return parts


def search(layers: Iterable[Callable[[], Path]], layer_query: LayerQuery) -> None:
    """Look through layers from the top; each is asked for when it is needed."""
    hidden: set[Parts] = set()
    for fetch in layers:
        hidden |= _hidden(fetch(), layer_query, frozenset(hidden))
        if layer_query.done or (not layer_query.paths and _DISK in hidden):
            break
    if not layer_query.paths and not layer_query.found:
        raise ImageRefused("NotFound", "the container image holds no file below /disk", fix="add the disk as /disk/NAME, or name its path")
    for path in layer_query.paths:
        if path not in layer_query.found:
            raise ImageRefused("NotFound", f"the container image holds no file /{'/'.join(path)}")


def _hidden(layer: Path, layer_query: LayerQuery, hidden: frozenset[Parts]) -> set[Parts]:
    """One layer. Returns what it hides from those below: names that it deletes, opaque directories, and files in the place of others."""
    wrapper = wrapper_of(head_of(layer))
    hides: set[Parts] = set()
    here: set[Parts] = set()
    with PackedFile(FileIO(layer), None if wrapper == "tar" else wrapper, layer_query.check) as packed:
        tar = Tar(packed.read)
        budget = UnpackLimit(layer.stat().st_size, lambda: 1 << 62)
        for entry in tar:
            layer_query.check()
            budget.check(entry.offset + entry.size)
            parts = entry.parts
            if not parts:
                continue
            if parts[-1].startswith(_WHITEOUT):
                gone = parts[:-1] if parts[-1] == _OPAQUE else (*parts[:-1], parts[-1].removeprefix(_WHITEOUT))
                # What hides nothing that is wanted is forgotten: a layer may delete millions of files.
                if not gone or layer_query.covers(gone):
                    hides.add(gone)
            elif layer_query.covers(parts) and not _is_hidden(parts, hidden):
                _take(tar, entry, layer_query, here)
                if entry.kind == "file":
                    hides.add(parts)
            if len(hides) > _MOST_HIDDEN:
                raise ImageRefused("Unsafe", f"a layer of the container image deletes more than {_MOST_HIDDEN} files below /disk")
    return hides


def _is_hidden(parts: Parts, hidden: frozenset[Parts]) -> bool:
    return any(parts[:length] in hidden for length in range(len(parts) + 1))


def _take(tar: Tar, entry: TarEntry, layer_query: LayerQuery, here: set[Parts]) -> None:
    parts = entry.parts
    if entry.kind == "directory":
        return
    if entry.kind != "file":
        raise ImageRefused("Unsafe", f"the container image holds a {entry.kind} where the disk is expected: {entry.shown}")
    if not layer_query.is_target(parts):
        return
    if parts in here:
        raise ImageRefused("Unsafe", f"the container image holds {entry.shown} twice in one layer")
    here.add(parts)
    if not layer_query.paths and layer_query.found:
        names = ", ".join(sorted("/".join(name) for name in (*layer_query.found, parts)))
        raise ImageRefused("NotAnImage", f"the container image holds several files below /disk: {names}", fix="name the one by its path")
    target = layer_query.directory / f"file.{len(layer_query.found)}"
    hashed = hashlib.sha256()
    with SparseWriter(target) as file:
        while data := tar.read(1 << 20):
            layer_query.check()
            if file.offset + len(data) > layer_query.limit():
                raise ImageRefused(
                    "TooLarge",
                    f"the disk in the container image is larger than {layer_query.limit()} bytes",
                    fix="A larger PVC is required",
                )
            if not file.offset and stays(data):
                file.flush_along()
            file.write(data)
            hashed.update(data)
    layer_query.found[parts] = (target, hashed.hexdigest())
