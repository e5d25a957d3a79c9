"""`why` at a server whose Providers are a real libvirtd and the server itself: each fault is real, and its first answer is judged."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.host.conftest import end
from tests.host.drivers import sshserver
from tests.host.fronts.conftest import guest
from tests.host.machine import lacks
from tests.host.runs import conftest as runs
from tests.host.runs.conftest import SECRETS, VMS, Data, Host, Talk, condition
from tests.kit.hostile.realfaults import BASE, COMMON, ON_HOST, STANDING, Answer, RealFault, asked, first_answer, path_of
from tests.kit.servers import imageserver
from tests.reference.server import free_ports

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

pytestmark = [pytest.mark.needs("libvirtd", "qemu", "root"), pytest.mark.slow, pytest.mark.long]
_DOMAIN = "<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><os><type arch='x86_64'>hvm</type></os></domain>"
_TIMEOUT = 600.0
_NOBODY = 65534


class FaultyHost(Host):
    """A host whose Providers and images may be on loopback."""

    network = "user"
    options = ("--provider-from=127.0.0.0/8",)


class World:
    """A server with everything that the rows need, and what happened to it."""

    def __init__(self, host: FaultyHost, libvirtd: "Libvirtd", values: dict[str, object]) -> None:
        self.host = host
        self.libvirtd = libvirtd
        self.values = values
        self.said: dict[str, Answer] = {}

    @property
    def kubeconfig(self) -> Path:
        """The access of the administrator."""
        return self.host.root / "kubeconfig"

    async def bring_about(self) -> None:
        """Make everything, and do what manifests cannot."""
        async with self.host.client() as client:
            talk = Talk(self.host, client)
            await self._secrets(talk)
            await talk.make(VMS, runs.machine("taken-qemu", strategy="Halted"))
            for body in (*COMMON, *STANDING):
                await self._make(talk, body)
            for fault in ON_HOST:
                if not fault.name.startswith(("outside", "unreadable")):
                    for body in fault.objects:
                        await self._make(talk, body)
            await self._incidents(talk)

    async def _make(self, talk: Talk, body: Data) -> None:
        filled = RealFault("", "", "", "", "", (body,)).manifests(self.values)[0]
        await talk.make(path_of(filled), filled)

    async def _secrets(self, talk: Talk) -> None:
        port = self.values["port"]
        key, other = ((self.libvirtd.work.parent / name).read_text() for name in ("key", "other"))
        hosts, stranger = ((self.libvirtd.work.parent / f"{name}.pub").read_text() for name in ("host", "other"))
        known = "".join(f"[127.0.0.1]:{each} {hosts}" for each in (port, self.values["bare"]))
        for name, data in {
            "lab": {"ssh-privatekey": key, "known_hosts": known},
            "stranger": {"ssh-privatekey": other, "known_hosts": known},
            "mistrusted": {"ssh-privatekey": key, "known_hosts": f"[127.0.0.1]:{port} {stranger}"},
            "unknowing": {"ssh-privatekey": key},
        }.items():
            await talk.make(SECRETS, {"metadata": {"name": name}, "stringData": {"username": "root", **data}})

    async def _incidents(self, talk: Talk) -> None:
        """What happens to machines that exist."""
        async with asyncio.TaskGroup() as group:
            for work in (self._data_gone, self._destroyed, self._killed, self._outside):
                group.create_task(work(talk))
        await self._unreadable(talk)

    async def _data_gone(self, talk: Talk) -> None:
        name = "data-gone-libvirt"
        await _settled(talk, name, "Off")
        (self.libvirtd.pool / f"{name}-data.qcow2").unlink()
        await talk.change(f"{BASE}/virtualmachines/{name}", {"spec": {"powerState": "On"}})

    async def _destroyed(self, talk: Talk) -> None:
        await _settled(talk, "destroyed-libvirt", "On")
        with self.libvirtd.connected() as connection:
            connection.lookupByName("destroyed-libvirt").destroy()
        await self._ask_now("destroyed-libvirt", asked)

    async def _killed(self, talk: Talk) -> None:
        await _settled(talk, "killed-qemu", "On")
        found = await talk.running("killed-qemu")
        os.kill(talk.host.qemus()[found["metadata"]["uid"]][0], signal.SIGKILL)
        # Soon it runs again, and after two minutes nobody speaks of it any more.
        await self._ask_now("killed-qemu", first_answer)

    async def _ask_now(self, name: str, ask: Callable[[Path, str], Answer]) -> None:
        # The command has an event loop of its own.
        what = next(each.ask for each in ON_HOST if each.name == name)
        self.said[name] = await asyncio.to_thread(ask, self.kubeconfig, what)

    async def _outside(self, talk: Talk) -> None:
        await _settled(talk, "poolless-libvirt", "Off")
        with self.libvirtd.connected() as connection:
            pool = connection.storagePoolLookupByName("leaving")
            pool.destroy()
            pool.undefine()
        await self._migrate(talk, "outside-libvirt")

    async def _unreadable(self, talk: Talk) -> None:
        """The directory of the export is somebody else's, and closed: root reads it, and the other Provider's program does not."""
        await _settled(talk, "still-qemu", "Off")
        folder = talk.host.root / "engine" / "staging" / "default" / "unreadable-qemu-storage"
        folder.mkdir(mode=0o700)
        os.chown(folder, _NOBODY, _NOBODY)
        await self._migrate(talk, "unreadable-qemu")

    async def _migrate(self, talk: Talk, name: str) -> None:
        for body in next(each for each in ON_HOST if each.name == name).objects:
            await self._make(talk, body)


async def _settled(talk: Talk, name: str, power: str) -> None:
    def holds(found: Data) -> Any:
        return found["status"].get("powerState") == power and condition(found, "Ready").get("status") == "True"

    await talk.until(f"{BASE}/virtualmachines/{name}", lambda found: found.get("status") and holds(found), f"{name} is {power}", _TIMEOUT)


@pytest.fixture(scope="module")
def libvirtd() -> Iterator["Libvirtd"]:
    """A libvirtd with a pool that is full, one that goes, and a domain of somebody else's."""
    if reason := lacks("libvirtd"):
        pytest.skip(f"needs libvirtd: {reason}")
    # After the check: a machine without the library skips.
    from tests.host.drivers.libvirtd import Libvirtd  # noqa: PLC0415

    name, work = f"pdkwhy{os.getpid()}", Path(tempfile.mkdtemp(prefix="pdk-", dir="/tmp"))
    work.chmod(0o711)
    full = work / "daemon" / "full"
    full.mkdir(parents=True)
    subprocess.run(["ip", "netns", "add", name], check=True)
    # The daemon sees what was mounted before it.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", full], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        with Libvirtd(work / "daemon", name) as daemon:
            daemon.define_pool("full", full)
            daemon.add_pool("leaving")
            with daemon.connected() as connection:
                connection.defineXML(_DOMAIN.format(name="taken-libvirt"))
            (daemon.pool / "boot.raw").write_bytes(guest())
            daemon.refresh()
            yield daemon
    finally:
        subprocess.run(["umount", full], check=True)
        subprocess.run(["ip", "netns", "delete", name], check=True)
        shutil.rmtree(work, ignore_errors=True)


@pytest.fixture(scope="module")
def world(libvirtd: "Libvirtd") -> Iterator[World]:
    """Everything has happened."""
    work = libvirtd.work.parent
    port, bare = free_ports(2)
    servers = [
        subprocess.Popen(sshserver.prepared(work, each, command), stdin=subprocess.DEVNULL, start_new_session=True)
        for each, command in ((port, ""), (bare, 'PATH=/nonexistent; export PATH; eval "$SSH_ORIGINAL_COMMAND"'))
    ]
    origin = imageserver.Server()
    origin.put("/boot.raw", guest())
    origin.put("/page.qcow2", b"<!DOCTYPE html><html><body>Sign in</body></html>" * 40, kind="text/html")
    origin.refuse = lambda seen: imageserver.Fault(503) if seen.path.startswith("/503") else None
    host = FaultyHost(work / "paddock", "127.0.0.1:1")
    host.root.mkdir()
    values = {"port": port, "bare": bare, "socket": libvirtd.socket, "pool": libvirtd.pool, "web": origin.url}
    found = World(host, libvirtd, values)
    with imageserver.running(origin):
        host.start()
        try:
            asyncio.run(found.bring_about())
            yield found
        finally:
            host.end()
            for each in servers:
                end(each)


@pytest.mark.spec("virtrigaud", 176)
@pytest.mark.parametrize("fault", ON_HOST, ids=lambda fault: fault.name)
def test_the_first_answer_is_right(world: World, fault: RealFault) -> None:
    answer = world.said.get(fault.name) or first_answer(world.kubeconfig, fault.ask)
    assert answer.is_right(fault), answer
