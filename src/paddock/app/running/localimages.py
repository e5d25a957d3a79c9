"""Images that are on this host: what was built or copied here gets a name in the library of the server, and needs no network."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from paddock.app.directory import diskformat, imagelibrary, process
from paddock.app.directory.paths import DataPaths
from paddock.base import directories
from paddock.base.errors import Terminal
from paddock.base.images import catalogue
from paddock.base.images.build import debian, places, tiny
from paddock.base.images.library import Image, ImageLibrary, ImageRecord, ImageSettings
from paddock.base.images.registry import host_architecture
from paddock.base.images.sources import File, library_url
from paddock.cli.progress import ProgressBar
from paddock.fleet.creation.imagewords import ImageWord, base_name

TINY = "tiny"
_GIB = 1 << 30


class ProvidedImage(msgspec.Struct, frozen=True):
    """The address that manifests name. `size` is that of the disk in the image, 0 while it is unknown."""

    address: str
    size: int = 0


def directory_of(server: str, kubeconfig: Path | None) -> Path | None:
    """Return the directory of a server of this host that listens at an address; None for servers elsewhere."""
    given = (
        [kubeconfig, *map(Path, os.environ.get("KUBECONFIG", "").split(os.pathsep))] if kubeconfig or os.environ.get("KUBECONFIG") else []
    )
    for root in dict.fromkeys(each.absolute().parent for each in (*given, *directories.running_kubeconfigs(os.environ)) if each):
        found = process.find(DataPaths(root))
        if found is not None and found.address.rstrip("/") == server.rstrip("/"):
            return root
    return None


class LocalImages:
    """The images of this host. `root` is the directory of the server, None if that is elsewhere or not asked for."""

    def __init__(self, root: Path | None, cache: Path | None = None) -> None:
        self._root = root
        self._cache = cache or places.cache()
        self._library: ImageLibrary | None = None

    def names(self) -> list[str]:
        """Return the names that need no network: those of the library, images that were built here, and tiny, which is quickly built."""
        built = [name for name in debian.RELEASES if self._built(name)]
        images = self._open(self._root) if self._root is not None else None
        named = [name for name in catalogue.KNOWN if images.named(name)] if images is not None else []
        return list(dict.fromkeys([TINY, *built, *named]))

    def image(self, name: str) -> Image | None:
        """Return an image of the library by its name; None for one that is not there yet."""
        return self._open(self._root).named(name) if self._root is not None else None

    def records(self) -> list[ImageRecord]:
        """Return the images of the library; none without one."""
        return self._open(self._root).records() if self._root is not None and (DataPaths(self._root).engine / "images").is_dir() else []

    def provide(self, image: ImageWord, bar: ProgressBar) -> ProvidedImage:
        """Return the address of an image; what is only on this host is put into the library first."""
        if image.kind == "catalogue":
            return ProvidedImage(catalogue.address(image.text, host_architecture()))
        if image.kind in ("url", "registry"):
            return ProvidedImage(image.text)
        name = self.name_of(image)
        if self._root is None:
            why = "it is on this host, and the server is not, or its directory is not known"
            raise Terminal(f"cannot give {image.text} to the server", why=why, fix="name an http(s) URL or a container image")
        images = self._open(self._root)
        known = images.named(name)
        file = self._file(image, bar, known)
        if file is not None:
            # A file that was copied before is not copied again.
            found = _fetch(images, file, bar)
            if found != known:
                images.name(name, found)
            known = found
        if known is None:
            raise Terminal(f"the image {name} is gone from the library", fix=f"run `paddock image pull {name}` again")
        return ProvidedImage(library_url(name), known.virtual_size)

    def name_of(self, image: ImageWord) -> str:
        """Return the name in the library. That of a file changes with the file."""
        if image.kind != "file":
            return image.text
        status = os.stat(image.text)
        version = f"{Path(image.text).absolute()}\0{status.st_size}\0{status.st_mtime_ns}"
        return f"{base_name(image)}-{hashlib.sha256(version.encode()).hexdigest()[:8]}"

    def _file(self, image: ImageWord, bar: ProgressBar, known: Image | None) -> Path | None:
        """Return the file to copy; None if the library has it already."""
        if image.kind == "file":
            return None if known is not None else Path(image.text).absolute()
        if built := self._built(image.text):
            # Asking apt whether the packages are still the newest takes seconds; `paddock image build` does.
            return built[0]
        if image.text == TINY and known is None:
            bar.show("building the tiny image")
            return tiny.build(self._cache).disk
        return None

    def _built(self, name: str) -> list[Path]:
        """Return what `paddock image build` made, the fastest and newest first."""
        found = self._cache.glob(f"{name}-*/{name}.qcow2") if name in (TINY, *debian.RELEASES) else ()
        return sorted(found, key=lambda path: ("-own-" in path.parent.name, path.stat().st_mtime), reverse=True)

    def _open(self, root: Path) -> ImageLibrary:
        if self._library is None:
            diskformat.check(root)
            place = DataPaths(root).engine / "images"
            if not os.access(place if place.exists() else root, os.W_OK):
                raise Terminal(f"cannot write {place}", why="it belongs to the user of the server", fix="run the command as that user")
            place.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._library = ImageLibrary(place, ImageSettings())
        return self._library


def _fetch(images: ImageLibrary, file: Path, bar: ProgressBar) -> Image:
    return imagelibrary.work(images, lambda: images.fetch(File(file), imagelibrary.shown(bar)))


def disk_size(size: int) -> str:
    """Return the size of a disk that holds an image: whole GiB; 10Gi for an image whose size is not known before it is fetched."""
    return f"{-(-size // _GIB)}Gi" if size else "10Gi"


def keys(given: Iterable[str]) -> list[Path]:
    """Return the files of public keys: those given, else the user's own."""
    named = [Path(each).expanduser() for each in given]
    return named or sorted((Path.home() / ".ssh").glob("*.pub"))
