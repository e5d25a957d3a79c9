"""The prerequisites in their order."""

from typing import Any

import pytest

from paddock.dialects.stakater.plan.conditions import ReferencedObjects, blocker
from paddock.dialects.stakater.plan.objects import bound
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.stakater.plan.made import Data, claim, front, machine, source

NETWORK = NetworkAttachmentDefinition(metadata=ObjectMeta(name="vlan10", namespace="default"))
MULTUS: Data = {"networks": [{"name": "data", "multus": {"networkName": "vlan10"}}]}
KEYS: Data = {"sshPublicKey": {"secretName": "keys"}}
IMAGE: Data = {"pvc": {"namespace": "openshift-virtualization-os-images", "name": "golden"}}


def golden(size: str, mode: str = "Block", **meta: Any) -> Resource:
    """The claim of an image."""
    return claim("golden", size, mode, namespace="openshift-virtualization-os-images", **meta)


CASES: list[tuple[Data, list[Resource], str | None]] = [
    ({}, [], "DataSourceNotFound"),
    ({}, [source("False")], "DataSourceNotReady"),
    ({}, [source(None)], "DataSourceNotReady"),
    ({}, [source()], None),
    (KEYS, [], "DataSourceNotFound"),
    (KEYS, [source()], "SSHKeySecretNotFound"),
    (MULTUS, [source()], "NetworkNotFound"),
    (MULTUS, [source(), NETWORK], None),
    ({**MULTUS, **KEYS}, [source()], "SSHKeySecretNotFound"),
    ({"networks": [{"name": "a", "bindingName": "ours"}]}, [source()], "BindingUnavailable"),
    ({"storage": {"size": "10Gi"}}, [source(content=IMAGE), golden("30Gi")], "Creating"),
    ({"storage": {"size": "30Gi"}}, [source(content=IMAGE), golden("30Gi")], None),
    # What a filesystem takes is no part of the image.
    ({"storage": {"size": "30Gi"}}, [source(content=IMAGE), golden("31Gi", "Filesystem")], None),
    ({"storage": {"size": "30Gi"}}, [source(content=IMAGE), golden("40Gi", "Filesystem")], "Creating"),
    ({"storage": {"size": "10Gi"}}, [source(content=IMAGE)], None),
]


@pytest.mark.parametrize(("parameters", "world", "reason"), CASES)
def test_holds(parameters: Data, world: list[Resource], reason: str | None) -> None:
    vm = front(**parameters)
    sources = ReferencedObjects(ObjectSet(world, complete=True), lambda namespace, name: False, lambda name: "0.06")
    found = blocker(vm, bound(vm, frozenset({"l2bridge"}), "fail"), None, sources)
    assert (found.ready.reason if found is not None and found.ready is not None else None) == reason
    assert found is None or (found.synced.status in ("Unknown", "False") and found.synced.message)


def test_what_a_machine_has_it_does_not_wait_for_again() -> None:
    vm = front(**MULTUS, **KEYS)
    sources = ReferencedObjects(ObjectSet(complete=True), lambda namespace, name: False, lambda name: "0.06")
    assert blocker(vm, bound(vm, frozenset({"l2bridge"}), "fail"), machine(vm), sources) is None
    other = front(**MULTUS, sshPublicKey={"secretName": "others"})
    found = blocker(other, bound(other, frozenset({"l2bridge"}), "fail"), machine(vm), sources)
    assert found is not None and found.ready is not None and found.ready.reason == "SSHKeySecretNotFound"
