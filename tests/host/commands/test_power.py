"""The daily commands with real guests, as a person types them: one machine of KubeVirt, and one of Vitistack."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.coroutines import played
from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, machine

pytestmark = pytest.mark.needs("qemu")
MACHINES = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
NODE: Data = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "node"},
    "spec": {"resources": {"memory": {"size": "64Mi"}}, "disks": [{"name": "root", "size": "8Mi"}]},
}


@pytest.fixture
def image(work: Path, registry: Registry) -> str:
    """The guest of 512 bytes as a containerDisk."""
    return registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img")})


async def paddock(talk: Talk, *words: str, code: int = 0) -> str:
    """Return what a command prints through a pipe."""
    environ = {**os.environ, "KUBECONFIG": str(talk.host.root / "kubeconfig")}
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "paddock.app", *words, env=environ, **pipes)  # type: ignore[arg-type]
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == code, (words, out, err)
    return out.decode()


async def row(talk: Talk, name: str) -> Data:
    """Return what `paddock ls` says of a machine."""
    rows = json.loads(await paddock(talk, "ls", "-o", "json"))
    (found,) = [each for each in rows if each["name"] == name]
    return dict(found)


async def uid(talk: Talk, name: str) -> str:
    """Return the UID of a run."""
    return str((await talk.get(f"{VMIS}/{name}"))["metadata"]["uid"])


@played
async def test_a_machine_of_kubevirt(talk: Talk, /, image: str) -> None:
    await talk.make(VMS, machine("web", image, "Halted", terminationGracePeriodSeconds=0))
    assert (await row(talk, "web"))["status"] == "Stopped"
    assert await paddock(talk, "start", "web") == "vm/web started\n"
    first, pid = await uid(talk, "web"), None
    assert (await row(talk, "web"))["status"] == "Running"
    assert "VirtualMachine web" not in await paddock(talk, "info", "web")
    assert await paddock(talk, "pause", "web") == "vm/web paused\n"
    assert (await row(talk, "web"))["status"] == "Paused"
    assert await paddock(talk, "unpause", "web") == "vm/web unpaused\n"
    (pid,) = talk.host.qemus()[first]
    async with talk.console("web") as console:
        assert await paddock(talk, "reset", "web") == "vm/web reset\n"
        await console.until(b"R")
    # The button starts the guest anew, in the same QEMU.
    assert talk.host.qemus()[first] == [pid]
    assert await paddock(talk, "restart", "web") == "vm/web restarted\n"
    assert await uid(talk, "web") != first
    assert await paddock(talk, "protect", "web") == "vm/web protected: the server refuses to delete it\n"
    await paddock(talk, "rm", "web", code=2)
    assert await paddock(talk, "unprotect", "web") == "vm/web unprotected\n"
    assert await paddock(talk, "stop", "web") == "vm/web stopped\n"
    assert await talk.get(f"{VMIS}/web") == {}
    assert await paddock(talk, "rm", "web") == "vm/web deleted\n"
    assert await paddock(talk, "ls", "-o", "name") == ""


@played
async def test_a_machine_of_vitistack(talk: Talk, /) -> None:
    await talk.make(MACHINES, NODE)
    await talk.running("node")
    first = await uid(talk, "node")
    assert (await row(talk, "node"))["dialect"] == "vitistack"
    assert await paddock(talk, "pause", "node") == "vitistack/node paused\n"
    assert await paddock(talk, "unpause", "node") == "vitistack/node unpaused\n"
    assert await paddock(talk, "restart", "node", "--force") == "vitistack/node restarted\n"
    assert await uid(talk, "node") != first
    assert await paddock(talk, "stop", "node", "--force") == "vitistack/node stopped\n"
    assert (await row(talk, "node"))["status"] == "Stopped"
    assert await paddock(talk, "start", "node") == "vitistack/node started\n"
    await paddock(talk, "rm", "node", code=2)
    assert await paddock(talk, "rm", "node", "--purge", "--yes", "--force") == "vitistack/node deleted\n"
    assert await talk.get(f"{VMS}/node") == {}
