"""Cloud-init documents of KubeVirt machines, however they are carried."""

from typing import Any

import pytest

from paddock.kubernetes.meta.wire import to_data
from tests.unit.dialects.vitistack.translate.making import Json, secret
from tests.unit.dialects.vitistack.translate.vms import CLAIM, INSTANCE, ROOT, back, claim, losses, spec_of, typed, vm

USER = "#cloud-config\na: 1\n"


def told(document: Json, **volume: Any) -> Json:
    """A machine with a cloud-init disk."""
    disks = [ROOT, {"name": "ci", "disk": {"bus": "virtio"}}]
    return vm(devices={"disks": disks}, instance={"volumes": [CLAIM, {"name": "ci", **(volume or {"cloudInitNoCloud": document})}]})


@pytest.mark.parametrize(
    ("document", "expected", "lost"),
    [
        ({"userData": USER}, {"userData": USER}, []),
        ({"userData": "#cloud-config"}, {}, []),
        ({"userDataBase64": "I2Nsb3VkLWNvbmZpZwphOiAxCg=="}, {"userData": USER}, []),
        ({"userDataBase64": "!"}, {}, ["userDataBase64"]),
        ({"userDataBase64": "/w=="}, {}, ["userDataBase64"]),
        ({"userData": USER, "networkData": "version: 2"}, {"userData": USER, "networkData": "version: 2"}, []),
        ({"userData": USER, "networkDataBase64": "dmVyc2lvbjogMg=="}, {"userData": USER, "networkData": "version: 2"}, []),
        ({"secretRef": {"name": "keys"}}, {"secretRef": {"name": "keys"}}, []),
        ({"secretRef": {"name": "keys"}, "networkDataSecretRef": {"name": "keys"}}, {"secretRef": {"name": "keys"}}, []),
        (
            {"secretRef": {"name": "keys"}, "networkDataSecretRef": {"name": "net"}},
            {"secretRef": {"name": "keys"}, "networkData": "version: 1"},
            [],
        ),
        ({"userData": USER, "networkDataSecretRef": {"name": "none"}}, {"userData": USER}, ["networkDataSecretRef"]),
        ({"userData": USER, "networkDataSecretRef": {"name": "keys"}}, {"userData": USER, "networkData": "version: 2"}, []),
    ],
)
def test_cloud_init(document: Json, expected: Json, lost: list[str]) -> None:
    world: list[Any] = [claim(), secret(userdata=USER, networkdata="version: 2"), secret("net", networkdata="version: 1")]
    assert spec_of(told(document), *world)["cloudInit"] == expected
    assert losses(told(document), *world) == [f"{INSTANCE}.volumes[1].{name}" for name in lost]


def test_a_config_drive_becomes_no_cloud() -> None:
    raw = told({}, cloudInitConfigDrive={"userData": USER})
    assert spec_of(raw)["cloudInit"] == {"userData": USER}
    assert losses(raw) == [f"{INSTANCE}.volumes[1].cloudInitConfigDrive"]
    assert USER not in repr(back(raw).losses)


OWNER = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "name": "web",
    "uid": "u-1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def test_the_secret_goes_along() -> None:
    given = typed(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys", "namespace": "prod", "uid": "x", "resourceVersion": "5", "ownerReferences": [OWNER]},
            "data": {"userdata": "YQ=="},
        }
    )
    made = back(told({"secretRef": {"name": "keys"}}), claim(), given)
    metadata = {"name": "keys", "namespace": "prod"}
    assert to_data(made.value[0]) == {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"userdata": "YQ=="}}
