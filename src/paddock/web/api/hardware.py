"""Disks and network interfaces of a machine, for the page. Pure."""

from collections.abc import Iterator, Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.machines import disks, facts, nics, parts
from paddock.fleet.machines.disks import DiskRow
from paddock.fleet.machines.finding import MachineView
from paddock.web.answers.machine import WebDiskPart, WebNicPart

Named = Mapping[str, Data]
_TYPES = ("cdrom", "lun")


def disk_parts(machine: MachineView, claims: Named, volumes: Named, used: Mapping[str, int]) -> Iterator[WebDiskPart]:
    """Yield the disks. `claims` and `volumes` are the claims and DataVolumes of the namespace, `used` the bytes of claims, by name."""
    spec = parts.spec_of(machine)
    devices = {texts(each, "name"): each for each in entries(spec, "domain", "devices", "disks")}
    sources = {texts(each, "name"): each for each in entries(spec, "volumes")}
    for row in disks.listed(machine):
        claim = claims.get(row.claim)
        yield WebDiskPart(
            name=row.name,
            type=next((each for each in _TYPES if each in devices.get(row.name, {})), "disk"),
            bus=row.bus,
            size=_size(row, claim),
            used=used.get(row.claim, -1),
            source=_source(row, sources.get(row.name), volumes.get(row.claim)),
            claim=row.claim,
            storage_class=texts(claim, "spec", "storageClassName"),
            state=row.state,
        )


def _size(row: DiskRow, claim: Data | None) -> int:
    """Return the size that the guest sees. Of a claim that no guest has seen yet, it is the size of the claim."""
    if row.size is not None:
        return row.size
    found = at(claim, "status", "capacity", "storage") or at(claim, "spec", "resources", "requests", "storage")
    return facts.whole(found) if found else -1


def _source(row: DiskRow, volume: Data | None, filler: Data | None) -> str:
    """Return where the content comes from: an image, a file of the host, or the member of the volume."""
    if filler is not None:
        return facts.source_of(filler) or "empty disk"
    for path in (("containerDisk", "image"), ("hostDisk", "path"), ("ephemeral", "persistentVolumeClaim", "claimName")):
        if text := texts(volume, *path):
            return text
    return row.source


def nic_parts(machine: MachineView) -> Iterator[WebNicPart]:
    for row in nics.listed(machine):
        yield WebNicPart(
            name=row.name,
            network=row.network,
            binding=row.binding,
            model=row.model,
            mac=row.mac,
            addresses=list(row.addresses),
            state=row.state,
        )
