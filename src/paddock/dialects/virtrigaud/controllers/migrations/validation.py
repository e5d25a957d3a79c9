"""The phase Validating: both ends exist and can do it, the storage is there, and the disks are known."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import (
    POLL_SECONDS,
    MigrationFailure,
    MigrationHeld,
    MigrationPass,
    MigrationSide,
)
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmmigration import MigratedDisk
from paddock.dialects.virtrigaud.plan import marks, reasons
from paddock.dialects.virtrigaud.plan.migrations import documents, transfer, verdicts
from paddock.dialects.virtrigaud.plan.migrations.verdicts import MigrationVerdict
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.core import persistentvolumeclaim
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import decoded
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.targets import kind_target

CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
NAMESPACES = kind_target("", "Namespace")
# The addresses of a host name; nothing if the name is not known here.
HostAddresses = Callable[[str], Awaitable[tuple[str, ...]]]


async def addresses_of(host: str) -> tuple[str, ...]:
    """Look a host name up."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple({str(each[4][0]): None for each in found})


class MigrationValidation:
    def __init__(self, addresses: HostAddresses = addresses_of) -> None:
        self._addresses = addresses

    async def carry_out(self, migration_pass: MigrationPass) -> None:
        """Check everything that can be checked before anything is made, and record the disks."""
        machine = migration_pass.source_machine
        source, target = migration_pass.source_end(machine), migration_pass.target_end()
        _refuse(verdicts.transfer_verdict(migration_pass.migration, source.transfer_end, target.transfer_end))
        await self.check_host(migration_pass)
        await self._check_target(migration_pass, machine)
        credentials(migration_pass)
        if not migration_pass.disks:
            migration_pass.change(disks=await _disks(migration_pass, machine, source, target))
        _refuse(verdicts.disks_verdict(len(migration_pass.disks), target.transfer_end))
        if shrunk := transfer.shrunk_disks(migration_pass.migration, migration_pass.disks):
            text = f"spec.target.disks makes {', '.join(shrunk)} smaller than it is; a disk may grow only"
            raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True)
        if transfer.backend(migration_pass.migration) == transfer.PVC:
            await _ensure_claim(migration_pass, source, target)
            _check_mounts(migration_pass, source, target)

    async def check_host(self, migration_pass: MigrationPass) -> None:
        """Refuse storage on this host, on its links and at a cloud's metadata service."""
        host = verdicts.host_of(migration_pass.migration)
        if host:
            allowed = migration_pass.parts.settings.migration_storage_allowed_hosts
            _refuse(verdicts.host_verdict(host, await self._addresses(host), allowed))

    async def _check_target(self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine) -> None:
        namespace, name = documents.target_namespace(migration_pass.migration), migration_pass.migration.spec.target.name
        found = migration_pass.machine(namespace, name)
        if found is not None and not documents.is_ours(found.metadata.annotations, migration_pass.migration):
            text = f"VirtualMachine {namespace}/{name} exists, and this migration did not make it; choose another spec.target.name"
            raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True)
        if namespace != migration_pass.namespace:
            await _check_consent(migration_pass, namespace)
        ref = documents.class_reference(migration_pass.migration, machine)
        place = Key(ref.namespace or namespace, ref.name)
        if migration_pass.parts.caches.classes.cache.get(place) is None:
            raise MigrationHeld(reasons.TARGET_NOT_READY, f"there is no VMClass {place} for the new machine")


async def _check_consent(migration_pass: MigrationPass, namespace: str) -> None:
    """A machine is made in another namespace only if that namespace says so."""
    try:
        found = await migration_pass.parts.client.get(NAMESPACES, Key("", namespace))
    except NotFound:
        raise MigrationHeld(reasons.TARGET_NOT_READY, f"there is no Namespace {namespace}") from None
    annotations = (found.get("metadata") or {}).get("annotations") or {}
    allowed = {each.strip() for each in str(annotations.get(marks.ALLOWED_SOURCES, "")).split(",")}
    if migration_pass.namespace not in allowed and "*" not in allowed:
        way_out = f"its owner can add the annotation {marks.ALLOWED_SOURCES}"
        text = f"Namespace {namespace} takes no machines from {migration_pass.namespace}; {way_out}"
        raise MigrationHeld(reasons.CONSUMER_NOT_ALLOWED, text)


def credentials(migration_pass: MigrationPass) -> dict[str, str]:
    """The credentials for the storage, for the requests only; raises `MigrationHeld` while they are not there."""
    s3 = transfer.storage_of(migration_pass.migration).s3
    if transfer.backend(migration_pass.migration) != transfer.S3 or s3 is None:
        return {}
    ref = s3.credentialsSecretRef
    if (ref.namespace or migration_pass.namespace) != migration_pass.namespace:
        text = f"spec.storage.s3.credentialsSecretRef names the namespace {ref.namespace}; put the Secret into {migration_pass.namespace}"
        raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True)
    seen = migration_pass.parts.caches.secrets.cache.get(Key(migration_pass.namespace, ref.name))
    if seen is None:
        raise MigrationHeld(reasons.STORAGE_ERROR, f"there is no Secret {migration_pass.namespace}/{ref.name}")
    values = decoded(seen.read(targets.SECRETS))
    found = {key: values[key].decode(errors="replace").strip() for key in transfer.CREDENTIAL_KEYS if values.get(key)}
    missing = [key for key in transfer.CREDENTIAL_KEYS[:2] if not found.get(key)]
    if missing:
        raise MigrationHeld(reasons.STORAGE_ERROR, f"Secret {migration_pass.namespace}/{ref.name} has no {', no '.join(missing)}")
    return found


async def _disks(
    migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine, source: MigrationSide, target: MigrationSide
) -> list[MigratedDisk]:
    """The disks of the source, the first one first, with their sizes."""
    vm_id = (machine.status.id if machine.status is not None else None) or ""
    chosen = transfer.export_format(migration_pass.migration, source.capabilities, target.capabilities)
    made = []
    for name, disk_id in await _named(machine, vm_id, source):
        info = await source.driver.get_disk_info(m.GetDiskInfoRequest(vm_id=vm_id, disk_id=disk_id))
        disk = MigratedDisk(
            name=name,
            # Empty stands for the first disk; an id of its own is only kept for what the source reports.
            sourceDiskID=info.disk_id or disk_id or None,
            sizeBytes=max(0, info.virtual_size_bytes),
            format=chosen,
        )
        made.append(disk)
    return made


async def _named(machine: VirtrigaudVirtualMachine, vm_id: str, source: MigrationSide) -> list[tuple[str, str]]:
    """The names of the disks with their ids at the source. A Provider that lists no machines has the disks of the spec."""
    known = [(each.name, each.name) for each in machine.spec.disks or ()]
    if known:
        return [(transfer.ROOT, ""), *known]
    try:
        listed = await source.driver.list_vms(m.ListVMsRequest())
    except ProviderError as error:
        if error.kind is not ErrorKind.NOT_SUPPORTED:
            raise
        return [(transfer.ROOT, "")]
    found = next((each.disks for each in listed.vms if each.id == vm_id), ())
    return [(transfer.ROOT, ""), *((f"disk-{number}", each.id) for number, each in enumerate(found[1:], 1))]


async def _ensure_claim(migration_pass: MigrationPass, source: MigrationSide, target: MigrationSide) -> None:
    """Make the claim between the Providers. Both mount it, so all of them are in one namespace."""
    for end in (source, target):
        if namespace_of(end.provider) != migration_pass.namespace:
            text = f"storage of type pvc is mounted by both Providers, and {end.place} is not in the namespace {migration_pass.namespace}"
            raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True)
    name = transfer.claim_name(migration_pass.migration)
    migration_pass.change(storagePVCName=name)
    try:
        found = await migration_pass.parts.client.get(CLAIMS, Key(migration_pass.namespace, name))
    except NotFound:
        if not transfer.owns_claim(migration_pass.migration):
            raise MigrationHeld(reasons.STORAGE_ERROR, f"there is no PersistentVolumeClaim {migration_pass.namespace}/{name}") from None
        await migration_pass.parts.client.create(
            CLAIMS, documents.claim(migration_pass.migration, migration_pass.disks), migration_pass.namespace
        )
        return
    if transfer.owns_claim(migration_pass.migration) and not documents.is_ours(found.metadata.annotations, migration_pass.migration):
        text = (
            f"PersistentVolumeClaim {migration_pass.namespace}/{name} exists and is not this migration's; name it in spec.storage.pvc.name"
        )
        raise MigrationFailure(reasons.STORAGE_ERROR, text, final=True)
    if found.metadata.deletionTimestamp is not None:
        raise MigrationHeld(reasons.STORAGE_ERROR, f"PersistentVolumeClaim {migration_pass.namespace}/{name} is being deleted")


def _check_mounts(migration_pass: MigrationPass, *ends: MigrationSide) -> None:
    """Wait until the programs of both Providers have the claim mounted."""
    name = transfer.claim_name(migration_pass.migration)
    waits = [end.place for end in ends if not end.connection.reaches(name)]
    if waits:
        text = f"{', '.join(waits)} has not mounted PersistentVolumeClaim {migration_pass.namespace}/{name} yet"
        raise MigrationHeld(reasons.WAITING_FOR_MOUNT, text, POLL_SECONDS)


def _refuse(verdict: MigrationVerdict | None) -> None:
    if verdict is not None:
        raise MigrationFailure(verdict.reason, verdict.message, final=True)
