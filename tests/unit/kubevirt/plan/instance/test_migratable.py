"""The conditions that say whether a machine can move to another node."""

from typing import Any

import pytest

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import migratable

POD = [{"name": "default", "pod": {}}]


def _instance(devices: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> VirtualMachineInstance:
    whole = {"domain": {"devices": devices}, **spec}
    return from_data({"metadata": {"name": "web", "annotations": annotations}, "spec": whole}, VirtualMachineInstance)


def _claim(*modes: str) -> PersistentVolumeClaim:
    return from_data({"metadata": {"name": "data"}, "spec": {"accessModes": list(modes)}}, PersistentVolumeClaim)


BRIDGE = {"interfaces": [{"name": "default", "bridge": {}}]}
MASQUERADE = {"interfaces": [{"name": "default", "masquerade": {}}]}
CLAIM = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]
ALLOWED = {"kubevirt.io/allow-pod-bridge-network-live-migration": ""}


@pytest.mark.parametrize(
    ("instance", "claim", "reason"),
    [
        (_instance(MASQUERADE, networks=POD), _claim(), ""),
        (_instance(BRIDGE, networks=POD), _claim(), "InterfaceNotLiveMigratable"),
        (_instance(BRIDGE, ALLOWED, networks=POD), _claim(), ""),
        (_instance(BRIDGE, networks=[{"name": "default", "multus": {"networkName": "x"}}]), _claim(), ""),
        (_instance({}, volumes=CLAIM), _claim("ReadWriteOnce"), "DisksNotLiveMigratable"),
        (_instance({}, volumes=CLAIM), _claim("ReadWriteMany"), ""),
        (_instance({}, volumes=[{"name": "a", "hostDisk": {"path": "/a", "type": "Disk"}}]), _claim(), "DisksNotLiveMigratable"),
        (_instance({"gpus": [{"name": "a", "deviceName": "b"}]}), _claim(), "HostDeviceNotLiveMigratable"),
    ],
)
def test_the_first_obstacle(instance: VirtualMachineInstance, claim: PersistentVolumeClaim, reason: str) -> None:
    found = migratable.obstacle(instance, {"data": claim})
    assert (found or ("", ""))[0] == reason
    live, storage = migratable.conditions(3, found)
    assert (live.status, live.reason or "") == ("False" if reason else "True", reason)
    assert storage.status == ("False" if reason and reason != "DisksNotLiveMigratable" else "True")


def test_a_single_host() -> None:
    assert {each.reason for each in migratable.conditions(1, None)} == {"SingleHost"}
