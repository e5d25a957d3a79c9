"""Kubermatic's forms in one API, and a cluster that takes KubeVirt's and CDI's: the operator stands between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.client import Api, Json, Kubectl
from tests.reference.embedded import serving
from tests.reference.operators.conftest import Cluster, definitions, made, others
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
URL = "http://example.com/path/to/your/image.qcow2"
MACHINE = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/my-vm-with-http-data-volume"
POOL = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools/my-vm-http-pool"
POOLS = "virtualmachinepools.pool.kubevirt.io"
SOURCE = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources/my-http-datasource"
MADE = (MACHINE, POOL)


@dataclass
class Both:
    # in which the cluster has pools
    version: str
    cluster: Cluster
    front: Api
    kubectl: Kubectl
    operator: Operator

    def get(self, api: Api, path: str) -> Json:
        answer = api.request("GET", path)
        return answer.body if answer.ok else {}

    def there(self, path: str) -> Json:
        """On the cluster."""
        return self.get(self.cluster.api, path.replace("pool.kubevirt.io/v1beta1", f"pool.kubevirt.io/{self.version}"))

    def revisions(self) -> dict[str, str]:
        found = {f"cluster {path}": self.there(path) for path in MADE}
        found |= {f"front {path}": self.get(self.front, path) for path in (*MADE, SOURCE)}
        return {path: thing["metadata"]["resourceVersion"] for path, thing in found.items()}


@pytest.fixture(scope="module", params=["v1alpha1", "v1beta1"])
def both(request: pytest.FixtureRequest, binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("two")
    (directory / "cluster").mkdir()
    (directory / "home").mkdir()
    wanted: Sequence[crds.Crd] = definitions()
    if request.param == "v1beta1":
        # KubeVirt's own definition of pools is of a release that has no v1beta1.
        wanted = [*without_pools(), *(each for each in crds.load() if each.name == POOLS)]
    values = ("dialects={kubermatic}", "front.secretName=front")
    with made(binaries, helms[0], directory / "cluster", wanted, *values) as cluster, serving(directory / "front") as server:
        arguments = ("--dialect", "kubermatic", "--front", str(server.kubeconfig), "--namespace", NAMESPACE, "--reconcile-interval", "1s")
        with others(cluster), operating(cluster.operator, directory / "log", *arguments) as operator:
            operator.wait_ready()
            front = Api(server.access)
            yield Both(request.param, cluster, front, Kubectl(binaries.kubectl, server.access, directory / "home"), operator)
            front.close()


def without_pools() -> Sequence[crds.Crd]:
    return [each for each in definitions() if each.name != POOLS]


def example(name: str) -> str:
    return str(files("paddock.dialects.kubermatic") / "examples" / f"{name}.yaml")


def test_the_documents_examples(both: Both) -> None:
    for name in ("virtualmachine", "pool"):
        both.kubectl.ok("apply", "-f", example(name))
    both.operator.wait(lambda: all(both.there(path) for path in MADE))
    (template,) = both.there(MACHINE)["spec"]["dataVolumeTemplates"]
    assert template["spec"]["source"] == {"http": {"url": URL}}
    assert "sourceRef" not in template["spec"]
    assert "ownerReferences" not in both.there(MACHINE)["metadata"]
    pool = both.there(POOL)["spec"]
    assert pool["virtualMachineTemplate"]["spec"]["dataVolumeTemplates"][0]["spec"]["source"] == {"http": {"url": URL}}
    assert pool["virtualMachineTemplate"]["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "2Gi"}
    # A DataSource with an address is nothing that CDI could keep.
    assert both.there(SOURCE) == {}
    both.operator.wait(lambda: both.get(both.front, MACHINE).get("status", {}).get("printableStatus") == "Running")
    conditions = {each["type"]: each["status"] for each in both.get(both.front, MACHINE)["status"]["conditions"]}
    assert conditions["DataSourceResolved"] == "True"

    both.operator.wait(lambda: both.get(both.front, POOL).get("status", {}).get("conditions"))

    # What is applied again changes nothing on either side, and neither do sweeps.
    before = both.revisions()
    for name in ("virtualmachine", "pool"):
        assert both.kubectl.run("diff", "-f", example(name)).code == 0
        both.kubectl.ok("apply", "-f", example(name))
    swept = both.operator.sweeps("kubermatic-virtualmachine")
    both.operator.wait(lambda: both.operator.sweeps("kubermatic-virtualmachine") > swept + 3)
    assert both.revisions() == before

    for name in ("virtualmachine", "pool"):
        both.kubectl.ok("delete", "-f", example(name), "--ignore-not-found", "--timeout=60s")
    both.operator.wait(lambda: not any(both.there(path) for path in MADE))
    requests = [line for line in both.operator.page("/metrics")[1].splitlines() if line.startswith("paddock_client_requests_total{")]
    assert [line for line in requests if 'code="403"' in line] == []
    assert both.operator.complaints() == []


def test_both_apis_are_waited_for(binaries: Binaries, helms: list[Helm], tmp_path: Path) -> None:
    """The front is a server that lacks the kinds."""
    (tmp_path / "cluster").mkdir()
    with made(binaries, helms[0], tmp_path / "cluster", without_pools(), "dialects={kubermatic}", "front.secretName=front") as cluster:
        arguments = ("--dialect", "kubermatic", "--front", str(cluster.operator), "--namespace", NAMESPACE)
        with operating(cluster.operator, tmp_path / "log", *arguments) as operator:
            operator.wait(lambda: any(each["message"] == "operator not ready" for each in operator.said()))
            status, text = operator.page("/readyz")
            assert status == 500
            for where in ("", "front: "):
                assert f"{where}virtualmachinepools.pool.kubevirt.io/v1beta1 is not served: install KubeVirt" in text
