"""Runs `paddock operator` as a process, and KubeVirt's and Kubernetes' parts beside it, for the length of a `with` block."""

import asyncio
import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock.base.clock import SystemClock
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from tests.reference.server import launched

# Of a loaded machine.
PATIENCE = 600.0


@dataclass
class Operator:
    """One that runs."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def said(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    @property
    def port(self) -> int:
        """Of its pages."""
        return int(next(each["health"] for each in self.said() if each["message"] == "metrics and health endpoints listening"))

    def page(self, path: str) -> tuple[int, str]:
        """One of its pages."""
        return self._get(f"http://127.0.0.1:{self.port}{path}")

    def secure_metrics(self, token: str, trust: Path | None = None) -> tuple[int, str]:
        """The metrics over TLS; without a certificate to trust, any will do."""
        port = next(each["metrics"] for each in self.said() if each["message"] == "metrics and health endpoints listening")
        tls = ssl.create_default_context(cafile=str(trust) if trust else None)
        if trust is None:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        asked = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
        return self._get(asked, urllib.request.HTTPSHandler(context=tls))

    def _get(self, asked: str | urllib.request.Request, *handlers: urllib.request.BaseHandler) -> tuple[int, str]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *handlers)
        try:
            with opener.open(asked, timeout=PATIENCE) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @property
    def is_ready(self) -> bool:
        """True if its pages are there and say so."""
        return self.listens and self.page("/readyz")[0] == 200

    @property
    def listens(self) -> bool:
        """True if its pages are there."""
        return any(each["message"] == "metrics and health endpoints listening" for each in self.said())

    @property
    def leads(self) -> bool:
        """True if it leads."""
        return any(line.startswith("paddock_leader{") and line.endswith(" 1") for line in self.page("/metrics")[1].splitlines())

    def wait(self, what: Callable[[], bool], seconds: float = PATIENCE) -> float:
        """Wait for something; returns how long that took."""
        began = time.monotonic()
        while not what():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < began + seconds, (self.listens and self.page("/readyz"), self.log.read_text()[-3000:])
            time.sleep(0.05)
        return time.monotonic() - began

    def wait_ready(self) -> float:
        """Wait until it says so."""
        self.wait(lambda: self.listens)
        return self.wait(lambda: self.page("/readyz")[0] == 200)

    def sweeps(self, controller: str) -> float:
        """Return the number of reconciles of a controller."""
        lines = self.page("/metrics")[1].splitlines()
        return sum(
            float(line.rpartition(" ")[2]) for line in lines if line.startswith(f'paddock_reconcile_total{{controller="{controller}"')
        )

    def complaints(self) -> list[dict[str, Any]]:
        """Return the log lines that need a look: defects and worse."""
        return [each for each in self.said() if each["level"] in ("error", "critical")]


@contextmanager
def operating(access: Path, log: Path, *arguments: str) -> Iterator[Operator]:
    """An operator, started; it is ended by SIGTERM if it is still there."""
    pages = ("--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
    command = [sys.executable, "-m", "paddock.app", "operator", "--kubeconfig", str(access), *pages, *arguments]
    with launched(command, log) as process:
        yield Operator(process, log)


@contextmanager
def beside(access: Path, work: Callable[[Client], Awaitable[None]]) -> Iterator[None]:
    """Something that works in a loop and a thread of its own until the block ends."""
    loop, tasks = asyncio.new_event_loop(), []

    async def run() -> None:
        async with Client(Https(kubeconfig.find({}, SystemClock(), explicit=access))) as client:
            await work(client)

    def begin() -> None:
        asyncio.set_event_loop(loop)
        tasks.append(loop.create_task(run()))
        try:
            loop.run_until_complete(tasks[0])
        except asyncio.CancelledError:
            return
        finally:
            loop.close()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(30)
        assert not thread.is_alive()
