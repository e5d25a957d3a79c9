"""Cloud-init: what the guest is told, and what carries it."""

import base64

import pytest

from paddock.dialects.vitistack.translate import to_kubevirt, unmet
from paddock.dialects.vitistack.translate.errors import SecretNotFound
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.vitistack.translate.making import (
    STANDARD,
    Json,
    devices,
    instance,
    machine,
    objects,
    secret,
    small,
    storage_class,
    translated,
)

USER = "#cloud-config\na: 1\n"
NET = "version: 2\n"
LONG = "#cloud-config\n#" + "x" * 2033 + "\n"
OWN = "web-cloudinit"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def volume(cloud_init: Json, *world: Resource) -> Json:
    found = [each for each in instance(small(cloudInit=cloud_init), world)["volumes"] if each["name"] == "cloudinitdisk"]
    assert [list(each) for each in found] == [["name", "cloudInitNoCloud"]]
    inner: Json = found[0]["cloudInitNoCloud"]
    return inner


def own_data(cloud_init: Json, *world: Resource) -> Json | None:
    """Return the content of the machine's own Secret; None when there is none."""
    made = objects(small(cloudInit=cloud_init), world).get(f"Secret/{OWN}")
    return None if made is None else made["data"]


@pytest.mark.spec("vitistack", 43)
def test_nothing_said_is_nothing_made() -> None:
    names = [each["name"] for each in (*devices(small())["disks"], *instance(small())["volumes"])]
    assert names == ["root", "root"]


def test_the_disk_is_the_last() -> None:
    spec = small(cloudInit={}, disks=[{"name": "data", "size": "1Gi"}])
    assert [each["name"] for each in devices(spec)["disks"]] == ["root", "data", "cloudinitdisk"]
    assert [each["name"] for each in instance(spec)["volumes"]] == ["root", "data", "cloudinitdisk"]


@pytest.mark.parametrize(
    ("cloud_init", "expected"),
    [
        pytest.param({}, {"userData": "#cloud-config"}, marks=pytest.mark.spec("vitistack", 44)),
        ({"userData": ""}, {"userData": "#cloud-config"}),
        ({"userData": USER}, {"userData": USER}),
        ({"userData": "#!/bin/sh\n\t\r\nä"}, {"userData": "#!/bin/sh\n\t\r\nä"}),
        pytest.param(
            {"userData": USER, "networkData": NET}, {"userData": USER, "networkData": NET}, marks=pytest.mark.spec("vitistack", 49)
        ),
        ({"networkData": NET}, {"userData": "#cloud-config", "networkData": NET}),
        ({"userData": USER, "networkData": ""}, {"userData": USER}),
    ],
)
def test_small_documents_stand_in_the_machine(cloud_init: Json, expected: Json) -> None:
    assert volume(cloud_init) == expected
    assert own_data(cloud_init) is None


@pytest.mark.parametrize(("size", "inline"), [(2047, True), (2048, True), (2049, False)])
@pytest.mark.spec("vitistack", 48)
def test_large_user_data_goes_to_a_secret(size: int, *, inline: bool) -> None:
    text = "#cloud-config\n#" + "x" * (size - 16) + "\n"
    assert len(text) == size
    if inline:
        assert volume({"userData": text}) == {"userData": text}
    else:
        assert volume({"userData": text}) == {"secretRef": {"name": OWN}}
        assert own_data({"userData": text}) == {"userdata": encoded(text)}


def test_it_is_bytes_that_count() -> None:
    assert own_data({"userData": "#cloud-config\n#" + "ä" * 1020}) is not None


@pytest.mark.parametrize(
    ("cloud_init", "data"),
    [
        ({"userData": LONG, "networkData": NET}, {"userdata": LONG, "networkdata": NET}),
        ({"userData": USER, "networkData": LONG}, {"userdata": USER, "networkdata": LONG}),
    ],
)
def test_one_large_document_takes_the_other_along(cloud_init: Json, data: Json) -> None:
    assert volume(cloud_init) == {"secretRef": {"name": OWN}, "networkDataSecretRef": {"name": OWN}}
    assert own_data(cloud_init) == {key: encoded(text) for key, text in data.items()}


@pytest.mark.spec("vitistack", 46)
def test_a_secret_with_kubevirts_key_is_referred_to() -> None:
    for world in ([secret(userdata=USER)], []):
        assert volume({"secretRef": {"name": "keys"}}, *world) == {"secretRef": {"name": "keys"}}
        assert own_data({"secretRef": {"name": "keys"}}, *world) is None


@pytest.mark.spec("vitistack", 46)
def test_a_secret_with_another_key_is_copied() -> None:
    cloud_init = {"secretRef": {"name": "keys", "key": "foo"}}
    assert volume(cloud_init, secret(foo=USER, userdata="other")) == {"secretRef": {"name": OWN}}
    assert own_data(cloud_init, secret(foo=USER, userdata="other")) == {"userdata": encoded(USER)}
    assert own_data(cloud_init, secret(foo="changed")) == {"userdata": encoded("changed")}


def test_the_copy_belongs_to_the_machine_and_comes_first() -> None:
    made = translated(small(cloudInit={"userData": LONG}), labels={"cluster.vitistack.io/cluster-name": "c1"}).value
    assert [each.kind for each in made] == ["Secret", "PersistentVolumeClaim", "VirtualMachine"]
    assert made[0].metadata == ObjectMeta(
        name=OWN,
        namespace="prod",
        labels={
            "vitistack.io/managed-by": "kubevirt-operator",
            "vitistack.io/machine": "web",
            "cluster.vitistack.io/cluster-name": "c1",
            "vitistack.io/machine-template": "small",
        },
        ownerReferences=made[2].metadata.ownerReferences,
    )
    assert made[2].metadata.ownerReferences


def test_network_data_beside_user_data_from_a_secret() -> None:
    with_both = secret(userdata=USER, networkdata=NET)
    named = {"name": "keys"}
    assert volume({"secretRef": named}, with_both) == {"secretRef": named, "networkDataSecretRef": named}
    assert volume({"secretRef": named, "networkData": NET}, with_both) == {"secretRef": named, "networkData": NET}
    long = volume({"secretRef": named, "networkData": LONG}, with_both)
    assert long == {"secretRef": named, "networkDataSecretRef": {"name": OWN}}
    assert own_data({"secretRef": named, "networkData": LONG}, with_both) == {"networkdata": encoded(LONG)}
    copied: Json = {"secretRef": named | {"key": "foo"}}
    assert volume(copied, secret(foo=USER, networkdata=NET)) == {"secretRef": {"name": OWN}, "networkDataSecretRef": {"name": OWN}}
    assert own_data(copied, secret(foo=USER, networkdata=NET)) == {"userdata": encoded(USER), "networkdata": encoded(NET)}


def test_user_data_in_the_machine_wins_over_the_secret() -> None:
    cloud_init = {"userData": USER, "secretRef": {"name": "keys", "key": "foo"}}
    assert volume(cloud_init, secret(foo="other", networkdata=NET)) == {"userData": USER}
    (loss,) = translated(small(cloudInit=cloud_init)).losses
    assert (loss.field, loss.value, loss.why) == ("spec.cloudInit.secretRef", "keys", "user data in the machine wins")
    complete = ObjectSet([storage_class("standard")], complete=True)
    assert unmet(machine(small(cloudInit=cloud_init)), complete, STANDARD) == ()


@pytest.mark.parametrize(
    ("key", "world", "text"),
    [
        ("userdata", [], 'Secret "keys" not found in namespace prod; create it or correct spec.cloudInit.secretRef.name'),
        ("userdata", [secret(foo=USER)], 'Secret "keys" has no key "userdata"; add the key or correct spec.cloudInit.secretRef.key'),
        ("foo", [], 'Secret "keys" not found'),
        ("foo", [secret(userdata=USER)], 'Secret "keys" has no key "foo"'),
    ],
)
@pytest.mark.spec("vitistack", 47)
def test_a_secret_that_is_missing(key: str, world: list[Resource], text: str) -> None:
    source = machine(small(cloudInit={"secretRef": {"name": "keys", "key": key}}))
    classes = storage_class("standard", default="true")
    with pytest.raises(SecretNotFound) as raised:
        to_kubevirt(source, ObjectSet([*world, classes], complete=True), Rendering())
    error = raised.value
    assert (error.name, error.key, error.path, error.phase) == ("keys", key, ("spec", "cloudInit", "secretRef"), "Pending")
    assert text in str(error)
    there = secret(**{key: USER})
    assert len(to_kubevirt(source, ObjectSet([there, classes], complete=True), Rendering()).value) >= 2


@pytest.mark.parametrize(
    ("key", "world", "instead"),
    [
        ("userdata", [], None),
        ("userdata", [secret(foo=USER)], "the disk refers to Secret keys as it is"),
        ("foo", [], "the disk refers to Secret web-cloudinit, which has to be given the key userdata"),
    ],
)
def test_a_secret_that_is_not_in_the_input(key: str, world: list[Resource], instead: str | None) -> None:
    cloud_init = {"secretRef": {"name": "keys", "key": key}}
    assert [loss.instead for loss in translated(small(cloudInit=cloud_init), world).losses] == ([instead] if instead else [])
    assert volume(cloud_init, *world) == {"secretRef": {"name": "keys" if key == "userdata" else OWN}}
    assert own_data(cloud_init, *world) is None
