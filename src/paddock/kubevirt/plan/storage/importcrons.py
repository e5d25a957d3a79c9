"""The steps of a recurring import (docs/spec/kubevirt.md 5.5). Pure.

digest seen -> a DataVolume for it -> when it is whole, the DataSource names it -> of the older ones only some are kept
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from paddock.base.jsondata import Data
from paddock.kubevirt.kinds.dataimportcron import DataImportCron
from paddock.kubevirt.kinds.datasource import DataSourceSource
from paddock.kubevirt.kinds.datavolume import DataVolumeSource
from paddock.kubevirt.kinds.datavolume_kind import DataCondition, DataVolume

LABEL = "cdi.kubevirt.io/dataImportCron"
DESIRED = "cdi.kubevirt.io/storage.import.sourceDesiredDigest"
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
FINALIZER = "cdi.kubevirt.io/dataImportCronFinalizer"
KEEP = 3
# Members of a DataSource's source that an import is not.
OTHER_SOURCES = tuple(name for name in DataSourceSource.__struct_fields__ if name != "pvc")
_HINTS = "instancetype.kubevirt.io/default-"
_PREFIX = 12


class CronImports(msgspec.Struct, frozen=True):
    """The imports of one cron."""

    # the DataVolumes that it made
    volumes: tuple[DataVolume, ...]
    desired: str
    # why there is no digest
    trouble: tuple[str, str] | None = None


def volume_name(cron: DataImportCron, digest: str) -> str:
    """The DataVolume of a digest."""
    short = digest.rpartition(":")[2][:_PREFIX]
    return f"{cron.spec.managedDataSource[: 253 - _PREFIX - 1].rstrip('-.')}-{short}"


def volume_of(cron: DataImportCron, digest: str) -> Data:
    """The DataVolume that imports a digest."""
    template = cron.spec.template
    meta = template.metadata
    spec: Data = msgspec.to_builtins(template.spec)
    registry = (spec.get("source") or {}).get("registry")
    if registry is not None:
        registry["url"] = pinned(registry["url"], digest)
    return {
        "metadata": {
            "name": volume_name(cron, digest),
            "namespace": cron.metadata.namespace,
            "labels": {**((meta.labels if meta is not None else None) or {}), **_hints(cron), LABEL: label_of(cron)},
            "annotations": {**((meta.annotations if meta is not None else None) or {}), BIND_NOW: "true"},
        },
        "spec": without_nothing(spec),
    }


def label_of(cron: DataImportCron) -> str:
    """Return the label of everything that a cron made."""
    return cron.metadata.name


def without_nothing(value: Any) -> Any:
    """Members that are not given are left out."""
    if isinstance(value, dict):
        return {name: without_nothing(each) for name, each in value.items() if each is not None}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


def _hints(cron: DataImportCron) -> dict[str, str]:
    return {name: value for name, value in (cron.metadata.labels or {}).items() if name.startswith(_HINTS)}


def pinned(url: str, digest: str) -> str:
    """The address of exactly this image. A tag may have moved by the time it is imported."""
    parts = urlsplit(url)
    path, _, last = parts.path.rpartition("/")
    return f"{parts.scheme}://{parts.netloc}{path}/{last.partition(':')[0]}@{digest}"


def data_source_of(cron: DataImportCron, volume: DataVolume) -> Data:
    """The DataSource that names an import."""
    return {
        "metadata": {
            "name": cron.spec.managedDataSource,
            "namespace": cron.metadata.namespace,
            "labels": {**_hints(cron), LABEL: label_of(cron)},
        },
        "spec": {"source": {"pvc": {"namespace": volume.metadata.namespace, "name": volume.metadata.name}}},
    }


def is_whole(volume: DataVolume) -> bool:
    """Return whether an import is complete."""
    return volume.status is not None and volume.status.phase == "Succeeded"


def superfluous(cron: DataImportCron, imports: CronImports) -> list[str]:
    """Imports that are kept no longer: all but the newest, and never the one that is wanted."""
    if cron.spec.garbageCollect == "Never":
        return []
    keep = KEEP if cron.spec.importsToKeep is None else cron.spec.importsToKeep
    wanted = volume_name(cron, imports.desired) if imports.desired else ""
    if wanted not in {each.metadata.name for each in imports.volumes if is_whole(each)}:
        # Until there is a new one the old ones are all there is.
        return []
    older = sorted(
        (each for each in imports.volumes if each.metadata.name != wanted),
        key=lambda each: (each.metadata.creationTimestamp or "", each.metadata.name),
        reverse=True,
    )
    return [each.metadata.name for each in older[max(0, keep - 1) :]]


def conditions(cron: DataImportCron, imports: CronImports) -> Iterable[DataCondition]:
    """Yield the conditions of a cron."""
    if not imports.desired:
        reason, message = imports.trouble or ("NoDigest", "No digest yet")
        yield _false("Progressing", "NoImport", "No current import")
        yield _false("UpToDate", reason, message)
        return
    wanted = volume_name(cron, imports.desired)
    found = next((each for each in imports.volumes if each.metadata.name == wanted), None)
    if found is not None and is_whole(found):
        yield _false("Progressing", "NoImport", "No current import")
        trouble = imports.trouble
        text = "Latest import is up to date" if trouble is None else f"The last look failed: {trouble[1]}"
        yield DataCondition(type="UpToDate", status="True", reason="UpToDate", message=text)
        return
    phase = (found.status.phase if found is not None and found.status is not None else None) or "Pending"
    runs = phase.endswith("InProgress")
    status = "True" if runs else "False"
    text = f"Import of {wanted} is {'in progress' if runs else phase}"
    yield DataCondition(type="Progressing", status=status, reason="ImportProgressing" if runs else "ImportScheduled", message=text)
    has_older = any(is_whole(each) for each in imports.volumes)
    reason = "Outdated" if has_older or phase == "Failed" else "ImportProgressing" if runs else "ImportScheduled"
    yield _false("UpToDate", reason, text)


def _false(type: str, reason: str, message: str) -> DataCondition:
    return DataCondition(type=type, status="False", reason=reason, message=message)


def source_of(cron: DataImportCron) -> DataVolumeSource:
    """Return the source of a cron's images."""
    return cron.spec.template.spec.source or DataVolumeSource()
