"""A whole server with its engine, in this process, and a client of it."""

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from paddock.app.options.settings import MachineSettings, ServerSettings
from paddock.app.server.server import ServerHandle
from paddock.base.clock import SystemClock
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import qemuimg
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https

CORE = "/api/v1/namespaces/default"
CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default"
MB = 1 << 20
Data = dict[str, Any]
_KINDS = {"datavolumes": "DataVolume", "datasources": "DataSource", "secrets": "Secret", "configmaps": "ConfigMap"}
_KINDS |= {"persistentvolumeclaims": "PersistentVolumeClaim", "uploadtokenrequests": "UploadTokenRequest"}


class Site:
    """A server that is up."""

    def __init__(self, running: ServerHandle, client: Client, root: Path) -> None:
        self.running = running
        self.client = client
        self.root = root

    @property
    def authority(self) -> str:
        """The certificate that clients of the kubeconfig trust."""
        return (self.root / "pki" / "ca.crt").read_text()

    @property
    def volumes(self) -> Volumes:
        """The engine's volumes, for looking."""
        return Volumes(self.root / "engine")

    async def is_ready(self) -> bool:
        """Return whether the controllers of storage work."""
        found = await self.get("/apis/cdi.kubevirt.io/v1beta1/cdiconfigs")
        return any("status" in each for each in found["items"])

    async def post(self, path: str, body: Data) -> Data:
        """Make an object."""
        words = path.strip("/").split("/")
        version = "/".join(words[1:3]) if words[0] == "apis" else words[1]
        whole = {"apiVersion": version, "kind": _KINDS[words[-1]], **body}
        return dict(orjson.loads(await self.client.request("POST", path, body=orjson.dumps(whole))))

    async def get(self, path: str) -> Data:
        """An object."""
        return dict(orjson.loads(await self.client.request("GET", path)))

    async def data_volume(self, name: str, spec: Data) -> None:
        """Make a DataVolume."""
        await self.post(f"{CDI}/datavolumes", {"metadata": {"name": name}, "spec": spec})

    async def status(self, name: str) -> Data:
        """The status of a DataVolume."""
        return dict((await self.get(f"{CDI}/datavolumes/{name}")).get("status") or {})

    async def running_condition(self, name: str) -> Data:
        """Return the condition of a transfer's progress."""
        found = (await self.status(name)).get("conditions") or []
        return next((each for each in found if each["type"] == "Running"), {})

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
        """Wait until it holds."""
        end = asyncio.get_running_loop().time() + seconds
        while not await holds():
            assert asyncio.get_running_loop().time() < end, what
            await asyncio.sleep(0.1)

    async def until_phase(self, name: str, phase: str, seconds: float = 60) -> None:
        """Wait until a DataVolume has a phase."""
        try:
            await self.until(phase, lambda: self._has(name, phase), seconds)
        except AssertionError:
            raise AssertionError(f"{name} is not {phase}: {await self.status(name)}") from None

    async def until_said(self, name: str, part: str, seconds: float = 60) -> None:
        """Wait until the Running condition of a DataVolume says something."""

        async def said() -> bool:
            return part in str((await self.running_condition(name)).get("message", ""))

        try:
            await self.until(part, said, seconds)
        except AssertionError:
            raise AssertionError(f"{name} does not say {part}: {await self.status(name)}") from None

    async def _has(self, name: str, phase: str) -> bool:
        return (await self.status(name)).get("phase") == phase

    async def layer(self, name: str) -> DiskLayer:
        """The disk of a claim."""
        uid = (await self.get(f"{CORE}/persistentvolumeclaims/{name}"))["metadata"]["uid"]
        volume = self.volumes.get(uid)
        assert volume is not None
        return volume.layer


@asynccontextmanager
async def site(root: Path, machines: MachineSettings = MachineSettings(image_hosts=("127.0.0.1",), network="user")) -> AsyncIterator[Site]:  # noqa: B008
    """A server below a directory; again below the same one is a restart."""
    running = ServerHandle(ServerSettings(root=root, port=0, drain_seconds=0.1, machines=machines))
    await running.start()
    try:
        access = kubeconfig.find({}, SystemClock(), explicit=root / "kubeconfig")
        async with Client(Https(access)) as client:
            here = Site(running, client, root)
            # A test that breaks the store breaks it after everything has found its place.
            await here.until("storage is there", here.is_ready)
            yield here
    finally:
        await running.stop()


def pvc(size: str = "8Mi") -> Data:
    """A claim, literally."""
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}


def io(layer: DiskLayer, *commands: str) -> str:
    """Read or write a disk as a machine would see it."""
    words = [word for command in commands for word in ("-c", command)]
    return subprocess.run(["qemu-io", qemuimg._json(layer), *words], check=True, capture_output=True, text=True, timeout=30).stdout


def holds(layer: DiskLayer, pattern: int, offset: str = "0") -> bool:
    """Return whether 64 kilobytes there are this byte."""
    return "verification failed" not in io(layer, f"read -P {pattern} {offset} 64k")


def disk(work: Path, name: str = "golden", pattern: int = 7, form: str = "qcow2", size: int = 4 * MB) -> bytes:
    """A disk image whose first megabyte is one byte repeated."""
    path = work / f"{name}.{form}"
    subprocess.run(["qemu-img", "create", "-q", "-f", form, path, str(size)], check=True)
    subprocess.run(["qemu-io", "-f", form, "-c", f"write -P {pattern} 0 1M", path], check=True, capture_output=True)
    return path.read_bytes()


def base64_of(text: str) -> str:
    """As Secrets hold it."""
    return base64.b64encode(text.encode()).decode()
