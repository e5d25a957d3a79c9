"""The needs of a migration before it begins: two Providers that can do it, storage that both reach, a host that is allowed."""

from collections.abc import Iterable

import msgspec

from paddock.contract import features
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.vmmigration import VMMigration
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.migrations import transfer
from paddock.dialects.virtrigaud.rules import hosts


class MigrationVerdict(msgspec.Struct, frozen=True):
    """The reason why a migration cannot be carried out until somebody changes something."""

    reason: str
    message: str


class TransferEnd(msgspec.Struct, frozen=True):
    """One side of a migration as a verdict names it: "Provider lab/pve (proxmox)", and what it reports."""

    name: str
    reported: ReportedCapabilities

    @property
    def gives(self) -> list[str]:
        """The storage that it exports to."""
        return self.reported.supportedExportBackends or [transfer.PVC]

    @property
    def takes(self) -> list[str]:
        """The storage that it imports from."""
        return self.reported.supportedImportBackends or [transfer.PVC]


def transfer_verdict(migration: VMMigration, source: TransferEnd, target: TransferEnd) -> MigrationVerdict | None:
    """Judge what both Providers report, and name all that stands against the migration. What is not reported is not there."""
    found = [f"{source.name} does not export disks"] if not source.reported.supportsDiskExport else []
    found += [f"{target.name} does not import disks"] if not target.reported.supportsDiskImport else []
    # What one that moves no disks says of storage means nothing.
    return _unsupported("; ".join(found or _differences(migration, source, target)))


def _differences(migration: VMMigration, source: TransferEnd, target: TransferEnd) -> list[str]:
    """What only one of the Providers has of that which both need."""
    wanted, options = transfer.storage_of(migration), transfer.options_of(migration)
    mode = transfer.mode(source.reported, target.reported, wanted.transferMode)
    chosen = transfer.export_format(migration, source.reported, target.reported)
    gives, takes = source.reported.supportedExportFormats or ["qcow2"], target.reported.supportedImportFormats or ["qcow2"]
    rows = (
        (f"the storage {wanted.type}", "exports to", source.gives, "imports from", target.takes, wanted.type),
        (f"the transfer mode {mode}", "has", transfer.modes(source.reported), "has", transfer.modes(target.reported), mode),
        (f"the format {chosen}", "writes", gives, "reads", takes, chosen),
    )
    found = [
        f"{what} cannot be used: {source.name} {verb} {_listed(has)}, {target.name} {other} {_listed(knows)}"
        for what, verb, has, other, knows, value in rows
        if value not in has or value not in knows
    ]
    if options.compress and not source.reported.supportsExportCompression:
        found.append(f"{source.name} does not compress exports; set spec.options.compress to false")
    return found


def disks_verdict(disks: int, target: TransferEnd) -> MigrationVerdict | None:
    """Judge data disks: a target that cannot take them would get a machine without its data."""
    if disks < 2 or features.has(target.reported.features, features.IMPORTED_DISKS):
        return None
    return _unsupported(f"the machine has data disks, and {target.name} takes no imported disk as a data disk")


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


def _unsupported(message: str) -> MigrationVerdict | None:
    return MigrationVerdict(reasons.UNSUPPORTED, message) if message else None


def _listed(values: Iterable[str]) -> str:
    return f"[{', '.join(sorted(values))}]"
