"""Faults of VirtRigaud's sets, snapshots, clones, migrations and policies, injected into their controllers with the fake driver."""

import asyncio
from typing import Any

from paddock.base import reasons
from paddock.contract.errors import ErrorKind
from paddock_drivers.fake.settings import FakeDatastore, FakeHost, FakeSettings
from tests.scenario.why.provider_faults import LAB, ProviderFault, Rigged, both, deleted, failing, fault, merged, world
from tests.unit.dialects.virtrigaud.controllers.cloning import vmclone
from tests.unit.dialects.virtrigaud.controllers.moving import migration
from tests.unit.dialects.virtrigaud.controllers.snapshots import snapshot
from tests.unit.dialects.virtrigaud.controllers.test_placements import APART, placed, policy
from tests.unit.dialects.virtrigaud.controllers.test_sets import vmset
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, machine, provider

Data = dict[str, Any]
SNAPSHOT, CLONE, MIGRATION, SET = (
    "vmsnapshot.infra.virtrigaud.io/s",
    "vmclone.infra.virtrigaud.io/copy",
    "vmmigration/move",
    "vmset/web",
)
_S, _C, _M = "VirtRigaud VMSnapshot s", "VirtRigaud VMClone copy", "VirtRigaud VMMigration move"
_INTERNAL, _QUOTA, _AWAY = ErrorKind.INTERNAL, ErrorKind.QUOTA_EXCEEDED, ErrorKind.UNAVAILABLE
HOSTS = (FakeHost(id="h1"),)
STORES = (FakeDatastore(name="fast", pod="gold", maintenance=True),)


def running(*bodies: Data, seconds: float = 120.0, **before: Any) -> Rigged:
    """A machine that runs, and then further objects."""

    async def inject(life: Rigaud) -> None:
        await world(machine(**before), seconds=1)(life)
        await life.ready()
        await life.make(*bodies)
        await asyncio.sleep(seconds)

    return inject


def beside(*bodies: Data, seconds: float = 120.0) -> Rigged:
    """The ordinary world without a machine, and further objects."""

    async def inject(life: Rigaud) -> None:
        await world(without="VirtualMachine", seconds=1)(life)
        await life.make(*bodies)
        await asyncio.sleep(seconds)

    return inject


def then_all(*steps: Rigged, seconds: float = 120.0) -> Rigged:
    """One after the other, and then a while."""

    async def inject(life: Rigaud) -> None:
        await both(*steps)(life)
        await asyncio.sleep(seconds)

    return inject


def snapshots(name: str, cause: str, of: str = _S, state: str = "fails", *, fake: FakeSettings | None = None, **spec: Any) -> ProviderFault:
    return ProviderFault(name, running(snapshot(**spec)), cause, of, SNAPSHOT, state, fake or FakeSettings())


def clones(name: str, cause: str, of: str = _C, *, fake: FakeSettings | None = None, **members: Any) -> ProviderFault:
    return ProviderFault(name, running(vmclone(**members)), cause, of, CLONE, fake=fake or FakeSettings())


def moves(name: str, cause: str, of: str = _M, state: str = "fails", *, fake: FakeSettings | None = None, **members: Any) -> ProviderFault:
    return ProviderFault(name, running(provider("other"), migration(**members)), cause, of, MIGRATION, state, fake or FakeSettings())


RIGAUD_OPERATION_FAULTS: tuple[ProviderFault, ...] = (
    # sets
    ProviderFault(
        "a set whose class is missing",
        beside(vmset(template={"classRef": {"name": "gone"}})),
        "vmclass-missing",
        "VirtRigaud VMClass gone",
        SET,
    ),
    ProviderFault(
        "a set whose machines cannot be made",
        beside(vmset()),
        "provider-quota",
        "VirtRigaud VirtualMachine web-0",
        SET,
        fake=fault("Create", _QUOTA, "no more"),
    ),
    ProviderFault(
        "a set whose provider is away",
        beside(vmset(), seconds=300),
        "provider-unreachable",
        LAB,
        SET,
        fake=fault("*", _AWAY, "x", reason=reasons.PROVIDER_UNAVAILABLE),
    ),
    ProviderFault(
        "a machine of a policy without a host",
        beside(policy(**APART), placed("a"), placed("web")),
        "machine-unplaced",
        fake=FakeSettings(hosts=HOSTS),
    ),
    ProviderFault("a policy that is not there", beside(placed("web")), "placementpolicy-missing", "VirtRigaud VMPlacementPolicy spread"),
    ProviderFault(
        "a storage pod without a member",
        beside(machine(placement={"storagePod": "gold"})),
        "machine-unplaced",
        fake=FakeSettings(datastores=STORES),
    ),
    # snapshots
    snapshots("a snapshot of no machine", "machine-missing", "VirtRigaud VirtualMachine gone", vm="gone"),
    snapshots("a provider without snapshots", "provider-unable", fake=FakeSettings(without=("snapshots",))),
    snapshots("a snapshot over the quota", "provider-quota", fake=fault("SnapshotCreate", _QUOTA, "no more")),
    snapshots("a snapshot without space", "provider-storage-full", fake=fault("SnapshotCreate", _INTERNAL, "no space left on device")),
    snapshots("a snapshot that fails", "provider-failing", fake=fault("SnapshotCreate", _INTERNAL, "panic")),
    ProviderFault(
        "a snapshot that cannot be deleted",
        then_all(running(snapshot()), failing("SnapshotDelete", _INTERNAL, "panic"), lambda life: life.delete("s", "VMSnapshot")),
        "machine-deletion-failing",
        _S,
        SNAPSHOT,
    ),
    ProviderFault(
        "a revert to a snapshot that is not there",
        then_all(running(), merged({"spec": {"snapshot": {"revertToRef": {"name": "gone"}}}})),
        "snapshot-missing",
        "VirtRigaud VMSnapshot gone",
    ),
    # clones
    clones("a clone of no machine", "machine-missing", "VirtRigaud VirtualMachine gone", source={"vmRef": {"name": "gone"}}),
    clones("a linked clone", "clone-unsupported", options={"type": "LinkedClone"}, fake=FakeSettings(without=("linked_clones",))),
    clones("a clone of the name of its source", "clone-name-taken", target={"name": "web"}),
    clones("a clone over the quota", "provider-quota", fake=fault("Clone", _QUOTA, "no more")),
    clones("a clone that the provider fails", "provider-failing", fake=fault("Clone", _INTERNAL, "panic")),
    ProviderFault(
        "a clone at another provider",
        running(provider("other"), vmclone(target={"providerRef": {"name": "other"}})),
        "clone-unsupported",
        _C,
        CLONE,
    ),
    # migrations
    moves("a migration of no machine", "machine-missing", "VirtRigaud VirtualMachine gone", source={"vmRef": {"name": "gone"}}),
    moves("a migration to no provider", "provider-missing", "VirtRigaud Provider gone", target={"providerRef": {"name": "gone"}}),
    moves("a provider that exports nothing", "provider-unable", fake=FakeSettings(without=("disk_export",))),
    moves("an export without space", "provider-storage-full", fake=fault("ExportDisk", _INTERNAL, "no space left on device")),
    moves("an export that fails", "provider-failing", fake=fault("ExportDisk", _INTERNAL, "panic")),
    ProviderFault(
        "a machine whose snapshot is kept is deleted",
        then_all(running(snapshot(retentionPolicy={"deleteOnVMDelete": False})), deleted),
        "snapshot-machine-gone",
        _S,
        SNAPSHOT,
    ),
)
