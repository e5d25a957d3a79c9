"""Series of machines, by table."""

from typing import Any

import msgspec
import pytest

from paddock.app.metrics.series import families, machines
from paddock.app.metrics.series.page import MetricsPage
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubevirt.kinds.virtualmachine import PRINTABLE_STATUSES, VirtualMachine
from tests.kit.prometheus import Family, read


def made(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **template: Any) -> VirtualMachine:
    meta = {"name": "web", "namespace": "shop", "creationTimestamp": "1970-01-01T00:01:40Z"}
    document = {"metadata": meta, "spec": {"template": {"spec": template}, **(spec or {})}, "status": status or {}}
    return msgspec.convert(document, VirtualMachine)


def page(machine: VirtualMachine) -> dict[str, Family]:
    found = MetricsPage(families.ALL)
    found.add(machines.metrics_of(machine).samples)
    return read(found.text())


@pytest.mark.parametrize(
    ("word", "group"),
    [
        *[(word, "starting") for word in ("Provisioning", "Starting", "WaitingForVolumeBinding")],
        *[(word, "non_running") for word in ("Stopped", "Paused", "Stopping", "Terminating")],
        *[(word, "error") for word in ("CrashLoopBackOff", "Unknown", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff")],
        *[(word, "error") for word in ("ErrorPvcNotFound", "DataVolumeError")],
        ("Running", "running"),
        ("Migrating", "migrating"),
    ],
)
def test_states_by_groups(word: str, group: str) -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:03:20Z"}
    older = {"type": "Paused", "status": "False", "lastTransitionTime": "1970-01-01T00:02:00Z"}
    found = page(made(status={"printableStatus": word, "conditions": [ready, older]}))
    values = {each: found[f"kubevirt_vm_{each}_status_last_transition_timestamp_seconds"].values() for each in families.GROUPS}
    assert values == {each: [200 if each == group else 0] for each in families.GROUPS}
    assert found["kubevirt_vm_info"].values(status=word.lower(), status_group=group) == [1]


def test_every_state_has_a_group() -> None:
    assert {machines.group_of(word) for word in PRINTABLE_STATUSES} == set(families.GROUPS)


def test_a_machine_without_conditions_is_as_old_as_its_state() -> None:
    found = page(made(status={"printableStatus": "Stopped"}))
    assert found["kubevirt_vm_non_running_status_last_transition_timestamp_seconds"].values() == [100]
    assert found["kubevirt_vm_create_date_timestamp_seconds"].values(name="web", namespace="shop") == [100]


@pytest.mark.parametrize(
    ("domain", "requests", "limits"),
    [
        ({}, {("cpu", "cores", "default"): 1}, {}),
        ({"cpu": {"cores": 2, "sockets": 3}}, {("cpu", "cores", "domain"): 2, ("cpu", "sockets", "domain"): 3}, {}),
        ({"cpu": {"model": "host-model"}}, {("cpu", "cores", "default"): 1}, {}),
        (
            {"resources": {"requests": {"cpu": "500m", "memory": "1Ki"}, "limits": {"cpu": 2}}},
            {("cpu", "cores", "requests"): 0.5, ("memory", "bytes", "domain"): 1024},
            {("cpu", "cores"): 2},
        ),
        (
            {"cpu": {"threads": 2}, "memory": {"guest": "2Ki", "hugepages": {"pageSize": "2Mi"}}},
            {("cpu", "threads", "domain"): 2, ("memory", "bytes", "guest"): 2048, ("memory", "bytes", "hugepages"): 2 << 20},
            {},
        ),
    ],
)
def test_resources(domain: dict[str, Any], requests: dict[Any, float], limits: dict[Any, float]) -> None:
    found = page(made(domain=domain))
    for name, members, wanted in (
        ("kubevirt_vm_resource_requests", ("resource", "unit", "source"), requests),
        ("kubevirt_vm_resource_limits", ("resource", "unit"), limits),
    ):
        series = found[name].series
        assert {tuple(dict(labels)[each] for each in members): value for (_, labels), value in series.items()} == wanted


def test_an_instancetype_gives_the_size() -> None:
    found = page(made({"instancetype": {"name": "u1.small"}}, domain={}))
    assert found["kubevirt_vm_resource_requests"].series == {}
    assert found["kubevirt_vm_info"].values(instance_type="u1.small", preference="<none>") == [1]


def test_disks_are_those_whose_claims_are_there_each_once() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    volumes = [
        {"name": "a", **claim},
        {"name": "b", **claim},
        {"name": "c", "dataVolume": {"name": "gone"}},
        {"name": "d", "emptyDisk": {}},
    ]
    spec = {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Block"}
    sizes = {"data": machines.size(msgspec.convert({"metadata": {"name": "data"}, "spec": spec}, PersistentVolumeClaim))}
    found = MetricsPage(families.ALL)
    found.add(machines.disks(machines.metrics_of(made(volumes=volumes)), lambda namespace, name: sizes.get(name)))
    series = read(found.text())["kubevirt_vm_disk_allocated_size_bytes"]
    assert series.values(persistentvolumeclaim="data", device="a", volume_mode="Block") == [1 << 30]
    assert len(series.series) == 1
