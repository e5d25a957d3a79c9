"""What guests need outlives the server: addresses, routers, names and Services are there while it is stopped, killed and upgraded."""

import asyncio
import os
import shutil
import signal
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec import Struct

from paddock.base.images.build import tiny
from paddock.engine.machine.process import holders, start_ticks
from paddock.engine.networks import dns, respondercontrol, responderprocess
from paddock.engine.networks.nics import ForwardTarget, NicSpec, PublishedPort, PublishedService
from tests.coroutines import played
from tests.host.guests import Registry, _RegistryHandler, serving
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Guest, Lab, run, there
from tests.host.networks.talking import tcp_serve
from tests.host.networks.test_sharing import left
from tests.host.runs.conftest import VMIS, VMS, Talk, condition
from tests.host.upgrade.earlier import VersionedHost
from tests.host.upgrade.test_upgrade import purge, tiny_machine

WEB, API, ASKER = (NicSpec(name, "default", hostname=name, group="default") for name in ("web", "api", "asker"))
NAME, SERVICE_NAME, ADDRESS = "web.default.vm.cluster.local", "web.default.svc.cluster.local", "10.97.3.4"
SERVICES = "/api/v1/namespaces/default/services"
SERVICE = PublishedService("default/web", (PublishedPort("tcp", 80, (ForwardTarget("web", "default", 8080),)),), (ADDRESS,))
SECONDS = 240.0


class Answers(Struct):
    """The answers that a guest got: at once, at the second attempt, never."""

    first: int = 0
    second: int = 0
    # each with the seconds since the boot of the host
    lost: list[tuple[str, float]] = []

    def count(self, what: str, attempt: Callable[[], bool]) -> None:
        """Make an attempt, and another one if it fails."""
        if attempt():
            self.first += 1
        elif attempt():
            self.second += 1
        else:
            self.lost.append((what, time.monotonic()))


def looked_up(server: str, name: str) -> str:
    """Return the address of a name if a name server tells it within a second; otherwise an empty text."""
    question = struct.pack("!HHHHHH", os.getpid() & 0xFFFF, 0x0100, 1, 0, 0, 0) + dns.wire(name) + struct.pack("!HH", dns.A, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(1.0)
        try:
            asking.sendto(question, (server, 53))
            answer = asking.recv(512)
        except OSError:
            return ""
        return socket.inet_ntoa(answer[-4:]) if answer[3] & 15 == dns.OK and answer[6:8] != b"\0\0" else ""


def reached(address: str, port: int) -> bool:
    """Return whether a TCP server says something within a second."""
    try:
        with socket.create_connection((address, port), 1.0) as client:
            return client.recv(10) == b"web"
    except OSError:
        return False


def asking(server: str, until: Path) -> Callable[[], Answers]:
    """Look up a machine and a Service and reach the Service, ten times a second, until a file is there."""

    def work() -> Answers:
        answers = Answers()
        while not reached(ADDRESS, 80):
            time.sleep(0.05)
        while not until.exists():
            answers.count("machine", lambda: bool(looked_up(server, NAME)))
            answers.count("Service's name", lambda: bool(looked_up(server, SERVICE_NAME)))
            answers.count("Service", partial(reached, ADDRESS, 80))
            time.sleep(0.1)
        return answers

    return work


def responder(folder: Path) -> int:
    """Return the process of the responder that answers in a directory."""
    found = responderprocess.find(folder)
    assert found is not None, "no responder answers"
    found.server.close()
    return found.answer.pid


async def serve(world: World) -> None:
    """What the controllers tell at the start of a server."""
    await world.networks.name({SERVICE_NAME: (ADDRESS,)})
    await world.networks.publish([SERVICE])


async def again(world: World) -> None:
    """Another server starts; its controllers are slow to find the machines."""
    world.networks = world.fresh()
    await world.networks.open()
    await serve(world)
    await asyncio.sleep(1)
    for card in (WEB, ASKER):
        await world.networks.plug(card)
    await world.networks.collect({"web", "asker"})


async def changed(folder: Path, pid: int) -> int:
    """Return the process of the responder when it is another one."""
    async with asyncio.timeout(20):
        while (found := await asyncio.to_thread(responderprocess.find, folder)) is None or found.answer.pid == pid:
            await asyncio.sleep(0.05)
    found.server.close()
    return found.answer.pid


async def live(world: World, web: Guest) -> int:
    """Servers come and go. Returns the process of the last responder."""
    folder = world.lab.folder / "networks"
    pid = responder(folder)
    await world.networks.close()
    await asyncio.sleep(1)
    told = await web.dhcp()
    assert told["ip"] == "10.0.2.2" and (await web.dhcp6()).addresses == ["fd10:0:2::2"]
    await again(world)
    assert responder(folder) == pid, "the next server takes over the process"
    await world.networks.close()
    world.build("another")
    await again(world)
    replaced = responder(folder)
    assert replaced != pid and not start_ticks(pid), "one of another build is replaced"
    os.kill(replaced, signal.SIGKILL)
    revived = await changed(folder, replaced)
    assert (await web.dhcp())["ip"] == "10.0.2.2"
    await world.networks.close()
    return revived


@pytest.mark.needs("netns", "tun", "nft", "busybox")
@pytest.mark.spec("kubevirt", 204, 205, 206)
@played
async def test_guests_get_addresses_names_and_services_whatever_becomes_of_the_server(world: World, /) -> None:
    web, asker = [await world.guest(card) for card in (WEB, ASKER)]
    server = web.child(tcp_serve(8080, b"web"))
    await serve(world)
    ended = world.lab.folder / "ended"
    child = asker.child(asking(asker.plug.dns[0], ended))
    await asyncio.sleep(1)
    pid = await live(world, web)
    ended.touch()
    answers = await child.done()
    assert not answers.lost and answers.first > 100, answers
    # The rest is an accident: neither server nor responder.
    os.kill(pid, signal.SIGKILL)
    assert not await asyncio.to_thread(responderprocess.find, world.lab.folder / "networks")
    world.networks = world.fresh()
    await world.networks.open()
    assert await asker.child(partial(looked_up, asker.plug.dns[0], NAME)).done(), "before any machine is plugged"
    assert (await web.dhcp())["ip"] == "10.0.2.2"
    server.end()


def visited(server: str, name: str) -> bool:
    """Return whether a guest is reached at the address that its name has."""
    address = looked_up(server, name)
    return bool(address) and reached(address, 8080)


def visiting(server: str, name: str, until: Path) -> Callable[[], Answers]:
    """Look up another guest and connect to it, ten times a second, until a file is there."""

    def work() -> Answers:
        answers = Answers()
        while not visited(server, name):
            time.sleep(0.05)
        while not until.exists():
            answers.count(name, partial(visited, server, name))
            time.sleep(0.1)
        return answers

    return work


@pytest.mark.needs("netns", "tun", "nft", "busybox")
@pytest.mark.spec("kubevirt", 275)
@played
async def test_ten_guests_reach_each_other_by_name_whatever_becomes_of_the_server(world: World, /) -> None:
    cards = [NicSpec(f"g{number}", "default", hostname=f"g{number}", group="default") for number in range(10)]
    guests = [await world.guest(each) for each in cards]
    folder, ended = world.lab.folder / "networks", world.lab.folder / "ended"
    servers = [guest.child(tcp_serve(8080, b"web")) for guest in guests]
    clients = [
        guest.child(visiting(guest.plug.dns[0], f"g{(number + 1) % 10}.default.vm.cluster.local", ended))
        for number, guest in enumerate(guests)
    ]
    pid = responder(folder)
    for build in ("", "", "another", "third"):
        await asyncio.sleep(1)
        await world.networks.close()
        await asyncio.sleep(1)
        if build:
            world.build(build)
        world.networks = world.fresh()
        await world.networks.open()
        for each in cards:
            await world.networks.plug(each)
    os.kill(responder(folder), signal.SIGKILL)
    await asyncio.sleep(2)
    assert not start_ticks(pid)
    ended.touch()
    found = [await client.done() for client in clients]
    assert not [each for answers in found for each in answers.lost], found
    assert all(answers.first > 20 for answers in found) and sum(answers.second for answers in found) <= 20, found
    for server in servers:
        server.end()


@pytest.mark.needs("netns", "tun", "nft", "busybox")
@pytest.mark.spec("kubevirt", 207, 208)
@played
async def test_the_responder_has_no_rights_and_ends_with_the_last_guest(world: World, /) -> None:
    web = await world.guest(WEB)
    folder = world.lab.folder / "networks"
    pid = responder(folder)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines())
        assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert "0" not in status["Uid"].split() + status["Gid"].split() and not status["Groups"].strip()
    assert status["NoNewPrivs"] == "1" and (folder / "responder.sock").stat().st_mode & 0o777 == 0o600
    web.unplug()
    await world.networks.release({"web"})
    assert left() == [] and not start_ticks(pid)
    assert not [each for each in folder.iterdir() if each.name.startswith("responder")]
    # Without a server, it ends with the devices of its guests.
    await world.guest(API)
    pid = responder(folder)
    await world.networks.close()
    run("ip", "link", "delete", world.networks.device("api", "default"))
    for _ in range(100):
        if not start_ticks(pid):
            break
        await asyncio.sleep(0.05)
    assert not start_ticks(pid)
    world.networks = world.fresh()


@pytest.mark.needs("netns", "tun", "nft", "busybox")
@pytest.mark.spec("kubevirt", 206)
@patch.object(respondercontrol, "_LOOK_SECONDS", 0.2)
@patch.object(responderprocess, "_ANSWER_SECONDS", 1.0)
@played
async def test_a_responder_that_stands_still_is_replaced(world: World, /) -> None:
    web = await world.guest(WEB)
    pid = responder(world.lab.folder / "networks")
    os.kill(pid, signal.SIGSTOP)
    await changed(world.lab.folder / "networks", pid)
    assert not start_ticks(pid) and (await web.dhcp())["ip"] == "10.0.2.2"


LOOP = """\
cat >/tmp/loop <<'END'
name() { timeout 2 nslookup -type=a web.default.vm.cluster.local; }
service() { timeout 2 wget -q -O- http://$1/; }
ask() { if $1 $2 >/dev/null 2>&1; then echo $1 first; elif $1 $2 >/dev/null 2>&1; then echo $1 second; else echo $1 lost; fi; }
while :; do
ask name
ask service $1
sleep 1
done >/tmp/answers
END
sh /tmp/loop {address} >/dev/null 2>&1 &"""


class Lookups:
    """A guest that looks up a name and reaches a Service each second."""

    def __init__(self, host: VersionedHost) -> None:
        self.host = host

    async def begin(self, talk: Talk, image: str) -> None:
        """Make two machines and a Service, and have one of them ask for the other."""
        for name in ("web", "asker"):
            await talk.make(VMS, tiny_machine(name, image))
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        made = await talk.make(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
        for name in ("web", "asker"):
            await talk.until(f"{VMIS}/{name}", lambda seen: condition(seen, "Ready").get("status") == "True", "it is ready", SECONDS)
        async with talk.console("asker") as console:
            await console.write(b"\r")
            await console.until(b":/# ")
            for line in LOOP.replace("{address}", made["spec"]["clusterIP"]).splitlines():
                await console.write(line.encode() + b"\r")
                await asyncio.sleep(0.1)

    async def answers(self) -> dict[str, int]:
        """Return the answers of each kind."""
        async with self.host.client() as client, Talk(self.host, client).console("asker") as console:
            await console.write(b"\r")
            await console.until(b":/# ")
            said = await console.shell("sort /tmp/answers | uniq -c")
        return {kind: int(count) for count, kind in (line.split(maxsplit=1) for line in said.splitlines() if " " in line.strip())}


def other_build(work: Path) -> Path:
    """Return sources of this program that are not these very ones."""
    root = Path(__file__).resolve().parents[3]
    shutil.copytree(root / "src", work / "other" / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    with (work / "other" / "src" / "paddock" / "engine" / "networks" / "dns.py").open("a") as file:
        file.write("# another build\n")
    return work / "other"


async def upgrade(host: VersionedHost, lookups: Lookups, other: Path) -> None:
    """Stop, kill and upgrade a server below its guests."""
    folder = host.root / "engine" / "networks"
    pid = responder(folder)
    host.stop()
    await asyncio.sleep(8)
    host.start_of(None)
    assert responder(folder) == pid
    host.kill()
    await asyncio.sleep(8)
    host.start_of(other)
    replaced = responder(folder)
    assert replaced != pid, "that of an older build is replaced"
    host.kill()
    host.start_of(None)
    pid = responder(folder)
    assert pid != replaced
    os.kill(pid, signal.SIGKILL)
    pid = await changed(folder, pid)
    await asyncio.sleep(3)
    found = await lookups.answers()

    assert not [kind for kind in found if "lost" in kind] and found["name first"] > 15 and found["service first"] > 15, found
    host.kill()
    os.kill(pid, signal.SIGKILL)
    host.start_of(None)
    async with asyncio.timeout(SECONDS):
        before = (await lookups.answers())["name first"]
        while (await lookups.answers())["name first"] < before + 2:
            await asyncio.sleep(1)


@pytest.mark.needs("qemu", "root", "netns", "tun", "nft")
@pytest.mark.spec("kubevirt", 204, 205, 206, 208)
def test_names_and_services_answer_every_second_of_an_upgrade(work: Path, tiny_guest: tiny.TinyImage) -> None:
    lab = Lab(work / "lab")
    for name in ("registry", "paddock"):
        (work / name).mkdir()
    other = other_build(work)

    async def script() -> Any:
        shelf = Registry(work / "registry")
        with serving(type("Handler", (_RegistryHandler,), {"registry": shelf})) as shelf.address:
            image = shelf.push("disks/tiny:1", {"disk/tiny.qcow2": tiny_guest.disk})
            host = VersionedHost(work / "paddock", shelf.address, "routed")
            host.start_of(None)
            try:
                lookups = Lookups(host)
                async with asyncio.timeout(3 * SECONDS), host.client() as client:
                    await lookups.begin(Talk(host, client), image)
                await upgrade(host, lookups, other)
                lock = host.root / "engine" / "networks" / "responder.lock"
                pids = holders(lock)
                host.stop()
                assert holders(lock) == pids and len(pids) == 1
                purge(host)
                assert not any(map(start_ticks, pids)), "it ends with the last guest"
            finally:
                host.end()

    try:
        there(lab.host, script)
    finally:
        lab.close()
