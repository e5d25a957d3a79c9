"""The volumes of a machine: those whose disks move, those that stay, and those that keep it from moving."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.storage import claimsizes

_MIB = 1 << 20
_CONTENT = "cdi.kubevirt.io/storage.contentType"
_IMMEDIATE = "cdi.kubevirt.io/storage.bind.immediate.requested"
# Older releases of CDI delete a DataVolume once it is filled, and with it the checksum.
_COLLECTED = "cdi.kubevirt.io/storage.deleteAfterCompletion"
# Labels that storage controllers write onto claims.
_MANAGED = ("app", "app.kubernetes.io/", "cdi.kubevirt.io/")


class CarriedDisk(msgspec.Struct, frozen=True, kw_only=True):
    """A disk that moves: the volume of the machine, and the claim as the source has it."""

    volume: str
    claim: Data

    @property
    def name(self) -> str:
        """The name of the claim, which the disk keeps."""
        return str(self.claim["metadata"]["name"])

    @property
    def size(self) -> int:
        """Its size in bytes, as the guest sees it at most."""
        return size_of(self.claim)


class VolumeSurvey(msgspec.Struct, frozen=True):
    """The volumes of a machine, sorted. `obstacles` keep it from moving, `notes` say what the target does not get."""

    disks: tuple[CarriedDisk, ...] = ()
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def size_of(claim: Data) -> int:
    """Return the size of a claim's disk in bytes."""
    return claimsizes.remembered(claim["metadata"].get("annotations"), _request(claim))


def _request(claim: Data) -> int:
    asked = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return quantity.whole(asked) if asked is not None else 0


def claim_name(volume: Data) -> str:
    """Return the claim behind a volume; empty if there is none."""
    for member, name in (("dataVolume", "name"), ("persistentVolumeClaim", "claimName")):
        if found := (volume.get(member) or {}).get(name):
            return str(found)
    below = ((volume.get("ephemeral") or {}).get("persistentVolumeClaim") or {}).get("claimName")
    return str(below or "")


def survey(spec: Data, claims: Mapping[str, Data]) -> VolumeSurvey:
    """Sort the volumes of a guest's spec. `claims` are those of its namespace, by name."""
    disks: list[CarriedDisk] = []
    obstacles, notes = list(_devices(spec)), list[str]()
    for volume in spec.get("volumes") or ():
        name, claim = str(volume.get("name")), claim_name(volume)
        if claim and claim in claims:
            if (claims[claim]["metadata"].get("annotations") or {}).get(_CONTENT) == "archive":
                obstacles.append(f"the volume {name} ({claim}) holds files and no disk; take it off and copy the files")
            elif claim not in {each.name for each in disks}:
                disks.append(CarriedDisk(volume=name, claim=claims[claim]))
        elif claim:
            notes.append(f"disk {name}: its claim {claim} does not exist yet, so the target makes it")
        elif "hostDisk" in volume:
            obstacles.append(f"the disk {name} is a file of the host; copy it into a claim")
        elif image := (volume.get("containerDisk") or {}).get("image"):
            notes.append(f"disk {name}: the target pulls the image {image}; what the guest wrote there ends with this run")
        elif "emptyDisk" in volume:
            notes.append(f"disk {name}: an empty disk ends with every run")
        elif "memoryDump" in volume:
            notes.append(f"volume {name}: a memory dump stays at the source")
    return VolumeSurvey(tuple(disks), tuple(obstacles), tuple(notes))


def _devices(spec: Data) -> Iterator[str]:
    devices = (spec.get("domain") or {}).get("devices") or {}
    if devices.get("filesystems"):
        yield "shared directories of the host do not move; take `filesystems` out"
    for member in ("hostDevices", "gpus"):
        for each in devices.get(member) or ():
            yield f"the device {each.get('name')} ({member}) belongs to this host; take it out"


def persistent_state(spec: Data) -> Sequence[str]:
    """Return the kinds of state beside the disks that the guest keeps, for people."""
    domain = spec.get("domain") or {}
    tpm = (domain.get("devices") or {}).get("tpm") or {}
    efi = ((domain.get("firmware") or {}).get("bootloader") or {}).get("efi") or {}
    found = (("the state of its TPM", tpm.get("persistent")), ("its EFI variables", efi.get("persistent")))
    return [name for name, holds in found if holds]


def volume_for(disk: CarriedDisk, size: int, namespace: str, labels: Mapping[str, str], storage_class: str) -> Data:
    """Return the DataVolume at the target, which waits for an upload.

    Its claim has room for a disk of this size: CDI adds what the target's file system takes.
    """
    claim, spec = disk.claim, disk.claim.get("spec") or {}
    wanted: Data = {
        "accessModes": list(spec.get("accessModes") or ["ReadWriteOnce"]),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "resources": {"requests": {"storage": str(max(size, _MIB))}},
    }
    if storage_class:
        wanted["storageClassName"] = storage_class
    own = {name: value for name, value in (claim["metadata"].get("labels") or {}).items() if not name.startswith(_MANAGED)}
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {
            "name": disk.name,
            "namespace": namespace,
            "labels": {**own, **labels},
            "annotations": {_IMMEDIATE: "true", _COLLECTED: "false"},
        },
        "spec": {"source": {"upload": {}}, "storage": wanted},
    }
