"""Disks of Stakater's machines have the size that was asked for: made, grown and restored, with and without a file system between."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.coroutines import run_by
from tests.host.machines import bootsector
from tests.host.storage.conftest import CDI, MB, Data, Site, pvc
from tests.host.storage.machines import Machines, machines
from tests.kit.servers.imageserver import Server, running

pytestmark = pytest.mark.needs("qemu")

FRONTS = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
SNAPSHOTS = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default"
GUEST = bootsector.marker().ljust(MB, b"\0")


def parameters(root: str, data: str) -> Data:
    """A stopped machine with a file system between claim and disk, and without one."""
    disks = [{"name": "data", "size": data}, {"name": "raw", "size": data, "volumeMode": "Block"}]
    source = {"name": "golden", "namespace": "default"}
    return {"runStrategy": "Halted", "dataSource": source, "storage": {"size": root}, "additionalDisks": disks}


def virtual_size(path: Path, form: str) -> int:
    """The size of a disk as qemu-img reads it."""
    said = subprocess.run(["qemu-img", "info", "-U", "--output=json", "-f", form, path], check=True, capture_output=True, timeout=30)
    return int(json.loads(said.stdout)["virtual-size"])


async def are_filled(here: Site) -> bool:
    """The three disks and their image have their content."""
    found = (await here.get(f"{CDI}/datavolumes"))["items"]
    return [(each.get("status") or {}).get("phase") for each in found] == ["Succeeded"] * 4


async def until_sizes(here: Site, **sizes: int) -> None:
    """Wait until the disks of claims have sizes, in megabytes."""
    found: dict[str, float] = {}

    async def have() -> bool:
        for claim in sizes:
            layer = await here.layer(claim)
            found[claim] = virtual_size(layer.path, layer.format) / MB
        return found == sizes

    try:
        await here.until("the sizes", have, 60)
    except AssertionError:
        raise AssertionError(f"{found} instead of {sizes}") from None


async def restored(host: Machines) -> None:
    """A snapshot of the machine, restored to another one."""
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    head = {"apiVersion": "snapshot.kubevirt.io/v1beta1"}
    snapshot = {**head, "kind": "VirtualMachineSnapshot", "metadata": {"name": "s"}, "spec": {"source": source}}
    await host.send("POST", f"{SNAPSHOTS}/virtualmachinesnapshots", snapshot)
    target = {"target": {**source, "name": "copy"}, "virtualMachineSnapshotName": "s", "volumeRestorePolicy": "PrefixTargetName"}
    restore = {**head, "kind": "VirtualMachineRestore", "metadata": {"name": "r"}, "spec": target}
    await host.send("POST", f"{SNAPSHOTS}/virtualmachinerestores", restore)

    async def done() -> bool:
        found = await host.here.get(f"{SNAPSHOTS}/virtualmachinerestores/r")
        return bool((found.get("status") or {}).get("complete"))

    await host.here.until("the restore is complete", done, 60)


@pytest.mark.spec("stakater", 62)
@pytest.mark.spec("kubevirt", 128)
@run_by(asyncio.run)
async def test_disks_have_the_size_that_was_asked_for(work: Path) -> None:
    server = Server()
    with running(server):
        async with machines(work / "root") as host:
            here = host.here
            await here.data_volume("golden", {"source": {"http": {"url": server.put("/guest", GUEST)}}, "pvc": pvc("1Mi")})
            golden = {"source": {"pvc": {"name": "golden", "namespace": "default"}}}
            await here.post(f"{CDI}/datasources", {"metadata": {"name": "golden"}, "spec": golden})
            head = {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
            await host.send("POST", FRONTS, {**head, "spec": {"parameters": parameters("8Mi", "4Mi")}})
            await here.until("the disks are made", lambda: are_filled(here), 60)
            await until_sizes(here, **{"web-rootdisk": 8, "web-data": 4, "web-raw": 4})
            await host.send("PATCH", f"{FRONTS}/web", {"spec": {"parameters": parameters("35Mi", "9Mi")}})
            await until_sizes(here, **{"web-rootdisk": 35, "web-data": 9, "web-raw": 9})
            await host.until_told("web", "grew web-rootdisk to 35Mi")
            await restored(host)
            await until_sizes(here, **{"copy-rootdisk": 35, "copy-data": 9, "copy-raw": 9})
