"""`helm test` of the charts, with both helms: the test's Pod runs on this host, with the command that the chart gives it."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.reference import recipes
from tests.reference.client import MERGE_PATCH, Json
from tests.reference.operators.conftest import Cluster
from tests.reference.operators.helm import CHART, NAMESPACE, PADDOCK, Helm
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
PODS = "/api/v1/namespaces/{}/pods"
QUIET = ("--set", "definitions=false,dialects={vitistack}")


@pytest.fixture(params=recipes.HELMS)
def helm(request: pytest.FixtureRequest, helms: list[Helm]) -> Helm:
    return helms[list(recipes.HELMS).index(request.param)]


class PodRunner:
    """The kubelet of the test's Pod: it runs the command as a process. Names of Services are not resolved on this host."""

    def __init__(self, cluster: Cluster, namespace: str, port: int) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.port = port
        self.ran: list[tuple[Json, subprocess.CompletedProcess[str]]] = []
        self.end = threading.Event()

    def run(self) -> None:
        path = PODS.format(self.namespace)
        while not self.end.wait(0.2):
            for pod in self.cluster.api.request("GET", path).body.get("items", ()):
                if pod.get("status", {}).get("phase", "Pending") == "Pending":
                    self._play(path, pod)

    def _play(self, path: str, pod: Json) -> None:
        (container,) = pod["spec"]["containers"]
        words: list[str] = [*container["command"], *container["args"]]
        assert words.pop(0) == "paddock"
        name = pod["metadata"]["name"].replace("-test", "-health")
        service = self.cluster.api.request("GET", f"/api/v1/namespaces/{self.namespace}/services/{name}").body
        (port,) = service["spec"]["ports"]
        address = f"http://{service['metadata']['name']}.{self.namespace}.svc:{port['port']}"
        assert f"--operator={address}" in words
        words = ["--wait=2s" if each.startswith("--wait=") else each for each in words]
        words = [each.replace(address, f"http://127.0.0.1:{self.port}") for each in words]
        done = subprocess.run([sys.executable, "-m", "paddock.app", *words], capture_output=True, text=True)
        self.ran.append((pod, done))
        status = {"status": {"phase": "Failed" if done.returncode else "Succeeded"}}
        assert self.cluster.api.request("PATCH", f"{path}/{pod['metadata']['name']}/status", status, headers=MERGE_PATCH).ok


@contextmanager
def kubelet(cluster: Cluster, namespace: str, operator: Operator) -> Iterator[PodRunner]:
    operator.wait(lambda: operator.listens)
    runner = PodRunner(cluster, namespace, operator.port)
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    try:
        yield runner
    finally:
        runner.end.set()
        thread.join(30)


@contextmanager
def installed(helm: Helm, cluster: Cluster, chart: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """The chart in a namespace of its own; its Pods are not there, because nobody makes them."""
    namespace = f"tested-{'3' if 'helm-3' in str(helm.program) else '4'}-{chart.name}"
    reach = ["--kubeconfig", str(cluster.access.kubeconfig), "-n", namespace]
    ran = helm.run("install", "paddock", str(chart), *QUIET, "--create-namespace", *reach)
    assert ran.returncode == 0, ran.stderr
    try:
        yield namespace, reach
    finally:
        assert helm.run("uninstall", "paddock", *reach).returncode == 0


def left(cluster: Cluster, namespace: str) -> set[str]:
    found = cluster.kubectl.ok("get", "pods,services", "-n", namespace, "-o", "name").split()
    return {each for each in found if each.endswith("-test")}


@pytest.mark.parametrize("chart", [PADDOCK, CHART], ids=lambda chart: str(chart.name))
def test_a_release_whose_operator_is_ready(helm: Helm, cluster: Cluster, chart: Path, tmp_path: Path) -> None:
    arguments = ("--dialect", "vitistack", "--namespace", NAMESPACE)
    with installed(helm, cluster, chart) as (namespace, reach), operating(cluster.operator, tmp_path / "log", *arguments) as operator:
        operator.wait_ready()
        with kubelet(cluster, namespace, operator) as runner:
            ran = helm.run("test", "paddock", *reach)
        assert ran.returncode == 0, ran.stderr
        assert "Phase:          Succeeded" in ran.stdout
        ((pod, done),) = runner.ran
        assert done.stdout == "127.0.0.1: ready\n"
        # The test has no rights, and what a restricted namespace takes.
        assert pod["spec"]["automountServiceAccountToken"] is False
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        # Its Pod stays, so that `--logs` finds the log.
        assert left(cluster, namespace) == {f"pod/{pod['metadata']['name']}"}


def test_a_release_whose_operator_is_not_ready(helm: Helm, cluster: Cluster, tmp_path: Path) -> None:
    # Nobody installed what VirtRigaud's controllers need.
    arguments = ("--dialect", "virtrigaud", "--namespace", NAMESPACE)
    with installed(helm, cluster, PADDOCK) as (namespace, reach), operating(cluster.operator, tmp_path / "log", *arguments) as operator:
        operator.wait(lambda: any(each["message"] == "operator not ready" for each in operator.said()))
        with kubelet(cluster, namespace, operator) as runner:
            ran = helm.run("test", "paddock", *reach)
        assert ran.returncode != 0
        ((_, done),) = runner.ran
        assert "127.0.0.1: not ready: " in done.stdout
        assert "virtualmachines.infra.virtrigaud.io/v1beta1 is not served: paddock crds --dialect virtrigaud" in done.stdout
        assert "pod/paddock-test" in left(cluster, namespace)
