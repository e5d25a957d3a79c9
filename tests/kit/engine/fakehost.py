"""A whole host in virtual time: a server in memory, all its controllers, an engine without QEMU.

async with FakeHost(tmp_path) as host:      # inside tests/virtualtime.run
    await host.apply("vm.yaml text or dict")
    machine = await host.running("web")     # the engine's machine, to be crashed, powered off ...
"""

import asyncio
import importlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml
from msgspec.structs import replace

from paddock.app.controllers.control import EmbeddedControllers
from paddock.app.controllers.environment import ControllerEnvironment
from paddock.app.options.settings import MachineSettings
from paddock.app.subresources.environment import DatagramFlow, SubresourceEnvironment
from paddock.app.subresources.subresources import SubresourceApi
from paddock.engine import memorystates
from paddock.engine.backups import Backups
from paddock.engine.consolelogs import ConsoleLogs
from paddock.engine.engine import Engine
from paddock.engine.host.capacity import Room
from paddock.engine.host.facts import HostFacts
from paddock.engine.host.kvm import Kvm
from paddock.engine.host.qemu import Qemu
from paddock.engine.machine.config import DiskLayer
from paddock.engine.machine.machines import Machines as EngineMachines
from paddock.engine.machine.users import UserRange
from paddock.engine.memorystates import MemoryStates
from paddock.engine.networks.errors import GuestUnreachable
from paddock.engine.snapshots import Snapshots
from paddock.engine.states import States
from paddock.engine.storage.volume import StoredVolume, busy
from paddock.engine.storage.volumes import Volumes as EngineVolumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.controllers.installation import controller as installation
from paddock.kubevirt.controllers.migration.servers import MigrationDoor
from paddock.kubevirt.plan.machine import commoninstancetypes
from paddock.server.housekeeping.background import BackgroundControllers
from paddock.server.resources.kubevirtsubresources import GROUP as VERBS
from paddock.server.store.contract import Store
from tests import virtualtime
from tests.kit.engine.enginefakes import FakeMachine, FakeMachines
from tests.kit.engine.enginefakes_networks import FakeNetworks
from tests.kit.engine.enginefakes_storage import FakeImages, FakeVolumes
from tests.kit.engine.migrationdoors import MemoryNetwork
from tests.kit.servers.apiharness import Harness, Reply
from tests.kit.servers.interruption import Interruption

GIB = 1 << 30
Data = dict[str, Any]
PLURALS = {
    "VirtualMachine": "virtualmachines",
    "VirtualMachineInstance": "virtualmachineinstances",
    "VirtualMachinePool": "virtualmachinepools",
    "VirtualMachineInstanceMigration": "virtualmachineinstancemigrations",
    "VirtualMachineInstanceReplicaSet": "virtualmachineinstancereplicasets",
    "VirtualMachineInstancetype": "virtualmachineinstancetypes",
    "VirtualMachinePreference": "virtualmachinepreferences",
    "ControllerRevision": "controllerrevisions",
    "VirtualMachineSnapshot": "virtualmachinesnapshots",
    "VirtualMachineRestore": "virtualmachinerestores",
    "VirtualMachineClone": "virtualmachineclones",
    "VirtualMachineExport": "virtualmachineexports",
    "VirtualMachineBackup": "virtualmachinebackups",
    "VirtualMachineBackupTracker": "virtualmachinebackuptrackers",
    "DataVolume": "datavolumes",
    "DataSource": "datasources",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "ConfigMap": "configmaps",
    "Event": "events",
    "VolumeSnapshot": "volumesnapshots",
    "VirtualMachineSnapshotContent": "virtualmachinesnapshotcontents",
}


class Clock(virtualtime.Clock):
    """No two looks at it are the same: events are named after their time."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def seconds(self) -> float:
        self._looks += 1
        return super().seconds() + self._looks * 1e-5


async def _load(module: str) -> None:
    """In virtual time, nothing waits for a thread."""
    importlib.import_module(module)


class UsedVolume(StoredVolume, frozen=True):
    """A volume that a machine may have open: whether one has is looked up when somebody asks."""

    users: Callable[[Path], bool] = lambda directory: False

    @property
    def busy(self) -> bool:
        return self.users(self.directory)


class Volumes(FakeVolumes):
    """Volumes without files, and scratch files that exist."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.dropped: list[str] = []
        self.users: Callable[[Path], bool] = lambda directory: False

    def get(self, id: str) -> StoredVolume | None:
        found = super().get(id)
        return UsedVolume(**msgspec.structs.asdict(found), users=self.users) if found is not None else None

    def _at_rest(self, id: str) -> None:
        found = self.volumes.get(id)
        if found is not None and self.users(found.directory):
            raise busy(id)
        super()._at_rest(id)

    def scratch(self, machine: str, name: str) -> Path:
        (self.root / machine).mkdir(exist_ok=True)
        return self.root / machine / f"{name}.img"

    def scratch_owners(self) -> set[str]:
        return {each.name for each in self.root.iterdir()}

    def ids(self) -> set[str]:
        return set(self.volumes)

    def claim(self, id: str) -> Path:
        """The directory of a volume of files."""
        return self.root.parent / "claims" / id

    async def as_files(self, id: str) -> Path:
        self.claim(id).mkdir(parents=True, exist_ok=True)
        self.volumes[id] = replace(self._there(id), files=self.claim(id))
        return self.claim(id)

    async def drop_scratch(self, machine: str) -> None:
        self.dropped.append(machine)
        for file in (self.root / machine).glob("*"):
            file.unlink()
        if (self.root / machine).exists():
            (self.root / machine).rmdir()

    async def overlay(self, path: Path, below: DiskLayer, size: int) -> DiskLayer:
        return DiskLayer(path, "qcow2", below)

    async def blank(self, path: Path, size: int) -> DiskLayer:
        return DiskLayer(path, "raw")


class Networks(FakeNetworks):
    """Networks that tell who has addresses."""

    def owners(self) -> set[str]:
        return {key[0] for key in self.book.entries}

    async def datagrams(self, owner: str, name: str, port: int) -> DatagramFlow:
        raise GuestUnreachable(f"cannot reach port {port} of {name}", why="guests in memory take no datagrams")


class Memories(MemoryStates):
    """Memories that are packed without a thread."""

    async def pack(self, id: str) -> None:
        memorystates._pack(self.root / id)


class FakeEngine:
    """An engine in memory, on a host with so much memory."""

    def __init__(self, root: Path, memory: int = 64 * GIB) -> None:
        qemu = Qemu("amd64", Path("/usr/bin/qemu"), (7, 2, 0), {"q35": "pc-q35-7.2"})
        self.facts = HostFacts("amd64", {"amd64": qemu}, {}, Kvm("absent", "there is none"), (0, 1), memory, is_root=False)
        self.settings = type("Settings", (), {"host_paths": (), "shares": (), "private": (), "pools": {}})
        self.room = Room.of(memory)
        self.machines = FakeMachines(Clock())
        self.networks = Networks()
        self.volumes = Volumes(root / "scratch")
        self.images = FakeImages()
        self.states = States(root / "states")
        self.consoles = ConsoleLogs(root / "consoles")
        self.users = UserRange()
        self.volumes.users = self._is_used
        self.memories = Memories(root / "memory")
        self.memories.prepare()
        self.snapshots = Snapshots(cast(EngineMachines, self.machines), cast(EngineVolumes, self.volumes), self.memories)
        self.backups = Backups(cast(EngineVolumes, self.volumes))
        (root / "scratch").mkdir(exist_ok=True)
        self.states.prepare()

    def _is_used(self, directory: Path) -> bool:
        """Return whether a running machine has a disk there."""
        live = (each for each in self.machines if each.observed.holds_disks)
        return any(disk.layer is not None and disk.layer.path.parent == directory for each in live for disk in each.config.disks)

    async def start(self) -> None:
        """Nothing to look at."""

    async def stop(self) -> None:
        """Nothing to let go of."""


class FakeHost:
    """One host.

    Its users have deleted the common instancetypes and preferences, which are 119 objects, except where a test wants them.
    """

    def __init__(self, root: Path, settings: AdmissionSettings | None = None, *, common: bool = False, store: Store | None = None) -> None:
        # how other hosts reach this one; "": not at all
        self.network, self.name = MemoryNetwork(), ""
        self.api = Harness(store=store, settings=settings)
        self.engine = FakeEngine(root)
        self._root = root
        self._common = common
        self._carried: Interruption | None = None

    def interrupted(self) -> Interruption:
        """Put an interruption between the server and the controllers that begin after this."""
        self._carried = Interruption.of(self.api)
        return self._carried

    async def __aenter__(self) -> "FakeHost":
        await self.api.__aenter__()
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "host", "labels": {"kubernetes.io/hostname": "host"}}}
        await self.api.post("/api/v1/nodes", node)
        if not self._common:
            await self._mark_common_as_made()
        self.house = BackgroundControllers(self.api.parts, "authority")
        self.house.collector.start()
        self.house.claims.start()
        self.subresources = SubresourceApi(
            SubresourceEnvironment(self.api.parts, self.engine.machines, self.engine.networks, self.engine.consoles)
        )
        self.subresources.serve(self.api.api)
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()
        await self.subresources.close()
        await self.house.stop()
        await self.api.__aexit__(*_)

    async def _mark_common_as_made(self) -> None:
        """Make the KubeVirt object as it is after the controller has made what is common, so that it makes nothing."""
        marks = {installation.EDITION: commoninstancetypes.VERSION}
        metadata = {"name": installation.KEY.name, "annotations": marks}
        await self.api.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": installation.KEY.namespace}}
        )
        await self.api.post(
            f"/apis/kubevirt.io/v1/namespaces/{installation.KEY.namespace}/kubevirts",
            {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": metadata, "spec": {}},
        )

    async def begin(self) -> None:
        """Start the controllers."""
        machinery = Machinery(clock=Clock(), chance=random.Random(1))
        around = ControllerEnvironment(self._root, MachineSettings(), "10.96.0.0/12", "host", b"authority", lambda: "https://here:6443")
        client = self.api.client() if self._carried is None else Client(self._carried)
        self.control = EmbeddedControllers(cast(Engine, self.engine), client, machinery, around, self.api.parts.store, _load)
        self.control.open_door = self._door  # type: ignore[method-assign]  # no sockets in virtual time
        await self.control.start()
        await asyncio.sleep(5)

    async def _door(self) -> MigrationDoor | None:
        return self.network.door(self.name) if self.name else None

    async def end(self) -> None:
        """Stop them, as the end of the process would."""
        await self.control.stop()

    async def again(self) -> None:
        """The process ends and is started again; machines stay."""
        await self.end()
        await self.begin()

    @staticmethod
    def place(kind: str, api_version: str, namespace: str = "default", name: str = "") -> str:
        """Return the path of an object."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        return f"{root}/namespaces/{namespace}/{PLURALS[kind]}" + (f"/{name}" if name else "")

    async def make(self, *documents: Data | str) -> None:
        """Make objects; the test fails when one is refused."""
        for each in documents:
            for document in yaml.safe_load_all(each) if isinstance(each, str) else (each,):
                namespace = document["metadata"].get("namespace", "default")
                reply = await self.api.post(self.place(document["kind"], document["apiVersion"], namespace), document)
                assert reply.status == 201, reply.data

    async def get(self, kind: str, api_version: str, name: str, namespace: str = "default") -> Data:
        """An object; empty when it is not there."""
        reply = await self.api.current(self.place(kind, api_version, namespace, name))
        return dict(reply.data) if reply.status == 200 else {}

    async def vm(self, name: str = "web") -> Data:
        """A machine."""
        return await self.get("VirtualMachine", "kubevirt.io/v1", name)

    async def vmi(self, name: str = "web") -> Data:
        """A running machine."""
        return await self.get("VirtualMachineInstance", "kubevirt.io/v1", name)

    async def status(self, name: str = "web") -> str:
        """A machine's state in one word."""
        return str((await self.vm(name)).get("status", {}).get("printableStatus", ""))

    async def running(self, name: str = "web", seconds: float = 10.0) -> FakeMachine:
        """The engine's machine, when it runs."""
        await asyncio.sleep(seconds)
        found = await self.vmi(name)
        assert found.get("status", {}).get("phase") == "Running", found.get("status")
        machine = self.engine.machines.get(found["metadata"]["uid"])
        assert machine is not None
        return machine

    async def change(self, name: str, document: Data) -> None:
        """A merge patch of a machine."""
        reply = await self.api.merge(self.place("VirtualMachine", "kubevirt.io/v1", name=name), document)
        assert reply.status == 200, reply.data

    async def delete(self, kind: str, api_version: str, name: str, options: str = "") -> None:
        """Delete an object."""
        reply = await self.api.delete(self.place(kind, api_version, name=name) + options)
        assert reply.status in (200, 202), reply.data

    async def verb(self, name: str, verb: str, body: Data | None = None, kind: str = "VirtualMachine") -> Reply:
        """Ask something of a machine."""
        return await self.api.put(f"/apis/{VERBS}/v1/namespaces/default/{PLURALS[kind]}/{name}/{verb}", body)

    async def events(self, name: str = "web", kind: str = "") -> list[str]:
        """Reasons of the events about it, in order."""
        await asyncio.sleep(1)
        found = (await self.api.get("/api/v1/namespaces/default/events")).data["items"]
        return [each["reason"] for each in found if each["involvedObject"]["name"] == name and kind in ("", each["involvedObject"]["kind"])]


def machine(name: str = "web", strategy: str = "Always", volumes: list[Data] | None = None, **more: Any) -> Data:
    """A machine with a disk for each volume; `more` goes into its template's spec, `templates` into the machine's."""
    disks = [{"name": each["name"], "disk": {"bus": "virtio"}} for each in volumes or ()]
    spec: Data = {"runStrategy": strategy}
    if templates := more.pop("templates", None):
        spec["dataVolumeTemplates"] = templates
    domain = {"memory": {"guest": "128Mi"}, "devices": {"disks": disks}, **more.pop("domain", {})}
    spec["template"] = {"spec": {"domain": domain, "volumes": volumes, **more}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}
