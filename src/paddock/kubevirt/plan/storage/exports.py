"""Exports: which volumes there are to fetch, and under which addresses (docs/spec/kubevirt.md 7.4). Pure."""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from paddock.base import duration
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import Condition, settled
from paddock.kubevirt.kinds.export import (
    ExportFormat,
    ExportLink,
    ExportLinks,
    ExportManifest,
    ExportStatus,
    ExportVolume,
    VirtualMachineExport,
)

PENDING, READY, SKIPPED = "Pending", "Ready", "Skipped"
PREFIX = "/exports"
TOKEN_HEADER = "x-kubevirt-export-token"
# What an export may be fetched as, by the end of its address.
FORMATS = {"raw": "disk.img", "gzip": "disk.img.gz", "tar.gz": "disk.tar.gz"}
_OF_DISKS, _OF_FILES = ("raw", "gzip"), ("tar.gz",)
MANIFESTS = {"all": "manifests/all", "auth-header-secret": "manifests/secret"}
_TTL_SECONDS = 7200.0
_LONGEST_NAME = 253


class ExportedVolume(msgspec.Struct, frozen=True):
    """A volume that is exported: the engine's volume, or its snapshot."""

    name: str
    id: str
    is_snapshot: bool = False
    # it holds files, and no disk
    is_files: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats for the download."""
        return _OF_FILES if self.is_files else _OF_DISKS


def expires(export: VirtualMachineExport) -> str:
    """Return the time of its deletion."""
    given = export.spec.ttlDuration
    seconds = _TTL_SECONDS if given is None else duration.parse(given) / duration.SECOND
    return ages.timestamp((ages.seconds_of(export.metadata.creationTimestamp or "") or 0.0) + seconds)


def secret_name(export: VirtualMachineExport) -> str:
    """The Secret with the token: the one named, or one of our own."""
    if export.spec.tokenSecretRef:
        return export.spec.tokenSecretRef
    name = f"export-token-{export.metadata.name}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def path_of(export: VirtualMachineExport, rest: str) -> str:
    """Return the path of a download."""
    return f"{PREFIX}/{export.metadata.namespace}/{export.metadata.name}/{rest}"


def links(export: VirtualMachineExport, volumes: Iterable[ExportedVolume], address: str, authority: str, *, manifests: bool) -> ExportLinks:
    """Addresses of everything; inside and outside are the same here."""
    found = [ExportVolume(name=each.name, formats=_formats(export, each, address)) for each in volumes]
    said = [ExportManifest(type=name, url=address + path_of(export, rest)) for name, rest in MANIFESTS.items()] if manifests else None
    link = ExportLink(cert=authority, volumes=found, manifests=said)
    return ExportLinks(internal=link, external=link)


def _formats(export: VirtualMachineExport, volume: ExportedVolume, address: str) -> list[ExportFormat]:
    place = address + path_of(export, f"volumes/{volume.name}")
    return [ExportFormat(format=name, url=f"{place}/{FORMATS[name]}") for name in volume.formats]


def ready(
    before: ExportStatus, export: VirtualMachineExport, export_links: ExportLinks | None, now: str, *, machine: str = "", note: str = ""
) -> ExportStatus:
    """It can be fetched; without links there is nothing to fetch. `note`: what is not in it."""
    conditions = (_said("Ready", True, "PodReady", note), _said("PVCReady", True, "PVCBound"))
    return msgspec.structs.replace(
        before,
        phase=READY if export_links is not None else SKIPPED,
        links=export_links,
        tokenSecretRef=secret_name(export),
        ttlExpirationTime=expires(export),
        virtualMachineName=machine or None,
        conditions=settled(before.conditions, conditions, now),
    )


def waiting(before: ExportStatus, export: VirtualMachineExport, reason: str, message: str, now: str) -> ExportStatus:
    """It cannot be fetched yet."""
    conditions = (_said("Ready", False, reason, message), _said("PVCReady", False, reason, message))
    return msgspec.structs.replace(
        before,
        phase=PENDING,
        links=None,
        tokenSecretRef=secret_name(export),
        ttlExpirationTime=expires(export),
        conditions=settled(before.conditions, conditions, now),
    )


def _said(type: str, holds: bool, reason: str, message: str = "") -> Condition:
    return Condition(type=type, status="True" if holds else "False", reason=reason, message=message or None)


def manifest(machine: dict[str, Any]) -> dict[str, Any]:
    """A machine as it can be made anew elsewhere."""
    metadata = machine.get("metadata") or {}
    kept = {name: metadata[name] for name in ("name", "namespace", "labels", "annotations") if metadata.get(name)}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": kept, "spec": machine.get("spec") or {}}
