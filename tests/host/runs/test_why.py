"""`paddock why` on a host with real machines: a QEMU that was killed, one that hangs, an image that no registry has."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from paddock.base.errors import PaddockError
from tests.coroutines import played
from tests.host.runs.conftest import VMIS, VMS, Host, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")


def why(host: Host, what: str, code: int = 1) -> str:
    """Return the command's output."""
    command = [sys.executable, "-m", "paddock.app", "why", what, "--kubeconfig", str(host.root / "kubeconfig")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == code, said.stdout + said.stderr
    return said.stdout


@played
async def test_what_became_of_real_machines_is_explained(talk: Talk, /) -> None:
    for name in ("killed", "hung"):
        await talk.make(VMS, machine(name, strategy="Once"))
    await talk.make(VMS, machine("imageless", "127.0.0.1:1/nothing:1"))
    uids = {name: (await talk.running(name))["metadata"]["uid"] for name in ("killed", "hung")}
    await talk.until(f"{VMIS}/hung", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
    # It runs, and has nothing to boot from: that is no all-clear.
    assert "nothing was found. Not checked: whether the guest boots" in why(talk.host, "vm/hung", 4)
    qemus = talk.host.qemus()
    os.kill(qemus[uids["killed"]][0], signal.SIGKILL)
    os.kill(qemus[uids["hung"]][0], signal.SIGSTOP)
    with contextlib.suppress(PaddockError):
        await talk.client.request("PUT", f"{VMIS.replace('/apis/', '/apis/subresources.')}/hung/pause", body=b"{}")
    await talk.until(f"{VMIS}/hung", lambda found: condition(found, "NeedsAttention"), "its silence is seen")
    assert "  cause:    QEMU is stopped by a signal" in why(talk.host, "hung")
    await talk.until(f"{VMIS}/killed", lambda found: found.get("status", {}).get("phase") == "Failed", "its end is seen")
    said = why(talk.host, "killed")
    assert said.startswith("VirtualMachine killed has stopped.\n  cause:    QEMU was killed from outside"), said
    await asyncio.sleep(1)
    said = why(talk.host, "imageless")
    assert "VirtualMachineInstance imageless, status.conditions" in said and "  cause:    The image server cannot be reached." in said, said


CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
RIGAUD = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines"


@pytest.mark.spec("kubevirt", 117)
@played
async def test_what_runs_and_is_not_well_is_no_all_clear(talk: Talk, /) -> None:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Mi"}}}
    await talk.make(CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await talk.make(VMS, machine("web", volumes=volumes))
    await talk.make(RIGAUD, _rigaud("db"))
    await talk.running("web")
    said = why(talk.host, "web", 4)
    assert "Not checked: whether the guest boots" in said
    said = why(talk.host, "db")
    assert "VirtRigaud VirtualMachine db is not ready.\n" in said and "Provider local does not exist in namespace default" in said, said
    await talk.client.request("DELETE", f"{CLAIMS}/data")
    said = why(talk.host, "web")
    assert "  but:      PersistentVolumeClaim data was deleted while web runs" in said, said
    assert "  but:      PersistentVolumeClaim data was deleted while web runs" in why(talk.host, "pvc/data")
    assert "299" not in said


def _rigaud(name: str) -> dict[str, Any]:
    spec = {"providerRef": {"name": "local"}, "classRef": {"name": "small"}, "imageRef": {"name": "debian"}}
    return {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


@pytest.mark.spec("kubevirt", 117)
@played
async def test_a_cause_that_is_over_is_not_named(talk: Talk, /, tiny_disk_image: str) -> None:
    """QEMU is killed and comes back; then the image below its disk goes, and it comes back no more."""
    await talk.make(VMS, machine("web", tiny_disk_image, domain={"memory": {"guest": "192Mi"}}))
    first = (await talk.running("web"))["metadata"]["uid"]
    os.kill(talk.host.qemus()[first][0], signal.SIGKILL)
    await talk.until(f"{VMIS}/web", lambda found: _runs_anew(found, first), "it runs again")
    assert "It runs again, but QEMU was killed from outside" in why(talk.host, "web")
    for image in (talk.host.root / "engine" / "images").rglob("*"):
        if image.is_file() and image.stat().st_size > 1 << 20:
            image.unlink()
    second = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
    os.kill(talk.host.qemus()[second][0], signal.SIGKILL)
    broken = ("CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff")
    await talk.until(f"{VMS}/web", lambda found: found.get("status", {}).get("printableStatus") in broken, "it cannot be started")
    for _ in range(10):
        said = why(talk.host, "web")
        assert "killed from outside" not in said, said
        await asyncio.sleep(1)
    assert "is gone from the host" in said, said


def _runs_anew(found: dict[str, Any], former: str) -> bool:
    return bool(found.get("status", {}).get("phase") == "Running" and found["metadata"]["uid"] != former)
