"""The operator as its chart installs it: Pods of our own image on the node."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reference.client import Json
from tests.reference.cluster import kubevirt
from tests.reference.cluster.conftest import Cluster
from tests.reference.operators.helm import PADDOCK, Helm
from tools.container import build, recipes

_SECONDS = 600
# Every Pod may run here that needs no rights on its node.
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True)
class Release:
    """A release of the chart `paddock`, named `paddock`."""

    cluster: Cluster
    helm: Helm
    namespace: str

    def run(self, *words: str) -> str:
        """Run helm about it; returns what it says."""
        reach = ("--kubeconfig", str(self.cluster.api.access.kubeconfig), "-n", self.namespace)
        ran = self.helm.run(*words, *reach, seconds=_SECONDS)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def pods(self) -> Sequence[Json]:
        """The Pods of the operator that are not going."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app.kubernetes.io%2Fname%3Dpaddock"
        return [each for each in self.cluster.get(path)["items"] if "deletionTimestamp" not in each["metadata"]]

    def leader(self, dialect: str) -> str:
        """Return the Pod that acts in a dialect."""
        return self.holder(dialect).rpartition("_")[0]

    def holder(self, dialect: str) -> str:
        """Return the identity of the process that acts in a dialect."""
        lease = self.cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/paddock-operator-{dialect}")
        return str(lease.get("spec", {}).get("holderIdentity", ""))

    def page(self, pod: str, path: str) -> str:
        """A page of a Pod's probes, through the API server; empty when it does not answer."""
        ran = self.cluster.kubectl.run("get", "--raw", f"/api/v1/namespaces/{self.namespace}/pods/{pod}:8081/proxy{path}")
        return ran.output

    def said(self) -> Sequence[dict[str, Any]]:
        """The log of every Pod."""
        logs = [self.cluster.kubectl.ok("logs", each["metadata"]["name"], "-n", self.namespace) for each in self.pods()]
        return [json.loads(line) for log in logs for line in log.splitlines() if line.startswith("{")]

    def troubles(self) -> Sequence[Any]:
        """What needs a look: defects, and rights that are missing."""
        return [each for each in self.said() if each["level"] in ("error", "critical") or each["message"] == "right missing"]

    def wait(self, what: Callable[[], bool], seconds: float = _SECONDS) -> float:
        """Wait for something; returns how long that took."""
        began = time.monotonic()
        while not what():
            assert time.monotonic() < began + seconds, [self.page(each["metadata"]["name"], "/readyz") for each in self.pods()]
            time.sleep(0.2)
        return time.monotonic() - began


def load_image(cluster: Cluster, directory: Path) -> None:
    """Build the image of the operator, and import it into the node, unless it has one."""
    if "/paddock-operator:" in cluster.machine.run("ctr", "-n", "k8s.io", "images", "ls", "-q"):
        return
    made = build.build(recipes.OPERATOR, directory)
    kubevirt.load_archive(cluster.machine, Path(shutil.copy(made.archive, cluster.machine.directory / "files")))


@contextmanager
def installed(cluster: Cluster, helm: Helm, namespace: str, *values: str) -> Iterator[Release]:
    """The chart in a namespace of its own that takes restricted Pods only, ready; its definitions stay."""
    release = Release(cluster, helm, namespace)
    metadata = {"name": namespace, "labels": _RESTRICTED}
    cluster.kubectl.ok("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    settings = [word for each in values for word in ("--set", each)]
    # The definitions may be those of a release that was uninstalled.
    release.run("install", "paddock", str(PADDOCK), *settings, "--take-ownership", "--wait", "--timeout", f"{_SECONDS}s")
    try:
        yield release
    finally:
        release.run("uninstall", "paddock", "--wait")
        cluster.kubectl.ok("delete", "namespace", namespace)
