"""Exports on their way: names, addresses, options and formats (docs/spec/virtrigaud.md 2.7)."""

import hashlib
import json
from urllib.parse import quote, urlencode

import msgspec

from paddock.base import duration
from paddock.contract.payloads import encode_manifest
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.vmmigration import (
    MigratedDisk,
    MigrationOptions,
    MigrationStorage,
    PVCStorage,
    VMMigration,
    VMMigrationStatus,
)
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.world import namespace_of

ROOT = "root"
PVC, NFS, S3 = "pvc", "nfs", "s3"
RELAY, DIRECT, AUTO = "relay", "direct", "auto"
CREDENTIAL_KEYS = ("accessKeyID", "secretAccessKey", "sessionToken")
GIB = 1 << 30
_QCOW2 = "qcow2"
# Paddock's exports of a bucket end so, because upstream's do, whatever their format is.
_S3_SUFFIX = "vmdk"
_LONGEST = 63


def status_of(migration: VMMigration) -> VMMigrationStatus:
    """The status of a migration; an empty one if it has none."""
    return migration.status or VMMigrationStatus()


def options_of(migration: VMMigration) -> MigrationOptions:
    """The options of a migration."""
    return migration.spec.options or MigrationOptions()


def storage_of(migration: VMMigration) -> MigrationStorage:
    """The storage of a migration; a claim of its own if it names none."""
    return migration.spec.storage or MigrationStorage()


def backend(migration: VMMigration) -> str:
    return storage_of(migration).type


def timeout_seconds(migration: VMMigration) -> float:
    """The time that all of it may take."""
    return duration.parse(options_of(migration).timeout) / duration.SECOND


def mode(source: ReportedCapabilities, target: ReportedCapabilities, wanted: str) -> str:
    """The transfer mode of the requests: auto means relay unless the providers know only direct."""
    if wanted != AUTO:
        return wanted
    both = set(modes(source)) & set(modes(target))
    return DIRECT if both == {DIRECT} else RELAY


def modes(reported: ReportedCapabilities) -> list[str]:
    """The transfer modes of a provider; one that reports none relays."""
    return reported.supportedTransferModes or [RELAY]


def export_format(migration: VMMigration, source: ReportedCapabilities, target: ReportedCapabilities) -> str:
    """The format on the way: the one that is named, or the first that both providers know, qcow2 before others."""
    named = options_of(migration).diskFormat
    if named:
        return named
    gives, takes = source.supportedExportFormats or [_QCOW2], target.supportedImportFormats or [_QCOW2]
    both = [each for each in gives if each in takes]
    return _QCOW2 if _QCOW2 in both or not both else both[0]


def claim_name(migration: VMMigration) -> str:
    """The claim between the providers."""
    given = storage_of(migration).pvc or PVCStorage()
    return given.name or f"{migration.metadata.name}-storage"


def owns_claim(migration: VMMigration) -> bool:
    """Return whether the claim is the migration's own."""
    return not (storage_of(migration).pvc or PVCStorage()).name


def url(migration: VMMigration, disk: MigratedDisk, format: str) -> str:
    """The address of a disk's export. An export that is made anew has another address, so a late writer of the old one harms nothing."""
    parts = ["export", *([disk.name] if disk.name != ROOT else []), *([str(disk.attempt)] if disk.attempt else [])]
    stem, namespace, name = "-".join(parts), namespace_of(migration), migration.metadata.name
    storage = storage_of(migration)
    if storage.type == S3 and storage.s3 is not None:
        prefix = (storage.s3.prefix or "").strip("/")
        key = f"{prefix + '/' if prefix else ''}vmmigrations/{namespace}/{name}/{stem}.{_S3_SUFFIX}"
        return f"s3://{storage.s3.bucket}/{quote(key)}"
    if storage.type == NFS and storage.nfs is not None:
        nfs = storage.nfs
        place = "/".join(each for each in (nfs.export.strip("/"), (nfs.path or "").strip("/")) if each)
        owner = urlencode([(key, value) for key, value in (("uid", nfs.uid), ("gid", nfs.gid)) if value is not None])
        file = quote(f"{place}/vmmigrations-{namespace}-{name}-{stem}.{format}")
        host = f"[{nfs.server}]" if ":" in nfs.server and not nfs.server.startswith("[") else nfs.server
        return f"nfs://{host}/{file}{'?' + owner if owner else ''}"
    return f"pvc://{claim_name(migration)}/vmmigrations/{namespace}/{name}/{stem}.{format}"


def earlier_urls(migration: VMMigration, disk: MigratedDisk, format: str) -> list[str]:
    """The addresses of all exports of a disk that there may be."""
    return [url(migration, MigratedDisk(name=disk.name, attempt=attempt), format) for attempt in range((disk.attempt or 0) + 1)]


def options_json(migration: VMMigration) -> str:
    """The storage as the requests have it, without any secret."""
    storage = storage_of(migration)
    found: dict[str, object] = {"backend": storage.type}
    if storage.s3 is not None and storage.type == S3:
        s3 = storage.s3
        found |= {"bucket": s3.bucket, "endpoint": s3.endpoint, "region": s3.region, "prefix": s3.prefix, "usePathStyle": s3.usePathStyle}
    if storage.nfs is not None and storage.type == NFS:
        nfs = storage.nfs
        found |= {"server": nfs.server, "export": nfs.export, "path": nfs.path, "uid": nfs.uid, "gid": nfs.gid}
    return encode_manifest({name: value for name, value in found.items() if value is not None})


def import_name(migration: VMMigration, disk: MigratedDisk) -> str:
    """The name of a disk at the target."""
    stem = f"{migration.spec.target.name}-migrated"
    return stem if disk.name == ROOT else _shortened(f"{stem}-{disk.name}")


def target_disks(migration: VMMigration, disks: list[MigratedDisk]) -> list[DiskSpec]:
    """The data disks of the new machine: those that were brought, as `target.disks` says of their names, and the rest of `target.disks`."""
    given = {each.name: each for each in whole(migration.spec.target.disks) or ()}
    found = []
    for disk in disks[1:]:
        spec = given.pop(disk.name, None) or DiskSpec(name=disk.name)
        size = max(1, -(-(disk.sizeBytes or 0) // GIB), spec.sizeGiB)
        found.append(msgspec.structs.replace(spec, sizeGiB=size))
    return [*found, *given.values()]


def shrunk_disks(migration: VMMigration, disks: list[MigratedDisk]) -> list[str]:
    """The disks of `target.disks` that are smaller than what is brought for them."""
    sizes = {each.name: each.sizeBytes or 0 for each in disks[1:]}
    return [each.name for each in migration.spec.target.disks or () if each.sizeGiB * GIB < sizes.get(each.name, 0)]


def imported_text(disks: list[MigratedDisk]) -> str:
    """The annotation of a machine about data disks that were imported for it."""
    paths = {each.name: each.targetPath or each.importID or "" for each in disks[1:]}
    return json.dumps(paths, sort_keys=True)


def _shortened(name: str) -> str:
    """A name that hypervisors take; a long one ends in a sum of itself."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9].rstrip('-.')}-{digest}"
