"""KubeVirt's feature gates: which a release has on, what a machine needs, and the words for what is missing."""

from typing import Any

import pytest

from paddock.base import ownnames
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.releases import NEWEST, OLDEST
from paddock.kubernetes.schema.finding import format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import gates, missinggates
from paddock.kubevirt.kinds.gates import GATES, ClusterGates
from paddock.kubevirt.kinds.missinggates import MissingGates
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.rules import gates as gaterules
from tests.unit.kubevirt.kinds.gatedfeatures import FEATURES, GatedFeature
from tests.unit.kubevirt.kinds.objects import machine, place

# One gate of every history, and the first release where it is on without being named; None: no release.
ON_BY_ITSELF = {"HostDisk": None, "GPU": 4, "MultiArchitecture": 8, "PanicDevices": 9, "RebootPolicy": 9, "WorkloadEncryptionSEV": 9}


def parsed(changes: Any) -> VirtualMachine:
    value: VirtualMachine = from_data(machine(changes), VirtualMachine)
    return value


def needed(feature: GatedFeature, cluster: ClusterGates) -> list[tuple[str, str]]:
    return [(each.gate, format_path(each.path)) for each in missinggates.missing(parsed(feature.changes), cluster)]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda each: f"{each.gate} {each.path}")
def test_a_feature_needs_its_gate_at_its_place(feature: GatedFeature) -> None:
    life, named = GATES[feature.gate], frozenset({feature.gate, *feature.beside})
    path = place(feature.path, "VirtualMachine")
    asking = [release for release in range(OLDEST, NEWEST + 1) if life.since <= release < min(life.final, life.default)]
    assert asking
    for release in asking:
        assert needed(feature, ClusterGates(release, on=feature.beside)) == [(feature.gate, path)]
        assert needed(feature, ClusterGates(release, on=named)) == []


def test_every_gate_has_a_feature() -> None:
    assert {each.gate for each in FEATURES} == GATES.keys()


@pytest.mark.parametrize(("gate", "since"), ON_BY_ITSELF.items())
def test_gates_that_a_release_has_on(gate: str, since: int | None) -> None:
    life = GATES[gate]
    for release in range(OLDEST, NEWEST + 1):
        assert ClusterGates(release).has(gate) == (release < life.since or (since is not None and release >= since)), release
        assert ClusterGates(release, on=frozenset({gate})).has(gate)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"P.domain.devices.downwardMetrics": {}},
            (
                "DownwardMetrics feature gate is not enabled in Paddock's engine, whatever the KubeVirt object says: "
                "guests get no metrics of their host"
            ),
        ),
        (
            {"P.domain.devices.autoattachVSOCK": True},
            (
                "VSOCK feature gate is not enabled; "
                "add VSOCK to spec.configuration.developerConfiguration.featureGates of KubeVirt kubevirt/kubevirt"
            ),
        ),
    ],
)
def test_a_gate_of_the_engine_is_asked_of_the_kubevirt_object_where_there_is_a_feature(changes: dict[str, Any], words: str) -> None:
    assert f"Invalid value: {words}" in {each.message for each in admit(machine(changes), AdmissionSettings()).findings}
    all_on = AdmissionSettings(gates=gaterules.offered(frozenset(GATES)))
    assert any(each.rule == "kubevirt/V81" for each in admit(machine(changes), all_on).findings) == ("whatever" in words)


@pytest.mark.parametrize(
    ("on", "off", "taken"), [((), (), True), ((), ("RebootPolicy",), False), (("RebootPolicy",), ("RebootPolicy",), True)]
)
def test_a_gate_of_the_engine_can_be_turned_off(on: tuple[str, ...], off: tuple[str, ...], taken: bool) -> None:
    settings = AdmissionSettings(gates=frozenset(on), gates_off=frozenset(off))
    found = admit(machine({"P.domain.rebootPolicy": "Reboot"}), settings).findings
    assert any(each.rule == "kubevirt/V81" for each in found) is not taken


def test_a_server_without_an_engine_leaves_the_gates_to_whoever_has_one() -> None:
    assert admit(machine({"P.domain.devices.autoattachVSOCK": True}), AdmissionSettings(controllers=False)).accepted


def test_a_gate_that_is_beta_can_be_turned_off_and_one_that_is_final_cannot() -> None:
    off = frozenset({"RebootPolicy", "GPU"})
    assert not ClusterGates(off=off).has("RebootPolicy")
    assert ClusterGates(off=off).has("GPU")
    assert ClusterGates(off=off, on=frozenset({"RebootPolicy"})).has("RebootPolicy")


@pytest.mark.parametrize(("release", "on"), [(5, True), (7, True), (8, False), (9, False)])
def test_an_older_gate_of_the_same_feature_counts_until_it_is_gone(release: int, on: bool) -> None:
    cluster = ClusterGates(release, on=frozenset({"ExperimentalVirtiofsSupport"}))
    assert cluster.has("EnableVirtioFsStorageVolumes") == on


def installation(version: str = "v1.9.0", **configuration: Any) -> dict[str, Any]:
    metadata = {"name": "kv", "namespace": "virt"}
    return {"metadata": metadata, "spec": {"configuration": configuration}, "status": {"observedKubeVirtVersion": version}}


@pytest.mark.parametrize(
    ("seen", "release", "on", "off"),
    [
        ({}, NEWEST, set(), set()),
        (installation("v1.3.0", developerConfiguration={"featureGates": ["VSOCK"], "useEmulation": True}), 3, {"VSOCK"}, set()),
        (installation("1.6.2"), 6, set(), set()),
        (installation("devel", developerConfiguration={"disabledFeatureGates": ["Snapshot"]}), NEWEST, set(), {"Snapshot"}),
        (installation(persistentReservationConfiguration={"enabled": True}), NEWEST, {"PersistentReservation"}, set()),
        (
            installation(
                persistentReservationConfiguration={"enabled": False}, developerConfiguration={"featureGates": ["PersistentReservation"]}
            ),
            NEWEST,
            set(),
            set(),
        ),
    ],
)
def test_the_gates_of_an_installation(seen: dict[str, Any], release: int, on: set[str], off: set[str]) -> None:
    found = gates.of_installation(seen)
    assert (found.release, set(found.on), set(found.off)) == (release, on, off)


def test_only_one_installation_of_kubevirt_itself_counts() -> None:
    assert gates.of_installations([]) is None
    assert gates.of_installations([installation(), installation()]) is None
    ours = {**installation(), "metadata": {"annotations": {ownnames.COMMON_INSTANCETYPES.name: "1"}}}
    assert gates.of_installations([ours]) is None
    found = gates.of_installations([installation("v1.6.0"), ours])
    assert found is not None and (found.release, found.name) == (6, "KubeVirt virt/kv")


def test_what_is_missing_is_named_with_the_place_to_turn_it_on() -> None:
    wanted = parsed({"P.domain.devices.autoattachVSOCK": True, "P.volumes[1]": {"name": "h", "hostDisk": {"path": "/d", "type": "Disk"}}})
    with pytest.raises(MissingGates) as refused:
        missinggates.check(wanted, gates.of_installation(installation()))
    assert str(refused.value) == (
        "feature gates of KubeVirt are off: spec.template.spec.domain.devices.autoattachVSOCK needs VSOCK; "
        "spec.template.spec.volumes[1].hostDisk needs HostDisk; "
        "add VSOCK, HostDisk to spec.configuration.developerConfiguration.featureGates of KubeVirt virt/kv"
    )
    missinggates.check(wanted, ClusterGates(on=frozenset({"VSOCK", "HostDisk"})))


def test_a_pool_needs_the_gates_of_its_machines() -> None:
    template = machine({"P.domain.devices.autoattachVSOCK": True})["spec"]
    pool = {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": "p"}}
    value: VirtualMachinePool = from_data({**pool, "spec": {"virtualMachineTemplate": {"spec": template}}}, VirtualMachinePool)
    found = [(each.gate, format_path(each.path)) for each in missinggates.missing(value, ClusterGates())]
    assert found == [("VSOCK", "spec.virtualMachineTemplate.spec.template.spec.domain.devices.autoattachVSOCK")]


@pytest.mark.parametrize("release", [3, 6, 9])
def test_validation_for_a_cluster_asks_its_release(release: int) -> None:
    given = machine({"P.domain.devices.gpus": [{"name": "g", "deviceName": "x/y"}]})
    found = admit(given, AdmissionSettings(target="cluster", kubevirt_release=release)).findings
    assert any("GPU feature gate is not enabled" in each.message for each in found) == (release < 4)
