"""Everything at once, for a long time: real guests at work, machines that come and go, kills of Paddock and of QEMU, a slow disk,
providers that break the rules of HTTP/2, and a client that means harm.

`make soak` runs it for an hour, `make test-host` for a minute. SOAK_SECONDS sets another time, SOAK_SEED another seed. The run
prints its figures and writes them to `.cache/soak.json`.
"""

import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.base.errors import PaddockError
from paddock.base.images.build import tiny
from paddock.kubernetes.client.errors import NotFound
from tests.host.chaos import test_kills as chaos
from tests.host.guests import Registry, Shelf, serving
from tests.host.machines import bootsector
from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk
from tests.host.soak import hostile, providers, residents, slowdisk
from tests.scenario.chaos.client import Client as LedgerClient
from tests.scenario.chaos.client import Lost, context_of
from tests.scenario.chaos.ledger import Ledger
from tests.scenario.chaos.life import MAPS, Writer

SEED = int(os.environ.get("SOAK_SEED", "1"))
FIGURES = Path(__file__).resolve().parents[3] / ".cache" / "soak.json"
# What the server of the last run logged.
SAID = FIGURES.with_suffix(".log")
FLUSH_MILLISECONDS, RARE_FLUSH = 10, 50
WRITERS = 2
# Memory that Paddock may take beside its guests, at any time.
ROOM = 600 << 20
# By their whole duration, which is judged when the kernel has noted every wait for a processor.
STALLS = "paddock_event_loop_stall_seconds_bucket"
EDIT = "/apis/rbac.authorization.k8s.io/v1/namespaces/hostile/rolebindings"


@dataclass
class Figures:
    """The measurements of a run."""

    seconds: float = 0
    kills_of_paddock: int = 0
    kills_of_qemu: int = 0
    turns: int = 0
    hostile_providers: int = 0
    acknowledged: int = 0
    lines_of_residents: int = 0
    resident_bytes: list[int] = field(default_factory=list)
    # how long a small request of a well-behaved client took
    waits: list[float] = field(default_factory=list)
    stalls: list[str] = field(default_factory=list)
    hostile: Data = field(default_factory=dict)

    def summary(self) -> Data:
        """The figures as they are published."""
        waits = sorted(self.waits) or [0.0]
        spread = {"p50": waits[len(waits) // 2], "p99": waits[len(waits) * 99 // 100], "max": waits[-1]}
        sizes = {"first": self.resident_bytes[0], "last": self.resident_bytes[-1], "max": max(self.resident_bytes)}
        return {**asdict(self), "waits": spread, "requests": len(waits), "resident_bytes": sizes}


class Drip(BaseHTTPRequestHandler):
    """An image of 8 MiB at ten bytes a second."""

    def do_HEAD(self) -> None:
        """The head."""
        self._head()

    def do_GET(self) -> None:
        """Ten bytes a second until the client has had enough."""
        self._head()
        with contextlib.suppress(OSError):
            while not self.server._BaseServer__shutdown_request:  # type: ignore[attr-defined]
                self.wfile.write(b"\0" * 10)
                time.sleep(1)

    def _head(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(8 << 20))
        self.end_headers()

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


class Soak:
    """One run."""

    def __init__(self, host: Host, seconds: float, url: str, image: str, drip: str) -> None:
        self.host = host
        self.figures = Figures(seconds=seconds)
        self._url = url
        self._image = image
        self._drip = drip
        self._chance = random.Random(SEED)
        self._end = 0.0
        self._ledger = Ledger(MAPS)
        self._writers = [Writer(number, self._ledger, random.Random(SEED * 100 + number)) for number in range(WRITERS)]
        self._residents = [residents.Resident(name, host) for name in residents.NAMES]

    async def run(self, guest_url: str) -> None:
        """All of it."""
        self.host.start()
        async with self.host.client() as client:
            talk = Talk(self.host, client)
            await asyncio.gather(*(each.prepare(talk, guest_url) for each in self._residents))
            token = await _enrol(talk)
        self._end = time.monotonic() + self.figures.seconds
        async with self._attacked(token):
            living = [asyncio.create_task(each.run()) for each in self._residents]
            while time.monotonic() < self._end:
                await self._live(living)
            for each in living:
                each.cancel()
            await asyncio.gather(*living, return_exceptions=True)
        await self._finish()

    async def _live(self, living: list["asyncio.Task[None]"]) -> None:
        """The time from one start of Paddock to its sudden end."""
        async with self.host.client() as client, asyncio.TaskGroup() as group:
            # What a start loads may take longer than a client should ever wait.
            before = await self._stalls(Talk(self.host, client))
            players = [chaos.Players(client, self._url, self._image, self._chance) for _ in range(2)]
            tasks = [group.create_task(_until_cut(each.run())) for each in players]
            tasks += [group.create_task(self._write(each)) for each in self._writers]
            tasks += [group.create_task(self._probe(Talk(self.host, client))), group.create_task(self._kill_guests())]
            tasks.append(group.create_task(self._connect_providers(Talk(self.host, client))))
            await asyncio.sleep(min(self._chance.uniform(5, 90), max(1.0, self._end - time.monotonic())))
            for each in living:
                if each.done():
                    each.result()
            await self._note_health(Talk(self.host, client), before)
            pids = {each.name: each.pids for each in self._residents}
            self.host.kill()
            for task in tasks:
                task.cancel()
            self.figures.turns += sum(each.turns for each in players)
        self.figures.kills_of_paddock += 1
        await asyncio.sleep(0.2)
        there = self.host.qemus()
        assert all(len(each) == 1 for each in there.values()), there
        # No guest dies because Paddock does.
        assert {number for each in pids.values() for number in each} <= {number for each in there.values() for number in each}
        assert chaos.check_records(self.host.root) == []
        self.host.start()
        async with self._ledger_client() as found:
            status, listed = await found.ask("GET", MAPS)
            assert status == 200, listed
            self._ledger.hold_against([each for each in listed["items"] if each["metadata"]["name"].startswith("w")], exactly=False)

    async def _write(self, writer: Writer) -> None:
        async with self._ledger_client() as client:
            with contextlib.suppress(Lost):
                while True:
                    await writer.step(client)
                    await asyncio.sleep(0.1)

    async def _probe(self, talk: Talk) -> None:
        """A client that asks for something small, once in a while."""
        with contextlib.suppress(PaddockError, OSError):
            while True:
                begun = time.monotonic()
                await talk.get(VMS)
                self.figures.waits.append(time.monotonic() - begun)
                await asyncio.sleep(0.5)

    async def _connect_providers(self, talk: Talk) -> None:
        """Provider after Provider at a peer that breaks the rules; each can be deleted while its peer goes on."""
        with contextlib.suppress(PaddockError, OSError):
            while True:
                await providers.live(talk, self._chance)
                self.figures.hostile_providers += 1

    async def _kill_guests(self) -> None:
        """QEMUs of machines that come and go end, or stand still for a while."""
        while True:
            await asyncio.sleep(self._chance.uniform(5, 20))
            spared = {pid for each in self._residents for pid in each.pids}
            victims = sorted(pid for pids in self.host.qemus().values() for pid in pids if pid not in spared)
            if not victims:
                continue
            await _disturb(self._chance.choice(victims), kill=self._chance.random() < 0.5)
            self.figures.kills_of_qemu += 1

    async def _note_health(self, talk: Talk, stalls_before: float) -> None:
        """Note the memory, and moments in which the event loop stood still."""
        self.figures.resident_bytes.append(self.host.resident())
        if stalls := await self._stalls(talk) - stalls_before:
            lines = [each for each in (self.host.root / "said").read_text().splitlines() if "event loop stalled" in each]
            self.figures.stalls.append(f"after {self.figures.kills_of_paddock} kills: {stalls:g}, the last one: {lines[-1:]}")

    async def _stalls(self, talk: Talk) -> float:
        page = (await talk.client.request("GET", "/metrics")).decode()
        assert "\npaddock_event_loop_stalls_total " in page, page[-2000:]
        found = {bound: float(count) for bound, count in re.findall(rf'^{STALLS}{{le="([^"]+)"}} (\S+)$', page, re.MULTILINE)}
        return found["+Inf"] - found["0.25"] if found else 0.0

    @contextlib.asynccontextmanager
    async def _attacked(self, token: str) -> AsyncIterator[None]:
        """A hostile client works as long as the block lasts."""
        words = [sys.executable, "-m", "tests.host.soak.hostile", str(self.host.root), token, self._drip, str(SEED)]
        process = subprocess.Popen(["nice", *words], stdout=subprocess.PIPE, start_new_session=True)
        try:
            yield
            assert process.poll() is None, "the hostile client ended by itself"
        finally:
            process.terminate()
            said, _ = await asyncio.to_thread(process.communicate)
            self.figures.hostile = json.loads(said or b"{}")

    @contextlib.asynccontextmanager
    async def _ledger_client(self) -> AsyncIterator[LedgerClient]:
        address = json.loads((self.host.root / "server.json").read_text())["address"]
        async with LedgerClient(address, context_of(self.host.root / "kubeconfig")) as client:
            yield client

    async def _finish(self) -> None:
        """The hostile namespace goes, everything converges, every disk is sound, and nothing is left."""
        async with self.host.client() as client:
            talk = Talk(self.host, client)
            await client.request("DELETE", f"/api/v1/namespaces/{hostile.NAMESPACE}")
            await talk.until(f"/api/v1/namespaces/{hostile.NAMESPACE}", lambda found: not found, "the hostile namespace is gone", 300)
            await chaos.wait(lambda: chaos.converged(self.host, client), 300)
            for each in self._residents:
                await each.check(talk)
                # What QEMU has in memory of a disk that it writes is missing in the file.
                await talk.verb(each.name, "stop")
                await talk.until(f"{VMIS}/{each.name}", lambda found: not found, "it is stopped")
            self.figures.resident_bytes.append(self.host.resident())
            self.figures.acknowledged = sum(each.answers for each in self._writers)
            self.figures.lines_of_residents = sum(each.written for each in self._residents)
            assert chaos.check_disks(self.host.root) == []
            for path in (chaos.CLONES, chaos.SNAPSHOTS, VMS, residents.DISKS):
                for item in await chaos.items(client, path):
                    with contextlib.suppress(NotFound):
                        await client.request("DELETE", f"{path}/{item['metadata']['name']}")
            await chaos.wait(lambda: chaos.nothing_left(self.host, client), 300)


async def _disturb(pid: int, *, kill: bool) -> None:
    """Kill a process, or let it stand still for a while; it may be gone at any moment."""
    if kill:
        _signal(pid, signal.SIGKILL)
        return
    _signal(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(3)
    finally:
        # An error here would take the place of a cancellation, and the task would live on.
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


async def _until_cut(life: Any) -> None:
    """Live until the server is gone."""
    with contextlib.suppress(PaddockError, OSError):
        await life


async def _enrol(talk: Talk) -> str:
    """A namespace for the hostile client, with the rights of `edit` and fifty machines at most; returns its token."""
    inside = f"/api/v1/namespaces/{hostile.NAMESPACE}"
    await talk.make("/api/v1/namespaces", {"metadata": {"name": hostile.NAMESPACE}})
    quota = {"metadata": {"name": "all"}, "spec": {"hard": {"count/virtualmachines.kubevirt.io": "50"}}}
    await talk.make(f"{inside}/resourcequotas", quota)
    await talk.make(f"{inside}/serviceaccounts", {"metadata": {"name": "intruder"}})
    await talk.make(f"{inside}/secrets", {"metadata": {"name": "tls"}, "stringData": {"username": "nobody", "password": "none"}})
    subject = {"kind": "ServiceAccount", "name": "intruder", "namespace": hostile.NAMESPACE}
    for role in ("edit", "kubevirt.io:edit", "cdi.kubevirt.io:edit"):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        await talk.make(EDIT, {"metadata": {"name": role.replace(":", "-")}, "roleRef": reference, "subjects": [subject]})
    asked = await talk.make(f"{inside}/serviceaccounts/intruder/token", {"spec": {"expirationSeconds": 86400}})
    return str(asked["status"]["token"])


def _keep_store(host: Host) -> None:
    """Keep the store of a failed run, whose history tells who wrote what."""
    for each in host.root.glob("store.db*"):
        with contextlib.suppress(OSError):
            shutil.copy(each, FIGURES.parent / f"soak-{each.name}")


def _play(work: Path, registry: Registry, web: Shelf, guest: tiny.TinyImage, seconds: float) -> None:
    disk = bootsector.write(work / "disk.img")
    host = Host(work / "d", registry.address)
    host.root.mkdir()
    host.options = ("--provider-from", "127.0.0.1")
    host.environment = slowdisk.environment(work, FLUSH_MILLISECONDS, RARE_FLUSH)
    with serving(partial(Drip)) as drip:
        soak = Soak(host, seconds, web.put(disk), registry.push("disks/boot:1", {"disk/disk.img": disk}), f"http://{drip}")
        FIGURES.parent.mkdir(exist_ok=True)
        try:
            asyncio.run(soak.run(web.put(guest.disk)))
        except BaseException:
            print((host.root / "said").read_text()[-8000:])
            _keep_store(host)
            raise
        finally:
            host.end()
            said = (host.root / "said").read_text()
            SAID.write_text(said)
            if soak.figures.resident_bytes:
                FIGURES.write_bytes(orjson.dumps(soak.figures.summary(), option=orjson.OPT_INDENT_2))
                print(FIGURES.read_text())
    assert "Traceback" not in said, said[said.index("Traceback") - 500 :][:4000]
    assert max(soak.figures.resident_bytes) < ROOM
    assert soak.figures.stalls == [], "\n".join(each for each in said.splitlines() if "event loop stalled" in each)
    # Otherwise nothing was proven.
    assert soak.figures.kills_of_paddock and soak.figures.hostile["attacks"] and soak.figures.hostile_providers


@pytest.mark.needs("qemu", "cc")
def test_a_minute_of_everything(work: Path, registry: Registry, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    _play(work, registry, web, tiny_guest, float(os.environ.get("SOAK_SECONDS", "60")))


@pytest.mark.soak
@pytest.mark.needs("qemu", "cc")
def test_an_hour_of_everything(work: Path, registry: Registry, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    _play(work, registry, web, tiny_guest, float(os.environ.get("SOAK_SECONDS", "3600")))
