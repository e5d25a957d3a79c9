"""The whole way to forks of a running machine: free names, one snapshot of its memory for all of them, and their guests have gone on."""

import asyncio
import contextlib
from collections.abc import Iterable

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import holds, texts
from paddock.fleet.kinds import VM
from paddock.fleet.machines import finding, snapshots
from paddock.fleet.machines.edits import ChangeRefused
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.snapshots import CLONES, SNAPSHOTS
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import Selection, WriteOptions
from paddock.kubernetes.client.target import Key

_POLL_SECONDS = 0.1
_OVER = ("Succeeded", "Failed")
_LONGEST_NAME = 63
_WARM = {ownnames.WARM.name: "true"}


async def wishes(server: ServerSession, machine: MachineView, count: int) -> list[Data]:
    """Return the clones that ask for forks of a machine, under the next names that are free. Raises `ChangeRefused`."""
    await _demand_forkable(server, machine)
    key = finding.needs_vm(machine, "make a fork")
    listed = await server.client.list(VM.target, Selection(namespace=key.namespace))
    names = free_names(key.name, (texts(each, "metadata", "name") for each in listed.items), count)
    stamp = int(server.clock.seconds())
    wanted = [snapshots.vm_clone(machine, name, f"{name}-{stamp}") for name in names]
    for each in wanted:
        each["metadata"]["annotations"] = _WARM
    return wanted


def names_of(clones: Iterable[Data]) -> list[str]:
    """Return the names of the forks that clones ask for."""
    return [texts(each, "spec", "target", "name") for each in clones]


async def rehearse(server: ServerSession, clones: Iterable[Data]) -> None:
    """Ask the server whether it would make clones."""
    for each in clones:
        await server.client.create(CLONES, each, each["metadata"]["namespace"], WriteOptions(dry_run=True))


async def make(server: ServerSession, clones: list[Data], seconds: float) -> None:
    """Make forks, and wait until they run unless `seconds` is 0. Raises `SnapshotNotTaken`."""
    if len(clones) == 1:
        await _clone(server, clones, seconds)
    else:
        await _clone_together(server, clones, seconds)


async def delete(server: ServerSession, clones: Iterable[Data]) -> None:
    """Delete forks with their disks, also half made ones."""
    for each in clones:
        namespace = each["metadata"]["namespace"]
        for target, name in ((CLONES, texts(each, "metadata", "name")), (VM.target, texts(each, "spec", "target", "name"))):
            with contextlib.suppress(NotFound):
                await server.client.delete(target, Key(namespace, name))


async def _demand_forkable(server: ServerSession, machine: MachineView) -> None:
    what = f"cannot fork {machine}"
    if not await server.client.is_paddock():
        why = "the server is a cluster, whose KubeVirt has no clones of running machines"
        raise ChangeRefused(what, why=why, fix=f"`paddock clone {machine.name} NEW` copies its disks")
    if machine.vmi is None or texts(machine.vmi, "status", "phase") != "Running":
        raise ChangeRefused(what, why="it does not run", fix=f"start it, or copy its disks with `paddock clone {machine.name} NEW`")


def free_names(machine: str, taken: Iterable[str], count: int) -> list[str]:
    """Return the next names for forks of a machine that are free: web-fork-1, web-fork-2."""
    known, found, number = set(taken), list[str](), 0
    while len(found) < count:
        number += 1
        suffix = f"-fork-{number}"
        name = machine[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix
        if name not in known:
            found.append(name)
    return found


async def _clone_together(server: ServerSession, clones: list[Data], seconds: float) -> None:
    """Make clones of one snapshot, which goes when they have its memory: the source stands still once."""
    namespace, name = clones[0]["metadata"]["namespace"], clones[0]["metadata"]["name"]
    made = {
        "apiVersion": "snapshot.kubevirt.io/v1beta1",
        "kind": "VirtualMachineSnapshot",
        "metadata": {"name": name, "namespace": namespace, "annotations": {**_WARM, ownnames.MEMORY.name: "true"}},
        "spec": {"source": clones[0]["spec"]["source"]},
    }
    source = {"apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot", "name": name}
    await server.client.create(SNAPSHOTS, made, namespace)
    try:
        for each in clones:
            each["spec"]["source"] = source
        await _clone(server, clones, seconds)
    finally:
        await server.client.delete(SNAPSHOTS, Key(namespace, name))


async def _clone(server: ServerSession, clones: list[Data], seconds: float) -> None:
    """Make clones, and wait for all of them unless `seconds` is 0."""
    for each in clones:
        await server.client.create(CLONES, each, each["metadata"]["namespace"])
    if not seconds:
        return
    waiting = {each["metadata"]["name"] for each in clones}
    namespace, failures = clones[0]["metadata"]["namespace"], dict[str, str]()
    try:
        async with asyncio.timeout(seconds):
            while waiting:
                for name in sorted(waiting):
                    found = await server.client.get(CLONES, Key(namespace, name))
                    if texts(found, "status", "phase") in _OVER:
                        waiting.discard(name)
                        failures |= _failure(found)
                if waiting:
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        name = min(waiting)
        what = f"{len(waiting)} of {len(clones)} forks do not run after {seconds:g} s"
        raise snapshots.SnapshotNotTaken(what, fix=f"`paddock why vmclone/{name}` says what one waits for") from None
    if failures:
        name, why = min(failures.items())
        what = f"{len(failures)} of {len(clones)} forks failed" if len(clones) > 1 else "the fork failed"
        raise snapshots.SnapshotNotTaken(what, why=why, fix=f"`paddock why vmclone/{name}` says more")


def _failure(clone: Data) -> dict[str, str]:
    if texts(clone, "status", "phase") != "Failed":
        return {}
    return {texts(clone, "metadata", "name"): snapshots.reason_of(clone)}


def shares_identity(machine: MachineView) -> bool:
    """Return whether the guest of a fork keeps the identity of its source, because it has no agent."""
    return not (machine.vmi is not None and holds(machine.vmi, "AgentConnected"))
