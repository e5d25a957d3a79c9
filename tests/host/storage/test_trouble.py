"""A store that is full, read-only, or gone in the middle: said in the status, and found whole when it is well again."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.base.clock import SystemClock
from paddock.engine.storage.pools import MARKER
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from tests.host.storage.conftest import CORE, MB, Site, disk, holds, pvc, site
from tests.kit.servers.imageserver import Fault, Server, running

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.needs("root")]


@contextmanager
def small_disk(at: Path, size: int) -> Iterator[Callable[[str], None]]:
    """A file system in memory; gives a function that mounts it anew with other options."""
    at.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "paddock-test", at], check=True)

    def again(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", at], check=True)

    try:
        yield again
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def full(work: Path) -> None:
    """No space is left, and then there is."""
    server = Server()
    url = server.put("/a", disk(work, form="raw", size=24 * MB) + os.urandom(24 * MB))

    async def script(again: Callable[[str], None]) -> None:
        async with site(work / "root") as here:
            await here.data_volume("a", {"source": {"http": {"url": url}}, "pvc": pvc("64Mi")})
            await here.data_volume("b", {"source": {"blank": {}}, "pvc": pvc("64Mi"), "preallocation": True})
            for name in ("a", "b"):
                await here.until_said(name, "free", 30)
                assert (await here.status(name))["phase"] == "ImportInProgress"
            # nothing half done stays behind
            assert {each.name for each in (work / "root" / "engine" / "volumes").iterdir()} <= {MARKER}
            again("size=3G")
            for name in ("a", "b"):
                await here.until_phase(name, "Succeeded", 60)
            assert holds(await here.layer("a"), 7)

    with running(server), small_disk(work / "root" / "engine", 16 * MB) as again:
        asyncio.run(script(again))


def read_only(work: Path) -> None:
    """Nothing can be written, and then it can."""
    server = Server()
    url = server.put("/a", disk(work))

    async def script(again: Callable[[str], None]) -> None:
        async with site(work / "root") as here:
            again("ro")
            await here.data_volume("a", {"source": {"http": {"url": url}}, "pvc": pvc()})
            await here.data_volume("b", {"source": {"blank": {}}, "pvc": pvc()})
            for name in ("a", "b"):
                await here.until_said(name, "ead-only", 30)
            again("rw")
            for name in ("a", "b"):
                await here.until_phase(name, "Succeeded", 60)

    with running(server), small_disk(work / "root" / "engine", 3000 * MB) as again:
        asyncio.run(script(again))


def start(root: Path) -> "subprocess.Popen[bytes]":
    words = ["up", "--dir", str(root), "--listen", "127.0.0.1:0", "--image-from", "127.0.0.1", "--network", "user"]
    return subprocess.Popen([sys.executable, "-m", "paddock.app", *words], stdout=subprocess.DEVNULL, start_new_session=True)


@contextmanager
def served(root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A server in a process of its own, which is killed at the end."""
    process = start(root)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


async def reach(root: Path) -> Client:
    """A client, once the server answers."""
    async with asyncio.timeout(30):
        while True:
            client = None
            try:
                client = Client(Https(kubeconfig.find({}, SystemClock(), explicit=root / "kubeconfig")))
                await client.request("GET", "/readyz")
            except Exception:
                if client is not None:
                    await client.close()
                await asyncio.sleep(0.2)
            else:
                return client


def power_loss(work: Path) -> None:
    """The process is killed again and again, in whatever it is doing; nothing is lost and nothing half done is taken for whole."""
    root = work / "root"
    image = disk(work, form="raw", size=48 * MB)
    server = Server()
    urls = [server.put(f"/{number}", image + bytes([number]) * MB) for number in range(3)]
    server.faults = {"/1": [Fault(after=20 * MB, then="stall")], "/2": [Fault(after=30 * MB, then="stall")]}

    async def begin() -> None:
        async with await reach(root) as client:
            here = Site(None, client, root)  # type: ignore[arg-type]
            for number, url in enumerate(urls):
                await here.data_volume(f"d{number}", {"source": {"http": {"url": url}}, "pvc": pvc("64Mi")})
            await asyncio.sleep(1.5)

    async def look(moment: float) -> None:
        async with await reach(root):
            await asyncio.sleep(moment)

    async def finish() -> None:
        async with await reach(root) as client:
            here = Site(None, client, root)  # type: ignore[arg-type]
            for number in range(3):
                await here.until_phase(f"d{number}", "Succeeded", 90)
                assert holds(await here.layer(f"d{number}"), 7) and holds(await here.layer(f"d{number}"), number, "48M")
            claims = {each["metadata"]["uid"] for each in (await here.get(f"{CORE}/persistentvolumeclaims"))["items"]}
            assert {each.name for each in (root / "engine" / "volumes").iterdir()} == claims | {MARKER}

    def step(script: Any) -> None:
        with served(root):
            asyncio.run(script)

    with running(server):
        step(begin())
        for moment in (0.3, 0.6, 1.0):
            step(look(moment))
        step(finish())
    with warnings.catch_warnings():
        # The server was killed beneath its clients, whose connections end with their loops. The next test shall not hear of it.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.spec("kubevirt", 82)
@pytest.mark.parametrize("trouble", [full, read_only, power_loss])
def test_the_store_recovers_and_says_what_it_lacks(work: Path, trouble: Callable[[Path], None]) -> None:
    trouble(work)
