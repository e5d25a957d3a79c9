"""A client that means harm: it has the rights of `edit` in one namespace, never pauses, and never says the same thing for long.

Runs as a process of its own (`python -m tests.host.soak.hostile DIRECTORY TOKEN DRIP SEED`), so that its work is not the test's, and counts
what it did on standard output when it is asked to end. The server may be killed under it: it connects again and goes on.
"""

import asyncio
import contextlib
import json
import random
import signal
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.kit.hostile import hostilebodies

NAMESPACE = "hostile"
HEAD_LIMIT = 1 << 16
PAUSE_SECONDS = 30.0
POUR_SECONDS = 10.0
Data = dict[str, Any]
_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_POOLS = f"/apis/pool.kubevirt.io/v1beta1/namespaces/{NAMESPACE}/virtualmachinepools"
_MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
_DISKS = f"/apis/cdi.kubevirt.io/v1beta1/namespaces/{NAMESPACE}/datavolumes"


class Attacker:
    """One attack after another."""

    def __init__(self, directory: Path, token: str, drip: str, chance: random.Random) -> None:
        self._kubeconfig = directory / "kubeconfig"
        self._token = token
        self._drip = drip
        self._chance = chance
        self._count = 0
        # what was tried, and each answer's status
        self.tried: Counter[str] = Counter()
        self.answers: Counter[int] = Counter()

    async def run(self) -> None:
        """Attack until cancelled."""
        attacks: tuple[Callable[[], Awaitable[None]], ...] = (
            self.copy_bomb,
            self.huge_pool,
            self.flood,
            self.stall_handshakes,
            self.speak_nonsense,
            self.nest_deeply,
            self.watch_without_reading,
            self.import_drips,
            self.ask_for_the_impossible,
            self.pour_bodies,
            self.make_in_bulk,
        )
        while True:
            attack = self._chance.choice(attacks)
            with contextlib.suppress(OSError, EOFError, ValueError, TimeoutError):
                async with asyncio.timeout(PAUSE_SECONDS):
                    await attack()
            self.tried[attack.__name__] += 1
            await asyncio.sleep(self._chance.uniform(0, 0.5))

    async def copy_bomb(self) -> None:
        """A patch of a kilobyte that doubles a document forty times."""
        self._count += 1
        name = f"bomb-{self._count % 5}"
        await self._ask("POST", _MAPS, {"metadata": {"name": name}})
        patch: list[Data] = [{"op": "add", "path": "/data", "value": {"a": "b"}}]
        patch += [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(40)]
        await self._ask("PATCH", f"{_MAPS}/{name}", patch, "application/json-patch+json")

    async def huge_pool(self) -> None:
        """A thousand million machines, for a moment."""
        name = f"huge-{self._chance.randrange(3)}"
        template: Data = {
            "metadata": {"labels": {"p": name}},
            "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}},
        }
        spec = {"replicas": 1_000_000_000, "selector": {"matchLabels": {"p": name}}, "virtualMachineTemplate": template}
        body = {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": name}, "spec": spec}
        await self._ask("POST", _POOLS, body)
        await asyncio.sleep(2)
        await self._ask("DELETE", f"{_POOLS}/{name}")

    async def flood(self) -> None:
        """Two hundred connections that ask without a pause, whatever they are answered."""

        async def one() -> None:
            with contextlib.suppress(OSError, EOFError, ValueError):
                reader, writer = await self._connect()
                try:
                    for _ in range(100):
                        await self._send(reader, writer, "GET", _MACHINES)
                finally:
                    writer.transport.abort()

        await asyncio.gather(*(one() for _ in range(200)))

    async def stall_handshakes(self) -> None:
        """A hundred connections that never finish what they began."""
        host, port = self._address()
        opened = []
        for number in range(100):
            _, writer = await asyncio.open_connection(host, port)
            opened.append(writer)
            writer.write(b"\x16\x03\x01" if number % 2 else b"GET / HTTP/1.1\r\nhost:")
        await asyncio.sleep(5)
        for writer in opened:
            writer.transport.abort()

    async def speak_nonsense(self) -> None:
        """Bytes that are no HTTP, and HTTP that contradicts itself."""
        twice = b"POST /api HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd"
        for said in (self._chance.randbytes(2000), twice, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n"):
            _, writer = await self._connect()
            writer.write(said)
            with contextlib.suppress(OSError):
                await writer.drain()
            await asyncio.sleep(0.2)
            writer.transport.abort()

    async def nest_deeply(self) -> None:
        """A document of a hundred thousand brackets, and one of four megabytes."""
        for body in (b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"data":{"a":"' + b"x" * (4 << 20) + b'"}}'):
            reader, writer = await self._connect()
            try:
                await self._send(reader, writer, "POST", _MAPS, body)
            finally:
                writer.transport.abort()

    async def watch_without_reading(self) -> None:
        """Watches whose events nobody takes."""
        opened = []
        for _ in range(20):
            _, writer = await self._connect()
            writer.write(self._head("GET", f"{_MACHINES}?watch=1", b"", "application/json"))
            opened.append(writer)
        await asyncio.sleep(8)
        for writer in opened:
            writer.transport.abort()

    async def import_drips(self) -> None:
        """Twenty images from a server that sends ten bytes a second."""
        for number in range(20):
            storage = {"resources": {"requests": {"storage": "8Mi"}}}
            spec = {"source": {"http": {"url": f"{self._drip}/{number}.img"}}, "storage": storage}
            body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": f"drip-{number}"}, "spec": spec}
            await self._ask("POST", _DISKS, body)
        await asyncio.sleep(5)
        for number in range(20):
            await self._ask("DELETE", f"{_DISKS}/drip-{number}")

    async def ask_for_the_impossible(self) -> None:
        """Machines that no host can run."""
        name = f"vain-{self._chance.randrange(5)}"
        domain = self._chance.choice(
            (
                {"memory": {"guest": "8Ei"}},
                {"cpu": {"sockets": 1_000_000, "cores": 1000}},
                {"firmware": {"uuid": "x" * 3000}},
                {"clock": {"timezone": "a" * 3000}},
                {"memory": {"guest": "1"}},
            )
        )
        template = {"spec": {"domain": {"devices": {}, **domain}}}
        body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}}
        await self._ask("POST", _MACHINES, {**body, "spec": {"runStrategy": "Always", "template": template}})
        await asyncio.sleep(1)
        await self._ask("DELETE", f"{_MACHINES}/{name}")

    async def pour_bodies(self) -> None:
        """Forty connections whose bodies nobody reads."""
        pour = self._chance.choice((hostilebodies.pipeline, hostilebodies.unfinished, hostilebodies.endless))

        async def one(number: int) -> None:
            with contextlib.suppress(OSError, TimeoutError):
                _, writer = await self._connect()
                try:
                    async with asyncio.timeout(POUR_SECONDS):
                        for piece in pour(random.Random(number), _MAPS, (f"authorization: Bearer {self._token}",)):
                            writer.write(piece)
                            await writer.drain()
                            await asyncio.sleep(0)
                finally:
                    writer.transport.abort()

        await asyncio.gather(*(one(number) for number in range(40)))

    async def make_in_bulk(self) -> None:
        """Fifteen running machines at once, and their deletion in one request."""
        labels = {"made": "in-bulk"}
        template = {"metadata": {"labels": labels}, "spec": {"domain": {"memory": {"guest": "16Mi"}, "devices": {}}}}
        spec = {"runStrategy": "Always", "template": template}

        async def one(number: int) -> None:
            head = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": f"bulk-{number}", "labels": labels}}
            await self._ask("POST", _MACHINES, {**head, "spec": spec})

        await asyncio.gather(*(one(number) for number in range(15)))
        await asyncio.sleep(self._chance.uniform(0, 5))
        await self._ask("DELETE", f"{_MACHINES}?labelSelector=made%3Din-bulk")

    def _address(self) -> tuple[str, int]:
        """The server's address of now: each start has another port."""
        server = yaml.safe_load(self._kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        host, _, port = server.removeprefix("https://").rpartition(":")
        return host, int(port)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        host, port = self._address()
        return await asyncio.open_connection(host, port, ssl=context, limit=1 << 24)

    async def _ask(self, method: str, path: str, body: Data | list[Data] | None = None, kind: str = "application/json") -> None:
        reader, writer = await self._connect()
        try:
            await self._send(reader, writer, method, path, orjson.dumps(body) if body is not None else b"", kind)
        finally:
            writer.transport.abort()

    async def _send(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        method: str,
        path: str,
        body: bytes = b"",
        kind: str = "application/json",
    ) -> None:
        writer.write(self._head(method, path, body, kind))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        self.answers[int(head.split(b" ")[1])] += 1
        _, found, rest = head.partition(b"content-length: ")
        if found:
            await reader.readexactly(int(rest.split(b"\r\n")[0]))

    def _head(self, method: str, path: str, body: bytes, kind: str) -> bytes:
        lines = (f"{method} {path} HTTP/1.1", "host: x", f"authorization: Bearer {self._token}", f"content-type: {kind}")
        return "\r\n".join((*lines, f"content-length: {len(body)}", "", "")).encode() + body


async def _main(directory: str, token: str, drip: str, seed: str) -> None:
    attacker = Attacker(Path(directory), token, drip, random.Random(int(seed)))
    attacking = asyncio.gather(*(attacker.run() for _ in range(3)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, attacking.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await attacking
    print(json.dumps({"attacks": dict(attacker.tried), "answers": {str(code): count for code, count in sorted(attacker.answers.items())}}))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
