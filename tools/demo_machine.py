"""Boots a machine as a user would: builds a small image, starts `paddock up`, applies a VirtualMachine, waits until its guest answers.

Everything lies in a directory of its own, which is gone at the end.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from paddock.base.clock import SystemClock
from paddock.client import kubeconfig
from paddock.client.client import Client
from paddock.client.errors import NotFound
from paddock.client.http.https import Https
from paddock.engine.machine.process import holders

ROOT = Path(__file__).resolve().parents[1]
PADDOCK = ROOT / ".venv" / "bin" / "paddock"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
INSTANCE = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/hello"
MANIFEST: dict[str, Any] = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "hello"},
    "spec": {
        "runStrategy": "Always",
        "dataVolumeTemplates": [{"metadata": {"name": "hello-root"}, "spec": {"storage": {"resources": {"requests": {"storage": "1Gi"}}}}}],
        "template": {
            "spec": {
                "domain": {
                    "memory": {"guest": "256Mi"},
                    "devices": {
                        "rng": {},
                        "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                        "interfaces": [{"name": "default", "masquerade": {}}],
                    },
                },
                "networks": [{"name": "default", "pod": {}}],
                "volumes": [{"name": "root", "dataVolume": {"name": "hello-root"}}],
            }
        },
    },
}
_SECONDS = 180.0


class Quiet(SimpleHTTPRequestHandler):
    """A web server that says nothing."""

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


def say(text: str) -> None:
    """A line, with the time since the start."""
    print(f"{time.monotonic() - _STARTED:6.1f} s  {text}", flush=True)


async def watch(directory: Path, url: str) -> bool:
    """Apply the machine and tell what becomes of it."""
    MANIFEST["spec"]["dataVolumeTemplates"][0]["spec"]["source"] = {"http": {"url": url}}
    access = kubeconfig.find({}, SystemClock(), explicit=directory / "kubeconfig")
    async with Client(Https(access)) as client:
        await client.request("POST", MACHINES, body=json.dumps(MANIFEST).encode())
        say("applied VirtualMachine hello; its disk comes from a web server on loopback")
        told = ""
        while time.monotonic() - _STARTED < _SECONDS:
            machine = json.loads(await client.request("GET", f"{MACHINES}/hello"))
            state = machine.get("status", {}).get("printableStatus", "")
            if state != told:
                say(f"it is {state}")
                told = state
            try:
                status = json.loads(await client.request("GET", INSTANCE)).get("status", {})
            except NotFound:
                status = {}
            if any(each["type"] == "AgentConnected" for each in status.get("conditions", ())) and status.get("guestOSInfo"):
                say(f"its agent answers: {status['guestOSInfo'].get('prettyName')}, address {status['interfaces'][0]['ipAddress']}")
                return True
            await asyncio.sleep(0.1)
    return False


def main() -> int:
    """The whole of it."""
    work = Path(tempfile.mkdtemp(prefix="paddock-demo-"))
    server: ThreadingHTTPServer | None = None
    try:
        subprocess.run([PADDOCK, "image", "build", "tiny", "--output", work], check=True, stdout=subprocess.DEVNULL)
        image = work / "tiny.qcow2"
        say(f"built a guest of {image.stat().st_size >> 20} MiB from Debian packages: paddock image build tiny")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(work)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = ("--listen", "127.0.0.1:0", "--network", "user", "--image-from", "127.0.0.1", "--detach")
        subprocess.run([PADDOCK, "up", "--dir", work / "host", *options], check=True, stdout=subprocess.DEVNULL)
        say("paddock up: ready")
        good = asyncio.run(watch(work / "host", f"http://127.0.0.1:{server.server_port}/tiny.qcow2"))
        subprocess.run([PADDOCK, "down", "--dir", work / "host"], check=True, stdout=subprocess.DEVNULL)
        say("paddock down: the guest goes on, as guests do; the demonstration ends it" if good else "the guest did not answer in time")
        return 0 if good else 1
    finally:
        if server is not None:
            server.shutdown()
        for lock in work.rglob("machines/*/lock"):
            for pid in holders(lock):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(work, ignore_errors=True)


_STARTED = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())
