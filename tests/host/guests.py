"""Guests to test with, and the loopback servers that images come from."""

import hashlib
import json
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paddock.base.errors import PaddockError
from paddock.base.images.build import debian, places, tiny
from tests.host.machine import lacks

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
# The user that containerDisks give their files to.
_OWNER = 107


@pytest.fixture(scope="session")
def tiny_guest() -> Iterator[tiny.TinyImage]:
    """The tiny guest's disk, kernels and initrd: read-only, lay something over the disk. Built once for each recipe, then cached."""
    with _readable(_built("fastest")) as image:
        yield image


@pytest.fixture(scope="session")
def tiny_signed() -> Iterator[tiny.TinyImage]:
    """The tiny guest with Debian's signed kernel, which starts under Secure Boot; in 512 MiB."""
    with _readable(_built("debian")) as image:
        yield image


@pytest.fixture(scope="session")
def debian_guest() -> Path:
    """The disk of an ordinary Debian with cloud-init; read-only. For slow tests: it takes minutes to build, once, and a minute to boot."""
    for need in ("qemu", "apt", "mtools", "root", "mmdebstrap"):
        if reason := lacks(need):
            pytest.skip(f"needs {need}: {reason}")
    return debian.build(places.cache())


@contextmanager
def _readable(image: tiny.TinyImage) -> Iterator[tiny.TinyImage]:
    """Copies where any user may read them: machines run as users of their own, and the cache is in somebody's home."""
    folder = Path(tempfile.mkdtemp(prefix="pdkg-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield tiny.export(image, folder)
    finally:
        shutil.rmtree(folder)


def _built(kind: tiny.Kind) -> tiny.TinyImage:
    for need in ("qemu", "apt", "mtools"):
        if reason := lacks(need):
            pytest.skip(f"needs {need}: {reason}")
    try:
        return tiny.build(places.cache(), kind)
    except PaddockError as error:
        pytest.skip(f"needs tiny-guest: {error.what}: {error.why}")


class _Quiet:
    """A handler that writes no log, and remembers what was asked for."""

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


class _Files(_Quiet, SimpleHTTPRequestHandler):
    """Files of a directory."""


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """`127.0.0.1:PORT` of a server that is up as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Shelf:
    """A web server on loopback: what is put on it has a URL."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self.url = f"http://{address}"

    def put(self, file: Path, name: str = "") -> str:
        """The URL of a file's copy."""
        shutil.copyfile(file, self._folder / (name or file.name))
        return f"{self.url}/{name or file.name}"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Shelf]:
    """A web server on loopback."""
    with shelf(tmp_path / "web") as found:
        yield found


@contextmanager
def shelf(folder: Path) -> Iterator[Shelf]:
    """Serve a new directory on loopback."""
    folder.mkdir()
    with serving(partial(_Files, directory=str(folder))) as address:
        yield Shelf(folder, address)


class Registry:
    """An image registry on loopback, over plain HTTP."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = ""
        # "name:tag" -> digest
        self.tags: dict[str, str] = {}
        # digest -> media type, of manifests
        self.manifests: dict[str, str] = {}
        # what was asked for, in order
        self.asked: list[str] = []

    def push(self, name: str, files: Mapping[str, Path]) -> str:
        """A containerDisk of these files (place in the image -> file) under `repository:tag`; gives its reference."""
        layer = self._layer(files)
        config = self._blob(
            json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [layer[0]]}}).encode()
        )
        layers = [{"mediaType": _LAYER, "digest": layer[0], "size": layer[1]}]
        described = {"mediaType": _CONFIG, "digest": config[0], "size": config[1]}
        manifest = self._blob(json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, "config": described, "layers": layers}).encode())
        platform = {"architecture": "amd64", "os": "linux"}
        entry = {"mediaType": _MANIFEST, "digest": manifest[0], "size": manifest[1], "platform": platform}
        index = self._blob(json.dumps({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}).encode())
        self.manifests |= {manifest[0]: _MANIFEST, index[0]: _INDEX}
        self.tags[name] = index[0]
        return f"{self.address}/{name}"

    def file(self, digest: str) -> Path | None:
        """A blob or manifest."""
        path = self._folder / digest.replace(":", "-")
        return path if path.is_file() else None

    def _blob(self, data: bytes) -> tuple[str, int]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        (self._folder / digest.replace(":", "-")).write_bytes(data)
        return digest, len(data)

    def _layer(self, files: Mapping[str, Path]) -> tuple[str, int]:
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as made, tarfile.open(fileobj=made, mode="w") as archive:
            for place, file in files.items():
                entry = archive.gettarinfo(file, place.lstrip("/"))
                entry.uid = entry.gid = _OWNER
                entry.uname = entry.gname = ""
                with file.open("rb") as content:
                    archive.addfile(entry, content)
        path = Path(made.name)
        with path.open("rb") as whole:
            digest = f"sha256:{hashlib.file_digest(whole, 'sha256').hexdigest()}"
        path.rename(self._folder / digest.replace(":", "-"))
        return digest, (self._folder / digest.replace(":", "-")).stat().st_size


class _RegistryHandler(_Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: Registry

    def do_HEAD(self) -> None:
        """The head of an answer."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """An answer."""
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        self.registry.asked.append(f"{self.command} {self.path}")
        found = self._find()
        if found is None:
            self._send(404, "application/json", len(_NOT_FOUND))
            self.wfile.write(_NOT_FOUND if body else b"")
            return
        path, kind, digest = found
        if path is None:
            self._send(200, kind, 2)
            self.wfile.write(b"{}" if body else b"")
            return
        self._send(200, kind, path.stat().st_size, digest)
        if body:
            with path.open("rb") as file:
                shutil.copyfileobj(file, self.wfile)

    def _find(self) -> tuple[Path | None, str, str] | None:
        if self.path.rstrip("/") == "/v2":
            return None, "application/json", ""
        name, _, rest = self.path.removeprefix("/v2/").rpartition("/manifests/")
        if name:
            digest = rest if rest.startswith("sha256:") else self.registry.tags.get(f"{name}:{rest}", "")
            path = self.registry.file(digest) if digest in self.registry.manifests else None
            return (path, self.registry.manifests[digest], digest) if path else None
        digest = self.path.rpartition("/blobs/")[2]
        path = self.registry.file(digest)
        return (path, "application/octet-stream", digest) if path else None

    def _send(self, code: int, kind: str, length: int, digest: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()


_NOT_FOUND = b'{"errors": [{"code": "NOT_FOUND", "message": "not found"}]}'


@contextmanager
def registry_in(folder: Path) -> Iterator[Registry]:
    """An image registry on loopback, with its blobs in a directory, for the length of a `with` block."""
    one = Registry(folder)
    with serving(type("Handler", (_RegistryHandler,), {"registry": one})) as address:
        one.address = address
        yield one


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """An image registry on loopback; `registry.push("disks/tiny:1", {"disk/tiny.qcow2": path})`."""
    folder = tmp_path / "registry"
    folder.mkdir()
    with registry_in(folder) as one:
        yield one


@pytest.fixture
def tiny_disk_image(registry: Registry, tiny_guest: tiny.TinyImage) -> str:
    """The reference of a containerDisk that holds the tiny guest."""
    return registry.push("disks/tiny:1", {"disk/tiny.qcow2": tiny_guest.disk})


@pytest.fixture
def tiny_kernel_image(registry: Registry, tiny_guest: tiny.TinyImage) -> str:
    """The reference of an image for kernelBoot: /boot/vmlinuz and /boot/initrd."""
    return registry.push("kernels/tiny:1", {"boot/vmlinuz": tiny_guest.kernel, "boot/initrd": tiny_guest.initrd})
