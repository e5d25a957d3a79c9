"""The needs of a migration before it begins: two Providers that can do it, storage that both reach, a host that is allowed."""

from collections.abc import Iterable

import msgspec

from paddock.contract import features
from paddock.dialects.virtrigaud.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.rules import hosts
from paddock.dialects.virtrigaud.vmmigration import VMMigration
from paddock.plan.virtrigaud import reasons
from paddock.plan.virtrigaud.migrations import transfer


class MigrationVerdict(msgspec.Struct, frozen=True):
    """The reason why a migration cannot be carried out until somebody changes something."""

    reason: str
    message: str


def transfer_verdict(migration: VMMigration, source: ReportedCapabilities, target: ReportedCapabilities) -> MigrationVerdict | None:
    """Judge what both Providers report. What is not reported is not there."""
    wanted = transfer.storage_of(migration)
    gives = source.supportedExportBackends or [transfer.PVC]
    takes = target.supportedImportBackends or [transfer.PVC]
    if not source.supportsDiskExport:
        return _unsupported("the source's Provider does not export disks")
    if not target.supportsDiskImport:
        return _unsupported("the target's Provider does not import disks")
    if wanted.type not in gives or wanted.type not in takes:
        lists = f"the source's Provider exports to {_listed(gives)}, the target's imports from {_listed(takes)}"
        return _unsupported(f"the storage {wanted.type} cannot be used: {lists}")
    mode = transfer.mode(source, target, wanted.transferMode)
    if mode not in transfer.modes(source) or mode not in transfer.modes(target):
        lists = f"the source's Provider has {_listed(transfer.modes(source))}, the target's {_listed(transfer.modes(target))}"
        return _unsupported(f"the transfer mode {mode} cannot be used: {lists}")
    return _format_verdict(migration, source, target)


def _format_verdict(migration: VMMigration, source: ReportedCapabilities, target: ReportedCapabilities) -> MigrationVerdict | None:
    options, chosen = transfer.options_of(migration), transfer.export_format(migration, source, target)
    gives, takes = source.supportedExportFormats or ["qcow2"], target.supportedImportFormats or ["qcow2"]
    if chosen not in gives or chosen not in takes:
        lists = f"the source's Provider writes {_listed(gives)}, the target's reads {_listed(takes)}"
        return _unsupported(f"the format {chosen} cannot be used: {lists}")
    if options.compress and not source.supportsExportCompression:
        return _unsupported("the source's Provider does not compress exports; set spec.options.compress to false")
    return None


def disks_verdict(disks: int, target: ReportedCapabilities) -> MigrationVerdict | None:
    """Judge data disks: a target that cannot take them would get a machine without its data."""
    if disks < 2 or features.has(target.features, features.IMPORTED_DISKS):
        return None
    return _unsupported("the machine has data disks, and the target's Provider takes no imported disk as a data disk")


def host_of(migration: VMMigration) -> str:
    """The host of the storage; empty for a claim, and for a bucket at the region's own address."""
    storage = transfer.storage_of(migration)
    if storage.type == transfer.S3 and storage.s3 is not None and storage.s3.endpoint:
        return hosts.host_of(storage.s3.endpoint)
    if storage.type == transfer.NFS and storage.nfs is not None:
        return storage.nfs.server.strip("[]")
    return ""


def host_verdict(host: str, addresses: Iterable[str], allowed: Iterable[str]) -> MigrationVerdict | None:
    """Judge the host of the storage by its name and by the addresses that the name has."""
    listed = tuple(each.strip().lower() for each in allowed if each.strip())
    if listed and not any(_is_among(host, each) for each in listed):
        text = f"the storage's host {host} is not among the hosts that the manager allows (--migration-storage-allowed-hosts)"
        return MigrationVerdict(reasons.VALIDATION_FAILED, text)
    for each in (host, *addresses):
        if refusal := hosts.refusal(each):
            named = f"{host}: " if each != host else ""
            return MigrationVerdict(reasons.VALIDATION_FAILED, f"the storage's host is refused: {named}{refusal}")
    return None


def _is_among(host: str, pattern: str) -> bool:
    plain = host.rstrip(".").lower()
    return plain == pattern or (pattern.startswith("*.") and plain.endswith(pattern[1:]))


def _unsupported(message: str) -> MigrationVerdict:
    return MigrationVerdict(reasons.UNSUPPORTED, message)


def _listed(values: Iterable[str]) -> str:
    return f"[{', '.join(sorted(values))}]"
