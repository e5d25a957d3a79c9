"""VirtualMachineBackups of a whole server, with guests of 512 bytes: what is in the claim is the disk of its moment."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.backups import Backups as EngineBackups
from paddock.engine.machine.machine import QemuMachine
from paddock.kubernetes.client.errors import Invalid
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.snapshots.targets import TRACKERS as TRACKERS_TARGET
from tests.coroutines import run_by
from tests.host.machines import bootsector
from tests.host.storage.conftest import CORE, MB, Data, pvc
from tests.host.storage.machines import VMIS, VMS, Machines, machines
from tests.kit.servers.imageserver import Server, running

pytestmark = pytest.mark.needs("qemu")

GUEST = bootsector.marker().ljust(MB, b"\0")
CLAIMS = f"{CORE}/persistentvolumeclaims"
BACKUPS = "/apis/backup.kubevirt.io/v1alpha1/namespaces/default/virtualmachinebackups"
TRACKERS = "/apis/backup.kubevirt.io/v1alpha1/namespaces/default/virtualmachinebackuptrackers"
_KUBEVIRTS = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts"
SELECTED = {"changedBlockTracking": "true"}


class Backups:
    """A machine of a server, and its backups."""

    def __init__(self, host: Machines) -> None:
        self.host = host
        self.url = ""

    async def configure(self, *, gate: bool = True) -> None:
        """Turn backups on, for machines with a label."""
        developer = {"featureGates": ["IncrementalBackup"] if gate else []}
        selectors = {"virtualMachineLabelSelector": {"matchLabels": SELECTED}}
        spec = {"configuration": {"developerConfiguration": developer, "changedBlockTrackingLabelSelectors": selectors}}
        await self.host.send("PATCH", f"{_KUBEVIRTS}/kubevirt", {"spec": spec})

    async def machine(self, url: str) -> QemuMachine:
        """A machine with a disk that it writes, and a blank one."""
        self.url = url
        await self.host.here.data_volume("disk", {"source": {"http": {"url": url}}, "pvc": pvc("8Mi")})
        await self.host.here.data_volume("blank", {"source": {"blank": {}}, "pvc": pvc("16Mi")})
        for name in ("target", "target2"):
            await self.host.here.post(CLAIMS, {"metadata": {"name": name}, "spec": pvc("64Mi")})
        await self.host.make("web", [{"name": each, "dataVolume": {"name": each}} for each in ("disk", "blank")], "Halted")
        grace = {"template": {"spec": {"terminationGracePeriodSeconds": 20}}}
        await self.host.send("PATCH", f"{VMS}/web", {"metadata": {"labels": SELECTED}, "spec": grace})
        await self.host.set_strategy("web", "Always")
        found = await self.host.running("web")
        await self.until_state("Enabled")
        return found

    async def until_state(self, state: str) -> None:
        async def has() -> bool:
            found = [(await self.host.here.get(f"{place}/web"))["status"] for place in (VMS, VMIS)]
            return all((each.get("changedBlockTracking") or {}).get("state") == state for each in found)

        await self.host.here.until(f"tracking is {state}", has, 30)

    async def tracker(self) -> Data:
        source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
        return await self.send("VirtualMachineBackupTracker", TRACKERS, "nightly", {"source": source})

    async def send(self, kind: str, path: str, name: str, spec: Data) -> Data:
        body = {"apiVersion": "backup.kubevirt.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return await self.host.send("POST", path, body)

    async def begin(self, name: str, *, tracked: bool = True, **more: object) -> None:
        source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
        if tracked:
            source = {"apiGroup": "backup.kubevirt.io", "kind": "VirtualMachineBackupTracker", "name": "nightly"}
        await self.send("VirtualMachineBackup", BACKUPS, name, {"source": source, "pvcName": "target", **more})

    async def done(self, name: str, condition: str = "Complete") -> Data:
        found: Data = {}

        async def over() -> bool:
            found.clear()
            found.update((await self.host.here.get(f"{BACKUPS}/{name}")).get("status") or {})
            return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in found.get("conditions") or ())

        await self.host.here.until(f"backup {name} is over: {found}", over, 60)
        assert conditions(found)[condition]["status"] == "True", found
        return found

    async def take(self, name: str, **more: Any) -> Data:
        await self.begin(name, **more)
        return await self.done(name)

    async def files(self, claim: str = "target") -> dict[str, dict[str, Path]]:
        """The files in a claim: backup -> volume -> file."""
        uid = (await self.host.here.get(f"{CLAIMS}/{claim}"))["metadata"]["uid"]
        volume = self.host.engine.volumes.get(uid)
        assert volume is not None and volume.files is not None
        assert not list(volume.directory.glob("backup-*")), "nothing is left beside it"
        found = {}
        for note in sorted((volume.files / "web").glob("*/backup.json")):
            kept = json.loads(note.read_text())
            assert kept["machine"] == "web"
            found[note.parent.name] = {each["name"]: note.parent / each["file"] for each in kept["disks"]}
        return found

    async def checkpoint(self) -> str:
        status = (await self.host.here.get(f"{TRACKERS}/nightly")).get("status") or {}
        return str((status.get("latestCheckpoint") or {}).get("name") or "")


def conditions(status: Data) -> dict[str, Data]:
    return {each["type"]: each for each in status.get("conditions") or ()}


async def write(machine: QemuMachine, volume: str, line: str) -> None:
    where = f"-d /machine/peripheral/ua-{volume}/virtio-backend"
    said = await machine._owner.execute("human-monitor-command", {"command-line": f'qemu-io {where} "{line}"'})
    assert "rror" not in str(said), said


async def frozen(machine: QemuMachine, volume: str) -> str:
    """The SHA-256 of what a disk holds now."""
    await write(machine, volume, "flush")
    layer = next(disk.layer for disk in machine.config.disks if disk.name == volume)
    assert layer is not None
    return content(layer.path, layer.format)


def content(path: Path, form: str = "qcow2") -> str:
    out = path.with_name("content.raw")
    subprocess.run(["qemu-img", "convert", "-U", "-f", form, "-O", "raw", str(path), str(out)], check=True)
    with out.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    out.unlink()
    return found


def over(below: Path, path: Path) -> None:
    subprocess.run(["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", str(below), str(path)], check=True)


@asynccontextmanager
async def backups(work: Path) -> AsyncIterator[tuple[Backups, QemuMachine]]:
    server = Server()
    url = server.put("/guest", GUEST)
    work.chmod(0o711)
    with running(server):
        async with machines(work / "root") as host:
            made = Backups(host)
            await made.configure()
            machine = await made.machine(url)
            await made.tracker()
            yield made, machine


@pytest.mark.spec("kubevirt", 299)
@run_by(asyncio.run)
async def test_a_chain_of_backups_in_a_claim(work: Path) -> None:
    async with backups(work) as (made, machine):
        wanted: dict[str, list[str]] = {"disk": [], "blank": []}
        types = []
        for number, name in enumerate(("first", "second", "third", "forced")):
            for at in range(number * 7, number * 7 + 9):
                await write(machine, "blank", f"write -P {number + 1} {at * 300}k 5k")
            await write(machine, "disk", f"write -P {number + 3} {4 + number}M 64k")
            for volume, known in wanted.items():
                known.append(await frozen(machine, volume))
            status = await made.take(name, **({"forceFullBackup": True} if name == "forced" else {}))
            types.append(status["type"])
            assert {each["volumeName"] for each in status["includedVolumes"]} == {"disk", "blank"}
            assert status["checkpointName"] == await made.checkpoint()
            found = conditions(status)
            assert found["Progressing"]["status"] == "False" and found["Quiesced"]["reason"] == "QuiesceFailed"
            assert found["Complete"]["reason"] == "CompletedWithWarning" and "no agent" in found["Complete"]["message"]
            assert (await machine.checkpoints())["blank"] == {status["checkpointName"]}
        assert types == ["Full", "Incremental", "Incremental", "Full"]
        files = await made.files()
        for volume, known in wanted.items():
            paths = [next(each[volume] for name, each in files.items() if name.startswith(f"{number}-"))
                     for number in ("first", "second", "third", "forced")]  # fmt: skip
            over(paths[0], paths[1])
            over(paths[1], paths[2])
            assert [content(each) for each in paths] == known
            assert os.stat(paths[1]).st_size < os.stat(paths[0]).st_size or volume == "blank"
        status = (await made.host.here.get(f"{VMIS}/web"))["status"]["changedBlockTracking"]
        assert status == {"state": "Enabled"} and machine.backup is None


@pytest.mark.spec("kubevirt", 300)
@run_by(asyncio.run)
async def test_an_increment_after_a_restart_and_none_after_a_kill(work: Path) -> None:
    async with backups(work) as (made, machine):
        await made.take("first", skipQuiesce=True)
        await write(machine, "blank", "write -P 9 1M 64k")
        machine = await made.host.again("web")
        await made.until_state("Enabled")
        await write(machine, "blank", "write -P 7 2M 64k")
        now = await frozen(machine, "blank")
        status = await made.take("second", skipQuiesce=True)
        assert status["type"] == "Incremental" and conditions(status)["Complete"]["reason"] == "Completed"
        assert conditions(status)["Quiesced"]["reason"] == "QuiesceSkipped"
        files = await made.files()
        first, second = (next(each["blank"] for name, each in files.items() if name.startswith(one)) for one in ("first", "second"))
        over(first, second)
        assert content(second) == now
        uid = (await made.host.instance("web"))["metadata"]["uid"]
        os.kill(machine.observed.pid, signal.SIGKILL)

        async def restarted() -> bool:
            return (await made.host.instance("web")).get("metadata", {}).get("uid") not in (None, uid)

        await made.host.here.until("it is started anew", restarted, 60)
        machine = await made.host.running("web")
        await made.until_state("Enabled")
        now = await frozen(machine, "blank")
        status = await made.take("third", skipQuiesce=True)
        found = conditions(status)["Complete"]
        assert (
            status["type"] == "Full" and found["reason"] == "CompletedWithWarning" and "not all changes of blank, disk" in found["message"]
        )
        await made.host.until_told("nightly", "not all changes of")
        third = next(each["blank"] for name, each in (await made.files()).items() if name.startswith("third"))
        assert content(third) == now


@pytest.mark.spec("kubevirt", 301)
@run_by(asyncio.run)
async def test_backups_that_are_refused_wait_or_fail(work: Path) -> None:
    async with backups(work) as (made, _):
        with pytest.raises(Invalid, match="tokenSecretRef"):
            await made.begin("pull", mode="Pull")
        with pytest.raises(Invalid, match="no backups to pull"):
            await made.begin("pull", mode="Pull", tokenSecretRef="x")
        with pytest.raises(Invalid, match="pvcName"):
            await made.send("VirtualMachineBackup", BACKUPS, "none", {"source": {"kind": "VirtualMachine", "name": "web"}})
        await made.begin("waits", pvcName="later")

        async def says(name: str, part: str) -> bool:
            status = (await made.host.here.get(f"{BACKUPS}/{name}")).get("status") or {}
            return part in str(conditions(status).get("Progressing", {}).get("message"))

        await made.host.here.until("it waits for its claim", lambda: says("waits", "later doesnt exist"), 20)
        with pytest.raises(Invalid, match='"waits" in progress for source'):
            await made.begin("other")
        await made.host.send("PATCH", f"{BACKUPS}/waits", {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(Invalid, match="immutable"):
            await made.host.send("PATCH", f"{BACKUPS}/waits", {"spec": {"pvcName": "target"}})
        await made.host.here.post(CLAIMS, {"metadata": {"name": "later"}, "spec": pvc("64Mi")})
        assert (await made.done("waits"))["type"] == "Full"
        # A claim with a disk is none for backups.
        await made.begin("busy", pvcName="blank")
        await made.host.here.until("it waits for the disk", lambda: says("busy", "in use"), 20)
        await made.host.here.client.request("DELETE", f"{BACKUPS}/busy")
        await made.host.here.data_volume("full", {"source": {"http": {"url": made.url}}, "pvc": pvc("8Mi")})
        await made.host.here.until_phase("full", "Succeeded")
        await made.begin("wrong", pvcName="full")
        assert "it holds a disk" in conditions(await made.done("wrong", "Failed"))["Failed"]["message"]
        await made.configure(gate=False)
        with pytest.raises(Invalid, match="IncrementalBackup feature gate not enabled"):
            await made.begin("off")


@pytest.mark.spec("kubevirt", 298)
@run_by(asyncio.run)
async def test_a_backup_that_is_deleted_leaves_nothing_and_costs_nothing(work: Path) -> None:
    async with backups(work) as (made, machine):
        await made.take("first", skipQuiesce=True)
        before = await made.checkpoint()
        await write(machine, "blank", "write -P 9 1M 64k")
        parts = machine._parts.backups
        hold = parts._check

        async def never() -> None:
            return

        parts._check = never  # type: ignore[method-assign]
        await made.begin("second", skipQuiesce=True)

        async def begun() -> bool:
            return machine.backup is not None

        await made.host.here.until("it has begun", begun, 30)
        parts._check = hold  # type: ignore[method-assign]
        await made.host.here.client.request("DELETE", f"{BACKUPS}/second")

        async def gone() -> bool:
            found = (await made.host.here.get(BACKUPS))["items"]
            return [each["metadata"]["name"] for each in found] == ["first"] and machine.backup is None

        await made.host.here.until("it is gone", gone, 30)
        assert len(await made.files()) == 1 and await made.checkpoint() == before
        now = await frozen(machine, "blank")
        assert (await made.take("third", skipQuiesce=True))["type"] == "Incremental"
        files = await made.files()
        first, third = (next(each["blank"] for name, each in files.items() if name.startswith(one)) for one in ("first", "third"))
        over(first, third)
        assert content(third) == now


@pytest.mark.spec("kubevirt", 298)
@pytest.mark.parametrize("place", ["begun", "published", "remembered", "retained", "completed"])
@run_by(asyncio.run)
async def test_a_step_that_fails_is_repeated_and_nothing_is_lost(work: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a Paddock that died just after a step would find: the step is done, and nobody noted it."""
    async with backups(work) as (made, machine):
        await made.take("first", skipQuiesce=True)
        await write(machine, "blank", "write -P 9 1M 64k")
        now = await frozen(machine, "blank")
        owner, name = {
            "begun": (EngineBackups, "begin"),
            "published": (EngineBackups, "publish"),
            "remembered": (StatusWriter, "write_surely"),
            "retained": (QemuMachine, "retain_checkpoints"),
            "completed": (QemuMachine, "cancel_backup"),
        }[place]
        real, failed = getattr(owner, name), list[str]()

        async def dies(self: Any, *words: Any, **more: Any) -> Any:
            answer = await real(self, *words, **more)
            if not failed and (name != "write_surely" or self._target is TRACKERS_TARGET):
                failed.append(name)
                raise OSError("it dies here")
            return answer

        monkeypatch.setattr(owner, name, dies)
        status = await made.take("second", skipQuiesce=True)
        assert failed and status["type"] == "Incremental" and await made.checkpoint() == status["checkpointName"]
        await write(machine, "blank", "write -P 7 3M 64k")
        later = await frozen(machine, "blank")
        assert (await made.take("third", skipQuiesce=True))["type"] == "Incremental"
        files = await made.files()
        first, second, third = (
            next(each["blank"] for name, each in files.items() if name.startswith(one)) for one in ("first", "second", "third")
        )
        over(first, second)
        over(second, third)
        assert [content(second), content(third)] == [now, later]
        assert len((await machine.checkpoints())["blank"]) == 1
