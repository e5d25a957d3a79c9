"""The registry that everybody runs (distribution, from Debian's package), and what we say to it."""

import asyncio
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.base.images.build import packages, places
from paddock.base.images.library import ImageError, ImageLibrary, ImageSettings
from paddock.base.images.sources import File, RegistryImage
from tests.coroutines import run_by
from tests.host.conftest import Spawn, wait_until

pytestmark = [pytest.mark.needs("apt", "qemu")]

CONFIG = """
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: ROOT}}
http: {addr: "127.0.0.1:PORT"}
auth: {htpasswd: {realm: test, path: HTPASSWD}}
"""
# "secret", hashed with bcrypt
LOGIN = "me:$2y$05$NBqg2Yyx8PypSgkTCRnb4O2.CUQLtRYhIFCrXw5hs/m.d0otFPWze\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    found = packages.fetch(packages.resolve(["docker-registry"]), places.cache() / "packages")
    subprocess.run(["dpkg-deb", "-x", found["docker-registry"], tmp_path / "package"], check=True)
    return tmp_path / "package" / "usr" / "bin" / "docker-registry"


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@run_by(asyncio.run)
async def test_push_and_pull(program: Path, spawn: Spawn, free_port: Callable[[], int], tmp_path: Path) -> None:
    port = free_port()
    config = CONFIG.replace("ROOT", str(tmp_path / "blobs")).replace("PORT", str(port)).replace("HTPASSWD", str(tmp_path / "htpasswd"))
    (tmp_path / "config.yml").write_text(config)
    (tmp_path / "htpasswd").write_text(LOGIN)
    spawn([program, "serve", tmp_path / "config.yml"])
    wait_until("the registry listens", lambda: answers(port))
    disk = random.Random(1).randbytes(3 << 20) + bytes(4 << 20)
    (tmp_path / "disk.raw").write_bytes(disk)
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", "-f", "raw", tmp_path / "disk.raw", tmp_path / "disk.qcow2"], check=True)
    settings = ImageSettings(allow=("127.0.0.1",), proxies={}, insecure_registries=frozenset({f"127.0.0.1:{port}"}))
    images = ImageLibrary(tmp_path / "images", settings)
    for name in ("disk.raw", "disk.qcow2"):
        image = await images.fetch(File(tmp_path / name))
        content = image.path.read_bytes()
        reference = f"docker://127.0.0.1:{port}/disks/{name.replace('.', '-')}:1"
        with pytest.raises(ImageError, match="401"):
            await images.push(image, RegistryImage(reference))
        target = RegistryImage(reference, username="me", password="secret")
        digest = await images.push(image, target)
        assert await images.resolve(target) == digest
        assert images.remove(image.digest)
        again = await images.fetch(RegistryImage(f"{reference.rpartition(':')[0]}@{digest}", username="me", password="secret"))
        assert (again.digest, again.path.read_bytes()) == (image.digest, content)
    with pytest.raises(ImageError, match="MANIFEST_UNKNOWN"):
        await images.fetch(RegistryImage(f"docker://127.0.0.1:{port}/disks/none:1", username="me", password="secret"))
    await images.close()
