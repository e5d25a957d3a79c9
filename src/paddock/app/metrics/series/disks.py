"""Series of CDI: imports, copies, profiles; and those of machines' snapshots."""

from collections.abc import Iterable, Iterator

from paddock.app.metrics.series.page import Sample, labels, sample
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.meta import ages
from paddock.kubevirt.kinds.dataimportcron import DataImportCron
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot
from paddock.kubevirt.kinds.storageprofile import StorageProfile

# As the kubelet has it.
SPACE = "kubelet_volume_stats_used_bytes"
_MANY_RESTARTS = 3
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_FOR_MACHINES = "storageclass.kubevirt.io/is-default-virt-class"


def space(claims: Iterable[tuple[Key, int]]) -> Iterator[Sample]:
    """Yield the bytes that the disks of claims take on the host."""
    for key, used in claims:
        yield sample(SPACE, labels(namespace=key.namespace, persistentvolumeclaim=key.name), used)


def transfers(volumes: Iterable[DataVolume]) -> Iterator[Sample]:
    """Yield the progress of each import and copy, and the number of those that make none."""
    pending = restarted = 0
    for volume in volumes:
        status = volume.status
        if status is None:
            continue
        pending += status.phase == "Pending"
        restarted += (status.restartCount or 0) > _MANY_RESTARTS and status.phase != "Succeeded"
        done = _percent(status.progress or "")
        if done is not None and volume.metadata.uid:
            name = "clone" if _is_copy(volume) else "import"
            yield sample(f"kubevirt_cdi_{name}_progress_total", labels(ownerUID=volume.metadata.uid), done)
    yield sample("kubevirt_cdi_datavolume_pending", "", pending)
    yield sample("kubevirt_cdi_import_pods_high_restart", "", restarted)


def _is_copy(volume: DataVolume) -> bool:
    source = volume.spec.source
    return source is not None and (source.pvc is not None or source.snapshot is not None)


def _percent(text: str) -> float | None:
    try:
        return float(text.removesuffix("%")) if text.endswith("%") else None
    except ValueError:
        return None


def crons(data_import_crons: Iterable[DataImportCron]) -> Iterator[Sample]:
    """Yield a series for each recurring import that tells if it is outdated."""
    for cron in data_import_crons:
        conditions = (cron.status.conditions if cron.status is not None else None) or ()
        current = any(each.type == "UpToDate" and each.status == "True" for each in conditions)
        about = labels(ns=cron.metadata.namespace or "", cron_name=cron.metadata.name)
        yield sample("kubevirt_cdi_dataimportcron_outdated", about, 0 if current else 1)


def profiles(storage_profiles: Iterable[StorageProfile], classes: Iterable[StorageClass]) -> Iterator[Sample]:
    """The profiles of the StorageClasses."""
    notes = {each.metadata.name: each.metadata.annotations or {} for each in classes}
    for profile in storage_profiles:
        status = profile.status
        sets = (status.claimPropertySets if status is not None else None) or ()
        marks = notes.get(profile.metadata.name, {})
        about = labels(
            storageclass=(status.storageClass if status is not None else None) or profile.metadata.name,
            provisioner=(status.provisioner if status is not None else None) or "",
            complete=_word(bool(sets)),
            default=_word(marks.get(_DEFAULT) == "true"),
            virtdefault=_word(marks.get(_DEFAULT_FOR_MACHINES) == "true"),
            rwx=_word(any("ReadWriteMany" in (each.accessModes or ()) for each in sets)),
            smartclone=_word(status is not None and status.cloneStrategy in ("snapshot", "csi-clone")),
            degraded="false",
        )
        yield sample("kubevirt_cdi_storageprofile_info", about, 1)


def _word(value: bool) -> str:
    return "true" if value else "false"


def snapshots(virtual_machine_snapshots: Iterable[VirtualMachineSnapshot]) -> Iterator[Sample]:
    """Yield the time at which each snapshot of a machine was complete."""
    for each in virtual_machine_snapshots:
        status = each.status
        if status is not None and status.readyToUse and (at := ages.seconds_of(status.creationTime or "")):
            about = labels(name=each.spec.source.name, snapshot_name=each.metadata.name, namespace=each.metadata.namespace or "")
            yield sample("kubevirt_vmsnapshot_succeeded_timestamp_seconds", about, at)
