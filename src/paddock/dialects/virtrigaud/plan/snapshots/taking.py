"""The request for a snapshot, and what is refused before a request is made."""

import hashlib
import re

from paddock.contract import messages as m
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds.machine import SnapshotAction
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmsnapshot import SnapshotConfig, VMSnapshot, VMSnapshotSpec
from paddock.dialects.virtrigaud.plan import marks, power, reasons
from paddock.dialects.virtrigaud.plan.conditions import UNSUPPORTED, AspectValue, true
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.world import namespace_of

QUIESCED = "Quiesced"
_LONGEST_NAME = 200
# What a snapshotConfig.name may be.
_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_-]*[a-zA-Z0-9])?", re.ASCII)


def name_hint(snapshot: VMSnapshot) -> str:
    """The name at the Provider. It is the same for each request of an object, and another one for each other object."""
    digest = hashlib.sha256((snapshot.metadata.uid or "").encode()).hexdigest()[:8]
    return f"{records.label(snapshot)[:_LONGEST_NAME]}-{digest}"


def request(snapshot: VMSnapshot, machine_id: str) -> m.SnapshotCreateRequest:
    """The request for a snapshot."""
    config = records.config(snapshot)
    return m.SnapshotCreateRequest(
        vm_id=machine_id, name_hint=name_hint(snapshot), include_memory=config.includeMemory, description=config.description or ""
    )


def check(snapshot: VMSnapshot, provider: str, can: ReportedCapabilities) -> None:
    """Raise `Refusal` for a snapshot that the Provider cannot take as the spec says."""
    config = records.config(snapshot)
    if not can.supportsSnapshots:
        raise _unsupported(f"{provider} does not report that it supports snapshots", "use a Provider that does")
    if config.includeMemory and not can.supportsMemorySnapshots:
        raise _unsupported(
            f"{provider} does not report that it supports snapshots with memory", "set snapshotConfig.includeMemory to false"
        )
    if config.encryption is not None and config.encryption.enabled:
        raise _unsupported(
            f"{provider} cannot be asked for an encrypted snapshot: the provider contract has no field for it",
            "remove snapshotConfig.encryption, and encrypt the disks at the Provider",
        )
    if config.type == "Application" or config.consistencyLevel == "ApplicationConsistent":
        raise _unsupported(
            f"{provider} cannot promise a snapshot that is consistent for applications: the provider contract has no field for it",
            "choose another snapshotConfig.type and consistencyLevel, and bring the application to rest first",
        )


def of_hook(vm: VirtrigaudVirtualMachine, hook: str, begun: str, action: SnapshotAction) -> VMSnapshot:
    """The snapshot of a lifecycle hook that was begun at a time; it has the same name whenever it is made."""
    digest = hashlib.sha256(f"{vm.metadata.uid} {hook} {begun}".encode()).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "-", action.name.lower()).strip("-")
    name = "-".join(filter(None, (vm.metadata.name[:120].rstrip("-."), slug[:100].strip("-"), digest)))
    return VMSnapshot(
        apiVersion=API_VERSION,
        kind="VMSnapshot",
        metadata=ObjectMeta(name=name, namespace=namespace_of(vm), labels={marks.SNAPSHOT_HOOK: hook}),
        spec=VMSnapshotSpec(
            vmRef=LocalObjectReference(name=vm.metadata.name),
            snapshotConfig=SnapshotConfig(
                name=action.name[:255] if _NAME.fullmatch(action.name) else None,
                description=(action.description or "")[:1024] or None,
                includeMemory=bool(action.includeMemory),
            ),
        ),
    )


def _unsupported(what: str, fix: str) -> Refusal:
    return Refusal(what, fix=fix, reason=reasons.UNSUPPORTED)


def remarks(config: SnapshotConfig, machine: VirtrigaudMachineStatus) -> tuple[AspectValue, ...]:
    """The conditions about options that the contract cannot carry, as the machine is when the snapshot is requested."""
    found = []
    if config.compression:
        found.append(true(UNSUPPORTED, reasons.UNSUPPORTED, "the provider contract has no field for snapshotConfig.compression"))
    if config.quiesce and config.consistencyLevel == "FilesystemConsistent" and config.type != "Crash":
        found.append(_quiesced(config, machine))
    return tuple(found)


def _quiesced(config: SnapshotConfig, machine: VirtrigaudMachineStatus) -> AspectValue:
    if machine.powerState == power.OFF:
        return true(QUIESCED, "PoweredOff", "the machine was off, so its filesystems were at rest")
    if config.includeMemory:
        return true(QUIESCED, "MemoryIncluded", "the snapshot has the memory of the guest, so it needs no quiesced filesystems")
    text = "the provider contract has no field for quiesce: the Provider decides, and the snapshot is at least crash consistent"
    return AspectValue(QUIESCED, "Unknown", "NotReported", text)
