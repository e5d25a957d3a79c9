"""Series of CDI, by table."""

from typing import Any

import msgspec
import pytest

from paddock.app.metrics.series import disks, families
from paddock.app.metrics.series.page import MetricsPage, Sample
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubevirt.kinds.dataimportcron import DataImportCron
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.storageprofile import StorageProfile
from tests.kit.prometheus import Family, read


def page(*samples: Sample) -> dict[str, Family]:
    found = MetricsPage(families.ALL)
    found.add(samples)
    return read(found.text())


@pytest.mark.parametrize(
    ("source", "status", "series"),
    [
        ({"http": {"url": "http://x"}}, {"phase": "ImportInProgress", "progress": "45.34%"}, {"import_progress_total": 45.34}),
        ({"pvc": {"name": "a"}}, {"phase": "CloneInProgress", "progress": "1.00%"}, {"clone_progress_total": 1}),
        ({"snapshot": {"name": "a"}}, {"phase": "Succeeded", "progress": "100.0%"}, {"clone_progress_total": 100}),
        ({"blank": {}}, {"phase": "Pending", "progress": "N/A"}, {"datavolume_pending": 1}),
        ({"blank": {}}, {"phase": "ImportInProgress", "progress": "x%", "restartCount": 4}, {"import_pods_high_restart": 1}),
        ({"blank": {}}, {"phase": "Succeeded", "restartCount": 4}, {}),
    ],
)
def test_transfers(source: dict[str, Any], status: dict[str, Any], series: dict[str, float]) -> None:
    volume = msgspec.convert({"metadata": {"name": "d", "uid": "u-1"}, "spec": {"source": source}, "status": status}, DataVolume)
    found = page(*disks.transfers([volume]))
    told = {name.removeprefix("kubevirt_cdi_"): family.values() for name, family in found.items() if any(family.values())}
    assert told == {name: [value] for name, value in series.items()}
    assert all(each == {"ownerUID": "u-1"} for name in found if "progress" in name for each in found[name].labels())


@pytest.mark.parametrize(("status", "outdated"), [("True", 0), ("False", 1)])
def test_crons(status: str, outdated: int) -> None:
    condition = {"type": "UpToDate", "status": status}
    cron = msgspec.convert({"metadata": {"name": "c", "namespace": "n"}, "status": {"conditions": [condition]}}, DataImportCron)
    assert page(*disks.crons([cron]))["kubevirt_cdi_dataimportcron_outdated"].values(ns="n") == [outdated]


def test_profiles() -> None:
    sets = [{"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}]
    profile = msgspec.convert({"metadata": {"name": "fast"}, "status": {"provisioner": "p", "claimPropertySets": sets}}, StorageProfile)
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    given = msgspec.convert({"metadata": {"name": "fast", "annotations": annotations}}, StorageClass)
    found = page(*disks.profiles([profile], [given]))["kubevirt_cdi_storageprofile_info"]
    about = {"storageclass": "fast", "provisioner": "p", "complete": "true", "default": "true", "virtdefault": "false", "rwx": "true"}
    assert found.values(**about) == [1]
