"""The rules of VirtRigaud's VMMigration."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.virtrigaud.rules import hosts, machine
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmmigration import MigrationStorage, VMMigration

STORAGE: Path = ("spec", "storage")
BACKEND = "virtrigaud/migration-storage"
HOST = "virtrigaud/migration-host"
TARGET = "virtrigaud/migration-target"
DEFAULT_MOUNT = "/mnt/migration-storage"


@rule(
    BACKEND,
    Cel("spec.storage", "self.type != 's3' || has(self.s3)", 'type "s3" needs a bucket and its credentials', ".s3", "FieldValueRequired"),
    Cel("spec.storage", "self.type != 'nfs' || has(self.nfs)", 'type "nfs" needs a server and an export', ".nfs", "FieldValueRequired"),
)
def storage_has_its_block(migration: "VMMigration", settings: AdmissionSettings) -> Iterator[Finding]:
    """The kind of storage has its block; blocks of another kind have no effect (a warning)."""
    storage = migration.spec.storage
    if storage is None:
        return
    needs = {"s3": "a bucket and its credentials", "nfs": "a server and an export"}
    if storage.type in needs and getattr(storage, storage.type) is None:
        why = f'type "{storage.type}" needs {needs[storage.type]}'
        yield finding.required((*STORAGE, storage.type), BACKEND, why)
    for name in ("pvc", "nfs", "s3"):
        if name != storage.type and getattr(storage, name) is not None:
            yield finding.warning((*STORAGE, name), f'has no effect with type "{storage.type}"', BACKEND)
    yield from _unused_members(storage)


def _unused_members(storage: "MigrationStorage") -> Iterator[Finding]:
    if storage.nfs is not None and storage.nfs.readOnly:
        yield finding.warning((*STORAGE, "nfs", "readOnly"), "has no effect: a migration writes to the export", BACKEND)
    if storage.pvc is None:
        return
    if storage.pvc.mountPath != DEFAULT_MOUNT:
        text = f"has no effect: the providers mount claims below {DEFAULT_MOUNT}"
        yield finding.warning((*STORAGE, "pvc", "mountPath"), text, BACKEND)
    for member, default in (("storageClassName", None), ("size", None), ("accessMode", "ReadWriteMany")):
        if storage.pvc.name and getattr(storage.pvc, member) != default:
            yield finding.warning((*STORAGE, "pvc", member), f"has no effect: claim {storage.pvc.name} exists", BACKEND)


@rule(HOST)
def storage_is_elsewhere(migration: "VMMigration", settings: AdmissionSettings) -> Iterator[Finding]:
    """Storage is not on this machine, not link-local, and no cloud's metadata service."""
    storage = migration.spec.storage
    if storage is None:
        return
    if storage.s3 is not None and storage.s3.endpoint:
        why = hosts.refusal(hosts.host_of(storage.s3.endpoint))
        if why:
            yield finding.forbidden((*STORAGE, "s3", "endpoint"), why, HOST)
    if storage.nfs is not None and storage.nfs.server:
        why = hosts.refusal(storage.nfs.server.strip("[]"))
        if why:
            yield finding.forbidden((*STORAGE, "nfs", "server"), why, HOST)


@rule(TARGET)
def target_is_another_machine(migration: "VMMigration", settings: AdmissionSettings) -> Iterator[Finding]:
    """The new machine is not the one that moves, and it has a class and no image (a warning)."""
    source, target = migration.spec.source, migration.spec.target
    namespace = migration.metadata.namespace
    if target.name and target.name == source.vmRef.name and (target.namespace or namespace) == namespace:
        why = "is the machine that moves; give the new one another name or another namespace"
        yield finding.invalid(("spec", "target", "name"), target.name, why, TARGET)
    if target.imageRef is not None:
        text = "has no effect: the new machine boots from the disk that is brought"
        yield finding.warning(("spec", "target", "imageRef"), text, TARGET)
    if target.classRef is None:
        text = "a machine needs a class, and without one the new machine cannot be made"
        yield finding.warning(("spec", "target", "classRef"), text, TARGET)


@rule(machine.NETWORK_REF)
def network_refs(migration: "VMMigration", settings: AdmissionSettings) -> Iterator[Finding]:
    """A network card of the new machine without a VMNetworkAttachment is on the default network of its Provider (a warning)."""
    yield from machine.network_refs(migration.spec.target.networks, ("spec", "target", "networks"), settings)


@rule(machine.STATIC_ADDRESS)
def static_addresses(migration: "VMMigration", settings: AdmissionSettings) -> Iterator[Finding]:
    """prefix, gateway and dns of a card belong to a static address."""
    yield from machine.static_addresses(migration.spec.target.networks, ("spec", "target", "networks"), settings)


@rule(machine.TIMEOUT)
def timeouts_are_not_negative(migration: "VMMigration", settings: AdmissionSettings) -> Iterator[Finding]:
    """Timeouts and delays are not negative."""
    options = migration.spec.options
    if options is not None:
        yield from machine.not_negative(options.timeout, ("spec", "options", "timeout"))
        if options.retryPolicy is not None:
            path = ("spec", "options", "retryPolicy", "retryDelay")
            yield from machine.not_negative(options.retryPolicy.retryDelay, path)


RULES = (
    storage_has_its_block,
    storage_is_elsewhere,
    target_is_another_machine,
    network_refs,
    static_addresses,
    timeouts_are_not_negative,
)
