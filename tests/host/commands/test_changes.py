"""The commands that change a machine, with real guests: each wish is written, and seen in the guest."""

import asyncio
import json
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.coroutines import played
from tests.host.machines import bootsector
from tests.host.runs.conftest import PROMPT, VMIS, VMS, Console, Talk, machine, phase
from tests.kit.servers.imageserver import Server
from tests.scenario.fronts.kubermatic.making import source

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
KIB = 1024


class Said(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str


async def paddock(talk: Talk, *words: str) -> Said:
    """Run a command against the host's server, without a terminal."""
    given = [sys.executable, "-m", "paddock.app", *words, "--kubeconfig", str(talk.host.root / "kubeconfig")]

    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(given, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=240)

    done = await asyncio.to_thread(run)
    print(f"$ paddock {' '.join(words)}\n{done.stdout}{done.stderr}[{done.returncode}]")
    return Said(done.returncode, done.stdout, done.stderr)


async def tiny(talk: Talk, image: str, name: str = "web") -> None:
    """Make a machine of the tiny guest, and wait until it runs."""
    domain = {"memory": {"guest": "192Mi"}, "cpu": {"sockets": 1}}
    await talk.make(VMS, machine(name, image, domain=domain, terminationGracePeriodSeconds=0))
    await talk.running(name)


async def until_shell(console: Console, command: str, expected: str, seconds: float = 60) -> None:
    """Repeat a command in the guest until it says something."""
    said = ""
    try:
        async with asyncio.timeout(seconds):
            while expected not in (said := await console.shell(command)):
                await asyncio.sleep(0.5)
    except TimeoutError:
        pytest.fail(f"{command}: {said!r} has no {expected!r}")


async def awake(console: Console) -> None:
    """Wait for the guest's shell."""
    await console.write(b"\r")
    await console.until(PROMPT, 120)


@played
async def test_sizes_are_seen_at_once_or_after_a_restart(talk: Talk, /, tiny_disk_image: str) -> None:
    await tiny(talk, tiny_disk_image)
    first = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
    async with talk.console("web") as console:
        await awake(console)
        said = await paddock(talk, "set", "web", "cpu=2", "mem=256Mi", "--dry-run")
        assert said.code == 0 and "live " in said.err and "restart " in said.err and "nothing was changed" in said.err
        assert (await talk.get(f"{VMS}/web"))["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"] == 1
        said = await paddock(talk, "set", "web", "cpu=2")
        assert (said.code, said.out) == (0, "vm/web set\n") and "takes this at once" in said.err, "a live change in a pipe needs no yes"
        await until_shell(console, "cat /sys/devices/system/cpu/present", "0-1")
        before = int((await console.shell("awk '/MemTotal/{print $2}' /proc/meminfo")).split()[-1])
    said = await paddock(talk, "set", "web", "mem=256Mi", "--restart")
    assert said.code == 1 and "only when it restarts" in said.err and "--yes" in said.err
    assert (await paddock(talk, "set", "web", "mem=256Mi", "--restart", "--yes")).out == "vm/web set\nvm/web restarting\n"
    await talk.until(
        f"{VMIS}/web",
        lambda found: found.get("metadata", {}).get("uid") not in (None, first) and found["status"].get("phase") == "Running",
        "it runs again",
    )
    async with talk.console("web") as console:
        await awake(console)
        await until_shell(console, f"[ $(awk '/MemTotal/{{print $2}}' /proc/meminfo) -ge {before + 50 * KIB} ] && echo gr''own", "grown")


@played
async def test_a_disk_comes_grows_goes_and_comes_back(talk: Talk, /, tiny_disk_image: str) -> None:
    await tiny(talk, tiny_disk_image)
    async with talk.console("web") as console:
        await awake(console)
        assert (await paddock(talk, "disk", "add", "web", "data", "16Mi")).out == "vm/web has the disk data\n"
        name = "basename $(dirname $(grep -lx data /sys/block/*/serial))"
        size = f"cat /sys/block/$({name})/size"
        await until_shell(console, f"{name}; echo x", "vd")
        await until_shell(console, size, str(16 * KIB * 2))
        listed = (await paddock(talk, "disk", "ls", "web")).out
        assert "data" in listed and "16Mi" in listed and "attached" in listed
        await console.shell(f"echo kept-word > /dev/$({name}); sync")
        assert (await paddock(talk, "disk", "grow", "web", "data", "+16Mi")).code == 0
        await until_shell(console, size, str(32 * KIB * 2))
        said = await paddock(talk, "disk", "grow", "web", "data", "8Mi")
        assert said.code == 2 and "cannot shrink" in said.err
        said = await paddock(talk, "disk", "rm", "web", "data")
        assert said.out == "vm/web no longer has the disk data\n" and "the claim web-data keeps the data" in said.err
        await until_shell(console, "ls /sys/block | grep -c vd", "1")
        assert (await paddock(talk, "disk", "add", "web", "data", "--claim", "web-data")).code == 0
        await until_shell(console, f"head -c 9 /dev/$({name})", "kept-word")
        said = await paddock(talk, "disk", "rm", "web", "data", "--purge")
        assert said.code == 1 and (await talk.get(f"{CLAIMS}/web-data"))
        assert (await paddock(talk, "disk", "rm", "web", "data", "--purge", "--yes")).code == 0
        await talk.until(f"{CLAIMS}/web-data", lambda found: not found, "the claim is gone")


@played
async def test_a_snapshot_brings_data_back_and_a_clone_is_itself(talk: Talk, /, tiny_disk_image: str) -> None:
    await tiny(talk, tiny_disk_image)
    name = "basename $(dirname $(grep -lx data /sys/block/*/serial))"
    async with talk.console("web") as console:
        await awake(console)
        assert (await paddock(talk, "disk", "add", "web", "data", "16Mi")).code == 0
        await until_shell(console, f"{name}; echo x", "vd")
        await console.shell(f"echo first-word > /dev/$({name}); sync")
        assert (await paddock(talk, "snap", "web", "one")).out == "one\n"
        await console.shell(f"echo other-word > /dev/$({name}); sync")
        listed = (await paddock(talk, "snap", "ls", "web")).out
        assert "one" in listed and "ready" in listed
    said = await paddock(talk, "restore", "web", "one")
    assert said.code == 1 and "what was written since is lost" in said.err
    assert 'did you mean "one"?' in (await paddock(talk, "restore", "web", "onne")).err
    assert (await paddock(talk, "restore", "web", "one", "--yes")).out == "vm/web restored to one\n"
    await talk.running("web")
    async with talk.console("web") as console:
        await awake(console)
        await until_shell(console, f"head -c 10 /dev/$({name})", "first-word")
    assert (await paddock(talk, "clone", "web", "twin", "--start")).code == 0
    await talk.running("twin")
    web, twin = await talk.get(f"{VMS}/web"), await talk.get(f"{VMS}/twin")
    assert web["spec"]["template"]["spec"]["domain"].get("firmware") != twin["spec"]["template"]["spec"]["domain"]["firmware"]
    async with talk.console("twin") as console:
        await awake(console)
        await until_shell(console, f"head -c 10 /dev/$({name})", "first-word")
    macs = [(await talk.get(f"{VMIS}/{each}"))["status"]["interfaces"][0]["mac"] for each in ("web", "twin")]
    assert macs[0] != macs[1]
    assert (await paddock(talk, "snap", "rm", "web", "one", "--yes")).out == "one deleted\n"
    assert (await paddock(talk, "snap", "ls", "web", "-o", "name")).out == ""


FRONTS = {
    "stakater": "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines",
    "vitistack": "/apis/vitistack.io/v1alpha1/namespaces/default/machines",
}
SOURCES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources"


def front(dialect: str, image: str) -> dict[str, object]:
    """Return a small machine of a dialect, with a data disk."""
    if dialect == "stakater":
        parameters = {
            "runStrategy": "Always",
            "dataSource": {"name": "golden", "namespace": "default"},
            "storage": {"size": "8Mi"},
            "memory": {"guest": "64Mi"},
            "firmware": {"efi": False},
            "networks": [],
            "terminationGracePeriodSeconds": 0,
            "additionalDisks": [{"name": "data", "size": "8Mi"}],
        }
        head = {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
        return {**head, "spec": {"parameters": parameters}}
    metadata = {"name": "web", "annotations": {"vitistack.io/root-image": image}}
    resources = {"cpu": {"cores": 1}, "memory": {"size": "64Mi"}}
    disks = [{"name": "root", "size": "8Mi"}, {"name": "data", "size": "8Mi"}]
    return {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": metadata,
        "spec": {"resources": resources, "disks": disks},
    }


@pytest.mark.parametrize("dialect", FRONTS)
@played
async def test_a_front_keeps_its_object_while_its_disks_go_back(talk: Talk, /, dialect: str, origin: Server) -> None:
    image = origin.put("/golden", bootsector.marker().ljust(1 << 20, b"\1"))
    await talk.make(SOURCES, source("golden", image))
    await talk.make(FRONTS[dialect], front(dialect, image))
    await talk.running("web")
    made = await talk.get(f"{FRONTS[dialect]}/web")
    assert (await paddock(talk, "disk", "grow", "web", "data", "16Mi")).code == 0
    assert (await paddock(talk, "snap", "web", "one")).out == "one\n"
    claim = next(
        each["name"] for each in json.loads((await paddock(talk, "disk", "ls", "web", "-o", "json")).out) if each["name"] == "data"
    )
    assert claim == "data"
    first = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
    assert (await paddock(talk, "restore", "web", "one", "--yes")).out == f"{dialect}/web restored to one\n"
    await talk.until(f"{VMIS}/web", lambda found: found.get("metadata", {}).get("uid") not in (None, first) and phase(found) == "Running")
    now = await talk.get(f"{FRONTS[dialect]}/web")
    for each in (made, now):
        for note in ("vitistack.io/power-state", "crossplane.io/paused"):
            each["metadata"].get("annotations", {}).pop(note, None)
    assert now["metadata"].get("annotations", {}) == made["metadata"].get("annotations", {})
    assert (await paddock(talk, "clone", "web", "twin")).code == 2
    said = await paddock(talk, "clone", "web", "twin", "--dialect", "kubevirt", "--start")
    assert said.out == f"vm/twin cloned from {dialect}/web\n"
    await talk.running("twin")
    twin = await talk.get(f"{VMS}/twin")
    assert "ownerReferences" not in twin["metadata"]
    assert (await talk.get(f"{FRONTS[dialect]}/web"))["metadata"]["uid"] == made["metadata"]["uid"]
