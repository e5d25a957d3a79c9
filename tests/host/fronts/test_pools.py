"""Pools in the documents' flat form with real guests: which machines are made, restarted and left alone."""

import asyncio
import os
import shutil
import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from paddock.engine.host.programs import QEMU_NAMES
from tests.coroutines import played
from tests.host.fronts.conftest import guest
from tests.host.fronts.test_sources import CLAIMS, DISKS, SOURCES
from tests.host.runs.conftest import EVENTS, VMIS, VMS, Data, Host, Talk, perform, phase
from tests.kit.servers.imageserver import Server
from tests.scenario.fronts.kubermatic.making import LABELS, POOL, source, template
from tests.scenario.fronts.kubermatic.making import pool as flat

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]

POOLS = "/apis/kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"
NESTED = f"/apis/{POOL}/namespaces/default/virtualmachinepools"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


def pool(replicas: int, memory: str = "64Mi", **spec: Any) -> Data:
    """A pool whose machines are small and have a disk each."""
    document = flat(replicas, **spec)
    hardware = document["spec"]["virtualMachineTemplate"]["spec"]
    hardware["domain"]["memory"]["guest"] = memory
    hardware["domain"]["devices"]["autoattachGraphicsDevice"] = False
    hardware["terminationGracePeriodSeconds"] = 0
    hardware["dataVolumeTemplates"] = [template("disk", size="8Mi")]
    return document


async def begin(talk: Talk, origin: Server, document: Data, path: str = POOLS) -> dict[str, str]:
    """Make a pool with its image; the UIDs of the runs."""
    await talk.make(SOURCES, source(url=origin.put("/image", guest(1))))
    await talk.make(path, document)
    return await run(talk, document["spec"]["replicas"])


async def run(talk: Talk, count: int) -> dict[str, str]:
    """The UIDs of the runs, when so many guests run and no other."""

    def all_run(found: Data) -> bool:
        return [phase(each) for each in found["items"]] == ["Running"] * count and not any(
            each["metadata"].get("deletionTimestamp") for each in found["items"]
        )

    await talk.until(VMIS, all_run, f"{count} guests run")
    found = await uids(talk, VMIS)
    async with asyncio.timeout(30):
        while set(talk.host.qemus()) != set(found.values()):
            await asyncio.sleep(0.1)
    return found


async def uids(talk: Talk, path: str) -> dict[str, str]:
    """The UIDs of the objects of a kind, by name."""
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in (await talk.get(path))["items"]}


async def change(talk: Talk, template: Data, path: str = POOLS) -> None:
    """Change the template of the machines."""
    await talk.change(f"{path}/web", {"spec": {"virtualMachineTemplate": template}})


def numbered(*numbers: int, name: str = "web") -> set[str]:
    """Names of a pool's objects."""
    return {f"{name}-{number}" for number in numbers}


@pytest.mark.spec("kubermatic", 48, 51, 68)
@played
async def test_numbers(talk: Talk, /, origin: Server) -> None:
    first = await begin(talk, origin, pool(3))
    assert set(first) == set(await uids(talk, VMS)) == numbered(0, 1, 2)
    assert set(await uids(talk, DISKS)) == numbered(0, 1, 2, name="disk")
    for number in range(3):
        (volume,) = (await talk.get(f"{VMIS}/web-{number}"))["spec"]["volumes"]
        assert volume == {"name": "root", "dataVolume": {"name": f"disk-{number}"}}
    await talk.change(f"{POOLS}/web", {"spec": {"replicas": 5}})
    second = await run(talk, 5)
    assert set(second) == numbered(0, 1, 2, 3, 4) and first.items() <= second.items()
    machine = (await uids(talk, VMS))["web-1"]
    await talk.client.request("DELETE", f"{VMS}/web-1")
    await talk.until(VMS, lambda found: machine not in [each["metadata"]["uid"] for each in found["items"]], "it is gone")
    third = await run(talk, 5)
    assert set(third) == set(second) and set(third.values()) - set(second.values()) == {third["web-1"]}
    # One that is let go runs on, and another takes its place.
    await talk.change(f"{VMS}/web-0", {"metadata": {"ownerReferences": None}})
    fourth = await run(talk, 6)
    assert set(fourth) == numbered(0, 1, 2, 3, 4, 5) and third.items() <= fourth.items()
    await talk.client.request("DELETE", f"{POOLS}/web")
    left = await run(talk, 1)
    assert left == {"web-0": third["web-0"]}


@pytest.mark.spec("kubermatic", 58)
@pytest.mark.spec("kubevirt", 6, 99)
@played
async def test_another_template_restarts_one_guest_at_a_time(talk: Talk, /, origin: Server) -> None:
    before = await begin(talk, origin, pool(3, maxUnavailable=1))
    machines, fewest = await uids(talk, VMS), 3
    await talk.until(f"{POOLS}/web", lambda found: found.get("status", {}).get("readyReplicas") == 3, "all are ready")
    await change(talk, {"spec": {"domain": {"memory": {"guest": "96Mi"}, "cpu": {"cores": 2}}}})
    async with asyncio.timeout(120):
        while set(before.values()) & set((await uids(talk, VMIS)).values()) or len(talk.host.qemus()) < 3:
            fewest = min(fewest, len(talk.host.qemus()))
            await asyncio.sleep(0.02)
    after = await run(talk, 3)
    assert fewest == 2 and await uids(talk, VMS) == machines and set(after) == set(before)
    for name in machines:
        specs = [await talk.get(f"{VMS}/{name}"), {"spec": {"template": await talk.get(f"{VMIS}/{name}")}}]
        domains = [each["spec"]["template"]["spec"]["domain"] for each in specs]
        assert [(each["memory"]["guest"], each["cpu"]["cores"]) for each in domains] == [("96Mi", 2), ("96Mi", 2)]
        assert (await talk.get(f"{VMIS}/{name}"))["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] == "web-2"
    assert "web-2" in await uids(talk, REVISIONS)


@pytest.mark.spec("kubevirt", 99)
@pytest.mark.parametrize(
    ("way", "cores"),
    [
        pytest.param("opportunistic", 2, marks=pytest.mark.spec("kubermatic", 60)),
        pytest.param("unmanaged", 1, marks=pytest.mark.spec("kubermatic", 61)),
    ],
)
@played
async def test_updates_that_leave_guests_alone(talk: Talk, /, origin: Server, way: str, cores: int) -> None:
    before = await begin(talk, origin, pool(2, updateStrategy={way: {}}))
    qemus = talk.host.qemus()
    await change(talk, {"spec": {"domain": {"cpu": {"cores": 2}}}})
    await talk.until(REVISIONS, lambda found: "web-2" in [each["metadata"]["name"] for each in found["items"]], "it is seen")
    await asyncio.sleep(5)
    assert await run(talk, 2) == before and talk.host.qemus() == qemus
    assert (await talk.get(f"{VMS}/web-0"))["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == cores


@pytest.mark.spec("kubermatic", 62)
@pytest.mark.spec("kubevirt", 99)
@played
async def test_other_disks_make_other_machines_and_that_is_told(talk: Talk, /, origin: Server) -> None:
    guests = await begin(talk, origin, pool(2))
    before = {path: await uids(talk, path) for path in (VMS, DISKS, CLAIMS)}
    await change(talk, {"spec": {"dataVolumeTemplates": [template("disk", size="16Mi")]}})
    async with asyncio.timeout(120):
        while set(guests.values()) & set((await uids(talk, VMIS)).values()):
            await asyncio.sleep(0.1)
    await run(talk, 2)
    for path, old in before.items():
        new = await uids(talk, path)
        assert set(new) == set(old) and not set(new.values()) & set(old.values()), path
    assert (await talk.get(f"{CLAIMS}/disk-1"))["status"]["capacity"]["storage"] == "16Mi"
    told = [each for each in (await talk.get(EVENTS))["items"] if each["reason"] == "DataLoss"]
    assert told and all(each["type"] == "Warning" and "disk" in each["message"] for each in told)


@pytest.mark.spec("kubermatic", 63)
@played
async def test_annotations_alone_restart_nothing(talk: Talk, /, origin: Server) -> None:
    nested = pool(2)
    hardware = nested["spec"]["virtualMachineTemplate"]["spec"]
    instance = {name: hardware.pop(name) for name in ("domain", "volumes", "terminationGracePeriodSeconds")}
    hardware["template"] = {"metadata": {"labels": LABELS}, "spec": instance}
    nested["apiVersion"] = POOL
    before = await begin(talk, origin, nested, NESTED)
    await change(talk, {"metadata": {"annotations": {"team": "blue"}}}, NESTED)
    await talk.until(f"{VMS}/web-1", lambda found: found["metadata"]["annotations"].get("team") == "blue", "it has it")
    await asyncio.sleep(3)
    assert await run(talk, 2) == before


@pytest.mark.spec("kubermatic", 69)
@pytest.mark.parametrize(("policy", "left"), [("Background", 0), ("Orphan", 2)])
@played
async def test_a_pool_takes_its_machines_along_unless_they_are_to_stay(talk: Talk, /, origin: Server, policy: str, left: int) -> None:
    before = await begin(talk, origin, pool(2))
    await talk.client.request("DELETE", f"{POOLS}/web", (("propagationPolicy", policy),))
    await talk.until(f"{POOLS}/web", lambda found: not found, "the pool is gone")
    if left:
        await asyncio.sleep(3)
    after = await run(talk, left)
    assert after == (before if left else {})
    await talk.until(DISKS, lambda found: len(found["items"]) == left, "so for the disks")


_SOMETIMES = """#!/bin/sh
case "$*" in *web-1,debug-threads*) [ ! -e {refused} ] || exit 1;; esac
exec {qemu} "$@"
"""


@pytest.mark.spec("kubermatic", 67)
def test_a_machine_whose_qemu_fails_three_times_is_replaced(host: Host, origin: Server) -> None:
    async def script(talk: Talk) -> None:
        before = await begin(talk, origin, pool(2, autohealing={"startUpFailureThreshold": 3}))
        machines = await uids(talk, VMS)
        refused.touch()
        (pid,) = talk.host.qemus()[before["web-1"]]
        os.kill(pid, signal.SIGKILL)
        await talk.until(VMS, lambda found: machines["web-1"] not in [each["metadata"]["uid"] for each in found["items"]], "it is replaced")
        refused.unlink()

        def failed(events: Data) -> list[str]:
            return [each["involvedObject"]["name"] for each in events["items"] if "never-started" in each["message"]]

        # An event is written beside the work that it tells of, and may come after it.
        told = await talk.until(EVENTS, lambda events: len(failed(events)) == 3, "every failure is told")
        assert failed(told) == ["web-1"] * 3
        after = await run(talk, 2)
        assert after["web-0"] == before["web-0"] and (await uids(talk, VMS))["web-0"] == machines["web-0"]

    # Each machine has a user of its own, which has to read it.
    with TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        refused = Path(directory) / "refused"
        for name in QEMU_NAMES.values():
            if qemu := shutil.which(name):
                program = Path(directory) / name
                program.write_text(_SOMETIMES.format(refused=refused, qemu=qemu))
                program.chmod(0o755)
        host.environment = {"PATH": f"{directory}:{os.environ['PATH']}"}
        perform(host, script)
