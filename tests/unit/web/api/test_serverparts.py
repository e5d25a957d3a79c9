import pytest

from paddock.fleet import kinds
from paddock.web.api.serverparts import NO_SUSPENSION, ServedParts
from paddock.web.live import kindtable
from paddock.web.live.topics import TOPICS
from paddock.web.rights import SUBRESOURCES
from tests.kit.declarations.frontkinds import VITISTACK

EVERY = frozenset(each.qualified for each in kinds.MACHINES) | frozenset(each.qualified for each in kindtable.EVERY)


def missing(parts: ServedParts) -> dict[str, str]:
    found = list(parts.missing())
    assert len({each.what for each in found}) == len(found)
    return {each.what: each.why for each in found}


def test_paddocks_own_server_lacks_nothing() -> None:
    parts = ServedParts(own=True, groups=[SUBRESOURCES], kinds=EVERY)
    assert parts.dialects() == ["kubevirt", "kubermatic", "stakater", "virtrigaud", "vitistack"]
    assert missing(parts) == {}


def test_a_cluster_with_everything_lacks_what_paddock_alone_has() -> None:
    found = missing(ServedParts(own=False, groups=[SUBRESOURCES, "metrics.k8s.io"], kinds=EVERY))
    assert found.keys() == {"history", "checks", "suspend"} and found["suspend"] == NO_SUSPENSION


def test_a_cluster_without_kubevirt() -> None:
    parts = ServedParts(own=False, groups=["apps"], kinds={"pods", "events", "persistentvolumeclaims"})
    found = missing(parts)
    assert parts.dialects() == []
    assert {"list", "create", "power", "console", "vnc", "snapshot", "clone", "usage", "kubevirt"} <= found.keys()
    # Claims are Kubernetes' own, and so are events.
    assert {each for each in TOPICS if each not in found} == {"machines", "tasks", "events", "volumes"}


@pytest.mark.parametrize(
    ("gone", "lacking"),
    [
        (kinds.VM, {"kubevirt"}),
        (VITISTACK, {"vitistack"}),
        (kindtable.PROVIDERS[0], {"providers"}),
        (kindtable.SNAPSHOTS, set()),
        (kindtable.IMAGES[0], {"kubermatic"}),
    ],
    ids=str,
)
def test_a_part_is_missing_with_the_last_of_its_kinds(gone: kinds.MachineKind, lacking: set[str]) -> None:
    assert missing(ServedParts(own=True, groups=[SUBRESOURCES], kinds=EVERY - {gone.qualified})).keys() == lacking


def test_without_virt_api_there_are_no_verbs() -> None:
    found = missing(ServedParts(own=False, groups=["metrics.k8s.io"], kinds=EVERY))
    assert "virt-api is not there" in found["power"] and found["power"] == found["vnc"] == found["console"]
