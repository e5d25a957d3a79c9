"""Disks: what they are, and importing them. A disk is a claim, and its content is raw."""

import asyncio
import base64
import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt.datavolume import DataVolumeSource, DataVolumeSpec, HttpSource, S3Source
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.drivers.kubevirt import booting, failures, marks, observed, targets
from paddock.drivers.kubevirt.cluster import TargetCluster, id_of, is_owned
from paddock.drivers.kubevirt.identifiers import TaskGoal, TaskId
from paddock.drivers.kubevirt.inventory import MachineInventory
from paddock.drivers.kubevirt.observed import ClaimDisk
from paddock.drivers.kubevirt.snapshots import SnapshotControl
from paddock.meta.objects import ObjectMeta, owned_by
from paddock.meta.storage import ResourceRequirements, StorageSpec

# The backends of a migration that CDI reads; a plain address is one more way in.
IMPORT_BACKENDS = ("s3",)
IMPORT_FORMATS = ("qcow2", "raw", "vmdk", "vdi", "vhdx")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}\Z")
_KEYS = ("accessKeyID", "secretAccessKey")


class DiskOrigin(msgspec.Struct, frozen=True):
    """Where a disk is imported from, and the credentials for it."""

    source: DataVolumeSource
    credentials: dict[str, str] = {}

    def __repr__(self) -> str:
        return "DiskOrigin()"


class DiskTransfers:
    """Describes and imports disks."""

    def __init__(self, cluster: TargetCluster, inventory: MachineInventory, snapshots: SnapshotControl) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._snapshots = snapshots

    async def describe(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk of a machine: the named one, or the one that it boots from."""
        machine = await self._cluster.machine(request.vm_id)
        if request.snapshot_id:
            await self._snapshots.find(request.snapshot_id)
        claims, instance = await asyncio.gather(self._inventory.claims_of(machine), self._cluster.instance(machine))
        found = observed.disks(machine, instance, claims)
        disk = named_disk(found, request.disk_id)
        if disk is None:
            what = f"machine {machine.metadata.name} has no disk {request.disk_id}" if request.disk_id else "the machine has no disk"
            raise failures.not_found(what)
        claim = claims.get(disk.claim)
        snapshots = await self._cluster.every(targets.SNAPSHOTS)
        spec = claim.spec if claim is not None else None
        facts = {
            "storageClass": (spec.storageClassName if spec is not None else None) or "",
            "volumeMode": (spec.volumeMode if spec is not None else None) or "Filesystem",
            "device": disk.device,
        }
        return m.GetDiskInfoResponse(
            disk_id=disk.name,
            format="raw",
            virtual_size_bytes=disk.size,
            actual_size_bytes=booting.size_of(claim) if claim is not None else disk.size,
            path=disk.claim,
            is_bootable=bool(found) and disk == found[0],
            snapshots=tuple(str(id_of(each)) for each in snapshots if each.spec.source.name == machine.metadata.name),
            metadata={name: value for name, value in facts.items() if value},
        )

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Refuse. KubeVirt hands disks out by VirtualMachineExport and writes to no backend of a migration."""
        await self._cluster.machine(request.vm_id)
        backend = request.backend_type or "pvc"
        why = f"KubeVirt lets clients fetch disks, and writes none to a backend of type {backend}"
        raise failures.not_supported("the disk cannot be exported", why=why, fix="make a VirtualMachineExport and fetch the disk")

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Import a disk. A repeated call answers with the one that is there; another content of the name is a Conflict."""
        wanted = import_source(request)
        name = marks.object_name(request.target_name)
        if not name:
            raise failures.invalid("the disk has no name", fix="send target_name")
        digest = _digest(request)
        volume = DataVolume(
            apiVersion=targets.DATA_VOLUMES.api_version,
            kind=targets.DATA_VOLUMES.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=self._cluster.namespace,
                labels={marks.PURPOSE: booting.DISK},
                annotations={marks.REQUEST: digest, "cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
            ),
            spec=DataVolumeSpec(
                source=_with_secret(wanted, name),
                storage=StorageSpec(
                    resources=ResourceRequirements(requests={"storage": self._cluster.settings.disk_size}),
                    storageClassName=request.storage_hint or None,
                ),
            ),
        )
        found = await self._cluster.ensure(targets.DATA_VOLUMES, volume)
        if (found.metadata.annotations or {}).get(marks.REQUEST) != digest:
            raise failures.conflict(f"a disk {name} exists and has another content", fix="choose another name or delete it")
        if wanted.credentials:
            await self._credentials(found, wanted.credentials)
        task = m.TaskRef(id=str(TaskId(TaskGoal.IMPORTED, id_of(found))))
        return m.ImportDiskResponse(disk_id=name, path=name, task=task, checksum=expected_checksum(request))

    async def _credentials(self, volume: DataVolume, credentials: dict[str, str]) -> None:
        """Keep what the importer logs in with beside the disk, and as long as it."""
        name = _secret_name(volume.metadata.name)
        secret = Secret(
            apiVersion="v1",
            kind="Secret",
            metadata=ObjectMeta(name=name, namespace=self._cluster.namespace, ownerReferences=owned_by(volume)),
            type="Opaque",
            data={key: base64.b64encode(value.encode()).decode() for key, value in credentials.items()},
        )
        there = await self._cluster.ensure(targets.SECRETS, secret)
        if not is_owned(there, volume):
            raise failures.conflict(f"Secret {name} exists and does not belong to the disk {volume.metadata.name}")


def named_disk(disks: tuple[ClaimDisk, ...], name: str) -> ClaimDisk | None:
    """Return the disk of a name, by volume or claim; without a name the first, which the machine boots from."""
    if not name:
        return disks[0] if disks else None
    return next((each for each in disks if name in (each.name, each.claim)), None)


def expected_checksum(request: m.ImportDiskRequest) -> str:
    """Return the SHA-256 that CDI compares the content with; empty when nothing is compared."""
    if not request.verify_checksum or not request.expected_checksum:
        return ""
    digits = request.expected_checksum.removeprefix("sha256:")
    if _SHA256.match(digits) is None:
        raise failures.invalid("the expected checksum is no SHA-256", fix="send 64 hexadecimal digits")
    return digits.lower()


def import_source(request: m.ImportDiskRequest) -> DiskOrigin:
    """Return where a disk comes from; raises NotSupported for what CDI does not reach."""
    if request.transfer_mode not in ("", "auto", "relay"):
        raise failures.not_supported(f"transfer mode {request.transfer_mode} is not supported", fix="use relay")
    if request.format and request.format not in IMPORT_FORMATS:
        raise failures.not_supported(f"format {request.format} cannot be imported", fix=f"use one of {', '.join(IMPORT_FORMATS)}")
    scheme, checksum = urlsplit(request.source_url).scheme, expected_checksum(request)
    if scheme in ("http", "https"):
        return DiskOrigin(DataVolumeSource(http=HttpSource(url=request.source_url, checksum=f"sha256:{checksum}" if checksum else None)))
    if scheme != "s3":
        what = f"a disk cannot be imported from {scheme or 'an empty address'}"
        raise failures.not_supported(what, why="CDI reads http, https and s3", fix="choose a storage of type s3")
    if checksum:
        raise failures.not_supported(
            "the checksum of an object in S3 cannot be verified", why="CDI does not", fix="switch verifyChecksums off"
        )
    if request.credentials.get("sessionToken"):
        raise failures.not_supported("CDI takes no session token for S3", fix="use an access key without one")
    missing = next((key for key in _KEYS if not request.credentials.get(key)), None)
    if missing is not None:
        raise failures.invalid(f"the credentials for S3 have no {missing}")
    given = {"accessKeyId": request.credentials[_KEYS[0]], "secretKey": request.credentials[_KEYS[1]]}
    return DiskOrigin(DataVolumeSource(s3=S3Source(url=_s3_address(request))), given)


def _s3_address(request: m.ImportDiskRequest) -> str:
    """The address of an object as CDI wants it: endpoint, bucket and key as a path."""
    options: dict[str, Any] = payloads.decode_manifest(request.storage_options_json)
    parts = urlsplit(request.source_url)
    endpoint = str(options.get("endpoint") or "") or f"https://s3.{options.get('region') or 'us-east-1'}.amazonaws.com"
    if not endpoint.startswith(("http://", "https://")):
        endpoint = f"https://{endpoint}"
    return f"{endpoint.rstrip('/')}/{parts.netloc}/{parts.path.lstrip('/')}"


def _with_secret(wanted: DiskOrigin, name: str) -> DataVolumeSource:
    source = wanted.source
    if source.s3 is None:
        return source
    return msgspec.structs.replace(source, s3=msgspec.structs.replace(source.s3, secretRef=_secret_name(name)))


def _secret_name(disk: str) -> str:
    return f"{disk}-import"


def _digest(request: m.ImportDiskRequest) -> str:
    parts = (request.source_url, request.format, request.expected_checksum, request.storage_options_json)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
