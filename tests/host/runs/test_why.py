"""`paddock why` on a host with real machines: a QEMU that was killed, one that hangs, an image that no registry has."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

import pytest

from paddock.base.errors import PaddockError
from tests.host.runs.conftest import VMIS, VMS, Host, Play, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")


def why(host: Host, what: str, code: int = 1) -> str:
    """What the command says."""
    command = [sys.executable, "-m", "paddock.app", "why", what, "--kubeconfig", str(host.root / "kubeconfig")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == code, said.stdout + said.stderr
    return said.stdout


def test_what_became_of_real_machines_is_explained(play: Play) -> None:
    async def script(talk: Talk) -> None:
        for name in ("killed", "hung"):
            await talk.make(VMS, machine(name, strategy="Once"))
        await talk.make(VMS, machine("imageless", "127.0.0.1:1/nothing:1"))
        uids = {name: (await talk.running(name))["metadata"]["uid"] for name in ("killed", "hung")}
        await talk.until(f"{VMIS}/hung", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
        assert "nothing is wrong" in why(talk.host, "vm/hung", 0)
        qemus = talk.host.qemus()
        os.kill(qemus[uids["killed"]][0], signal.SIGKILL)
        os.kill(qemus[uids["hung"]][0], signal.SIGSTOP)
        with contextlib.suppress(PaddockError):
            await talk.client.request("PUT", f"{VMIS.replace('/apis/', '/apis/subresources.')}/hung/pause", body=b"{}")
        await talk.until(f"{VMIS}/hung", lambda found: condition(found, "NeedsAttention"), "its silence is seen")
        assert "  but:      QEMU does not answer" in why(talk.host, "hung")
        await talk.until(f"{VMIS}/killed", lambda found: found.get("status", {}).get("phase") == "Failed", "its end is seen")
        said = why(talk.host, "killed")
        assert said.startswith("VirtualMachine killed has stopped.\n  cause:    QEMU was killed from outside"), said
        await asyncio.sleep(1)
        said = why(talk.host, "imageless")
        assert (
            "VirtualMachineInstance imageless, status.conditions" in said and "  cause:    The image server cannot be reached." in said
        ), said

    play(script)
