"""KubeVirt's own virt-api, of three releases, refuses and accepts the machines that `kubevirt/kinds/gates.py` says; and the operator
names the gates before it makes anything."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
import yaml

from paddock.kubevirt.kinds.gates import GATES, ClusterGates, of_installation
from tests.reference import recipes
from tests.reference.build import Binaries, built
from tests.reference.client import MERGE_PATCH, Answer, Json, Kubectl
from tests.reference.embedded import serving
from tests.reference.operators import upstream
from tests.reference.operators.conftest import CONFIGURATION, Cluster, beside_kubevirt, made
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.running import Operator, operating
from tests.reference.verdict import STRICT
from tests.unit.kubevirt.kinds.gatedfeatures import FEATURES, GatedFeature
from tests.unit.kubevirt.kinds.objects import machine, place

pytestmark = pytest.mark.reference
RELEASES = {**recipes.OLDER_KUBEVIRTS, "1.9": recipes.KUBEVIRT}
KUBEVIRT = f"/apis/kubevirt.io/v1/namespaces/{upstream.NAMESPACE}/kubevirts/kubevirt"
MACHINES = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines"
PATIENCE = 60.0
# Every gate that a release may know by another name, too.
EVERY = [*GATES, "ExperimentalVirtiofsSupport"]
VSOCK, RESERVATION = (next(each for each in FEATURES if each.gate == gate) for gate in ("VSOCK", "PersistentReservation"))


@dataclass(frozen=True)
class Installation:
    """A cluster with the virt-api of a release."""

    release: str
    cluster: Cluster

    def configure(self, **developer: list[str]) -> ClusterGates:
        """Set the gates, and wait until virt-api obeys."""
        change: Json = {"featureGates": None, "disabledFeatureGates": None, **developer}
        body = {"spec": {"configuration": {"developerConfiguration": change}}}
        answer = self.cluster.api.request("PATCH", KUBEVIRT, body, headers=MERGE_PATCH)
        assert answer.ok, answer.message
        gates, end = of_installation(answer.body), time.monotonic() + PATIENCE
        while self.refuses(VSOCK) == gates.has("VSOCK"):
            assert time.monotonic() < end, "virt-api does not obey the KubeVirt object"
            time.sleep(0.2)
        return gates

    def ask(self, feature: GatedFeature) -> Answer:
        """Ask virt-api to take a machine, which is not stored."""
        return self.cluster.api.request("POST", MACHINES.format("default"), machine(feature.changes), query=STRICT)

    def refuses(self, feature: GatedFeature) -> bool:
        """Return whether virt-api refuses a machine for its gates."""
        answer = self.ask(feature)
        return not answer.ok and ("feature gate" in answer.message or "not enabled" in answer.message)

    def knows(self, feature: GatedFeature) -> bool:
        """Return whether the definition of machines has the fields of a feature."""
        return "unknown field" not in self.ask(feature).message


@pytest.fixture(scope="module", params=RELEASES)
def installation(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    binaries: Binaries,
    helms: list[Helm],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    recipe = RELEASES[request.param]
    programs = built(recipe, say=terminal.write_line if terminal else print)
    directory = tmp_path_factory.mktemp("gates")
    (directory / "cluster").mkdir()
    theirs = upstream.prepared(programs, recipe.version, directory / "kubevirt")
    values = ("dialects={kubermatic}", "front.secretName=front", "metrics.secure=false")
    with ExitStack() as ends:
        wanted = [*theirs.definitions, *beside_kubevirt()]
        cluster = ends.enter_context(made(binaries, helms[0], directory / "cluster", wanted, *values, more=theirs.rules))
        ends.enter_context(upstream.kubevirt(theirs, cluster.api, CONFIGURATION))
        yield Installation(request.param, cluster)


def disagreements(installation: Installation, gates: ClusterGates) -> list[str]:
    """Return the features about which virt-api and the table say different things."""
    found = []
    for each in FEATURES:
        open_ = all(gates.has(gate) for gate in (each.gate, *each.beside))
        if installation.knows(each) and installation.refuses(each) == open_:
            answer = installation.ask(each)
            found.append(
                f"{each.gate} {each.path}: the table says {'open' if open_ else 'closed'}, virt-api {answer.status} {answer.message}"
            )
    return found


def test_virt_api_refuses_what_the_table_says_and_nothing_else(installation: Installation) -> None:
    assert disagreements(installation, installation.configure()) == []


def test_virt_api_accepts_it_with_the_gates(installation: Installation) -> None:
    gates = installation.configure(featureGates=EVERY)
    assert disagreements(installation, gates) == []
    # Each by itself, and with no other gate.
    for each in {each.gate: each for each in FEATURES if installation.knows(each)}.values():
        gates = installation.configure(featureGates=["VSOCK", each.gate, *each.beside])
        assert not installation.refuses(each), (each.gate, installation.ask(each).message)


def test_gates_that_are_turned_off_are_off_where_the_release_lets_them(installation: Installation) -> None:
    assert disagreements(installation, installation.configure(disabledFeatureGates=EVERY)) == []


@pytest.fixture(scope="module")
def front(installation: Installation, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Kubectl]]:
    directory = tmp_path_factory.mktemp("front")
    (directory / "home").mkdir()
    with serving(directory / "server") as server:
        arguments = ("--namespace", NAMESPACE, "--reconcile-interval", "1s", "--dialect", "kubermatic", "--front", str(server.kubeconfig))
        with operating(installation.cluster.operator, directory / "log", *arguments) as operator:
            operator.wait_ready()
            yield operator, Kubectl(binaries.kubectl, server.access, directory / "home")


def test_the_operator_names_a_gate_before_it_makes_anything(installation: Installation, front: tuple[Operator, Kubectl]) -> None:
    operator, kubectl = front
    installation.configure()
    kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump(machine(RESERVATION.changes)))

    def failure() -> Json:
        found: Json = yaml.safe_load(kubectl.ok("get", "virtualmachines.kubevirt.io", "vm", "-o", "yaml"))
        return next((each for each in found.get("status", {}).get("conditions", ()) if each["type"] == "Failure"), {})

    operator.wait(lambda: bool(failure()))
    assert failure()["reason"] == "FeatureGateMissing"
    assert failure()["message"] == (
        f"feature gates of KubeVirt are off: {place(RESERVATION.path, 'VirtualMachine')} needs PersistentReservation; "
        f"add PersistentReservation to spec.configuration.developerConfiguration.featureGates of KubeVirt {upstream.NAMESPACE}/kubevirt"
    )
    assert "FeatureGateMissing" in kubectl.ok("get", "events")
    assert installation.cluster.api.request("GET", MACHINES.format("default")).body["items"] == []
    installation.configure(featureGates=["VSOCK", "PersistentReservation"])
    operator.wait(lambda: not failure() and bool(installation.cluster.api.request("GET", MACHINES.format("default")).body["items"]))
    assert operator.complaints() == []
