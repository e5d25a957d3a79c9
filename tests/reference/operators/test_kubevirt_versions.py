"""The operator in clusters with older releases of KubeVirt: their own definitions and virt-api judge what it writes."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.reference import recipes
from tests.reference.build import Binaries, built
from tests.reference.client import Json, Kubectl
from tests.reference.embedded import serving
from tests.reference.operators import upstream
from tests.reference.operators.conftest import CONFIGURATION, Cluster, beside_kubevirt, made
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.others import collect_garbage
from tests.reference.operators.running import Operator, beside, operating
from tests.reference.operators.scenario import EXAMPLES, INTERVAL, Script
from tests.reference.operators.test_two_apis import example

pytestmark = pytest.mark.reference
POOLS = "/apis/pool.kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"
# What Kubermatic's second form of pools has, and these releases lack.
LACKING = {
    "1.3": ("autohealing", "maxUnavailable", "nameGeneration", "scaleInStrategy", "updateStrategy"),
    "1.6": (
        "autohealing",
        "scaleInStrategy.proactive.selectionPolicy.sortPolicy",
        "scaleInStrategy.proactive.statePreservation",
        "updateStrategy",
    ),
}
# Vitistack's document wants the field, and every release takes it.
WARNINGS = {'299 - "spec.running is deprecated, please use spec.runStrategy instead."'}
MACHINES = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines"


@dataclass(frozen=True)
class Older:
    """A cluster with an older KubeVirt."""

    version: str
    cluster: Cluster


@pytest.fixture(scope="module", params=recipes.OLDER_KUBEVIRTS)
def older(
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    binaries: Binaries,
    helms: list[Helm],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Older]:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    recipe = recipes.OLDER_KUBEVIRTS[request.param]
    programs = built(recipe, say=terminal.write_line if terminal else print)
    directory = tmp_path_factory.mktemp("older")
    (directory / "cluster").mkdir()
    theirs = upstream.prepared(programs, recipe.version, directory / "kubevirt")
    values = ("dialects={kubermatic,stakater,vitistack}", "front.secretName=front")
    with ExitStack() as ends:
        wanted = [*theirs.definitions, *beside_kubevirt()]
        cluster = ends.enter_context(made(binaries, helms[0], directory / "cluster", wanted, *values, more=theirs.rules))
        ends.enter_context(upstream.kubevirt(theirs, cluster.api, CONFIGURATION))
        ends.enter_context(beside(cluster.access.kubeconfig, collect_garbage))
        yield Older(request.param, cluster)


def unusual(operator: Operator) -> set[str]:
    """Return what the operator warns of: refusals, and the server's warnings about fields that it does not know."""
    said = (each for each in operator.said() if each["level"] != "info")
    return {str(each.get("warning") or each.get("error") or each["message"]) for each in said}


def test_machines_of_both_fronts_are_taken(older: Older, tmp_path: Path) -> None:
    cluster = older.cluster
    arguments = ("--namespace", NAMESPACE, "--reconcile-interval", INTERVAL, "--dialect", "stakater,vitistack")
    with operating(cluster.operator, tmp_path / "log", *arguments) as operator:
        operator.wait_ready()
        script = Script(cluster.api, cluster.kubectl, EXAMPLES)
        script.prepare()
        script.apply()

        def there() -> set[str]:
            return {each.name for each in EXAMPLES if cluster.api.request("GET", MACHINES.format(each.name)).body["items"]}

        operator.wait(lambda: there() == {each.name for each in EXAMPLES})
        # KubeVirt refuses a registered plug-in whose gate is off, so machines have what they have without one.
        path = MACHINES.format("s-full")
        (machine,) = cluster.api.request("GET", path).body["items"]
        assert ("binding" in str(machine["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"])) == (older.version != "1.3")
        assert unusual(operator) <= WARNINGS
        assert 'code="403"' not in operator.page("/metrics")[1]


@pytest.fixture(scope="module")
def front(older: Older, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Kubectl]]:
    directory = tmp_path_factory.mktemp("front")
    (directory / "home").mkdir()
    with serving(directory / "server") as server:
        arguments = ("--namespace", NAMESPACE, "--reconcile-interval", INTERVAL, "--dialect", "kubermatic")
        with operating(older.cluster.operator, directory / "log", *arguments, "--front", str(server.kubeconfig)) as operator:
            operator.wait_ready()
            yield operator, Kubectl(binaries.kubectl, server.access, directory / "home")


def test_what_an_older_kubevirt_lacks_is_named_before_anything_is_made(older: Older, front: tuple[Operator, Kubectl]) -> None:
    operator, kubectl = front
    for name in ("virtualmachine", "pool", "nested-pool"):
        kubectl.ok("apply", "-f", example(name))
    # What these releases know is made.
    operator.wait(lambda: {"my-vm-with-http-data-volume"} <= names(older, MACHINES.format("default")))
    operator.wait(lambda: "my-vm-http-pool" in names(older, POOLS))

    def failure() -> str:
        pool: Json = yaml.safe_load(kubectl.ok("get", "vmpool", "workers", "-o", "yaml"))
        conditions = pool.get("status", {}).get("conditions", ())
        return str(next((each["message"] for each in conditions if each["type"] == "Failure"), ""))

    operator.wait(lambda: bool(failure()))
    fields = ", ".join(f"spec.{each}" for each in LACKING[older.version])
    assert failure() == (
        f"VirtualMachinePool of pool.kubevirt.io/v1alpha1 does not have {fields} on this server; "
        "remove these fields, or update what serves pool.kubevirt.io"
    )
    assert "workers" not in names(older, POOLS)


def names(older: Older, path: str) -> set[str]:
    return {each["metadata"]["name"] for each in older.cluster.api.request("GET", path).body["items"]}
