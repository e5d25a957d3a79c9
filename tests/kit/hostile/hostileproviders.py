"""A real `paddock up` whose Providers are hostile, as those who use the server see it meanwhile."""

import contextlib
import http.client
import json
import os
import signal
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.kit.providers import providertls

PROVIDERS = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/providers"
_SECONDS = 120
_GETS = 15
_NAMES = ("bad", "worse")
_UP = ("-m", "paddock.app", "up", "--network", "user", "--provider-from", "127.0.0.1", "--listen", "127.0.0.1:0")


class Figures(NamedTuple):
    """What a newcomer met: seconds of a GET with a connection of its own, and the megabytes of the server's memory."""

    quiet: tuple[float, float]
    beside: tuple[float, float]
    grown: float
    # seconds until a Provider was gone, and from SIGTERM to the end
    deleted: float
    ended: float
    code: int

    @property
    def row(self) -> str:
        """The figures as a row of a table."""
        times = " | ".join(f"{median:.3f} / {most:.3f}" for median, most in (self.quiet, self.beside))
        return f"{times} | {self.grown:+.0f} MiB | {self.deleted:.1f} | {self.ended:.1f} ({self.code})"


class Server:
    """A server in a process of its own."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        command = [sys.executable, *_UP, "--dir", str(root)]
        # A log that nobody reads would stop the server when its pipe is full.
        self.log = root.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})
        self._pki = root / "pki"
        while "address" not in self._state(root) or not self._state(root)["ready"]:
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        self._host, _, port = self._state(root)["address"].removeprefix("https://").rpartition(":")
        self._port = int(port)

    @staticmethod
    def _state(root: Path) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads((root / "server.json").read_text()))
        return {}

    def ask(self, method: str, path: str, body: object = None) -> int:
        """One request of a newcomer; return its status."""
        context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=_SECONDS, context=context)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status in (200, 201, 202, 404), text
            return answer.status
        finally:
            connection.close()

    def times(self) -> tuple[float, float]:
        """The median and the most of some GETs, in seconds."""
        found = []
        for _ in range(_GETS):
            began = time.monotonic()
            self.ask("GET", "/api/v1/namespaces/default")
            found.append(time.monotonic() - began)
        return statistics.median(found), max(found)

    def memory(self) -> float:
        """The resident memory in MiB, at its highest."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) / 1024

    def delete(self, name: str) -> float:
        """Delete a Provider; return the seconds until it is gone."""
        began = time.monotonic()
        self.ask("DELETE", f"{PROVIDERS}/{name}")
        while self.ask("GET", f"{PROVIDERS}/{name}") != 404:
            assert time.monotonic() - began < _SECONDS, "the Provider is not deleted"
            time.sleep(0.2)
        return time.monotonic() - began

    def end(self) -> tuple[float, int]:
        """End it as systemd does; return the seconds and the exit code."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        return time.monotonic() - began, code

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def hostile(kind: str, files: Path | None) -> Iterator["subprocess.Popen[str]"]:
    """A hostile provider; its first line of output is its port."""
    paths = [] if files is None else [str(files / "tls.crt"), str(files / "tls.key")]
    process = subprocess.Popen([sys.executable, "-m", "tests.kit.hostile.hostilepeers", kind, *paths], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def provider(name: str, port: int, *, tls: bool) -> dict[str, Any]:
    """A Provider that is served at a port of this host."""
    security = {"secretRef": {"name": "tls"}} if tls else {"enabled": False}
    return {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": "Provider",
        "metadata": {"name": name, "annotations": {"virtrigaud.io/provider-address": f"127.0.0.1:{port}"}},
        "spec": {
            "type": "vsphere",
            "endpoint": "https://192.0.2.1",
            "credentialSecretRef": {"name": "tls"},
            "runtime": {"image": "none:1", "service": {"tls": security}},
        },
    }


def measure(folder: Path, kind: str, *, tls: bool, environment: Mapping[str, str]) -> Figures:
    """Run a server with two hostile Providers, delete one, and end the server."""
    material = providertls.Authority().issue(*(f"virtrigaud-provider-default-{name}.default.svc.cluster.local" for name in _NAMES))
    files = providertls.write(folder / "tls", material)
    server = Server(folder / "server", environment)
    try:
        values = {path.name: path.read_text() for path in files.iterdir()}
        server.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "tls"}, "stringData": values})
        quiet, before = server.times(), server.memory()
        with hostile(kind, files if tls else None) as peer:
            assert peer.stdout is not None
            port = int(peer.stdout.readline())
            for name in _NAMES:
                server.ask("POST", PROVIDERS, provider(name, port, tls=tls))
            assert peer.stdout.readline() == "connected\n"
            beside, grown = server.times(), server.memory() - before
            return Figures(quiet, beside, grown, server.delete(_NAMES[0]), *server.end())
    finally:
        server.kill()
