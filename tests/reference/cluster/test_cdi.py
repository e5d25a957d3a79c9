"""CDI itself on the cluster, where a developer has its source: machines of `paddock run`, and what the page of the two homes says of disks.

The operators' tests and those of moves run on the same cluster, so their disks are CDI's, too.
"""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.reference.client import Json
from tests.reference.clones import NoClone
from tests.reference.cluster import cdi
from tests.reference.cluster.conftest import BOOT_SECONDS, Cluster
from tests.reference.cluster.moving import until
from tests.reference.cluster.test_fronts import Fronts, fronts, image, signed
from tests.reference.virtctl.conftest import INSTANCES, MACHINES

# Fixtures that pytest finds here.
__all__ = ["fronts", "image", "signed"]
pytestmark = [pytest.mark.reference, pytest.mark.soak]
_DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
_SOURCES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources"
_STAKATER = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"


@pytest.fixture(autouse=True)
def real(cluster: Cluster) -> Cluster:
    """The cluster, if it has no stand-in."""
    if not cluster.has_cdi:
        try:
            cdi.check()
        except NoClone as problem:
            pytest.skip(f"needs cdi: {problem}")
        pytest.skip("needs cdi: the cluster was made with its stand-in")
    return cluster


def paddock(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of Paddock about the cluster."""
    command = [sys.executable, "-m", "paddock.app", *words, "--kubeconfig", str(cluster.api.access.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=BOOT_SECONDS)


@pytest.fixture
def emptied(cluster: Cluster) -> Iterator[None]:
    """A namespace that has nothing of a test afterwards, whether it failed or not."""
    yield
    cluster.kubectl.run("delete", "machines.vitistack.io,virtualmachines.infrastructure.stakater.com", "--all", "--timeout=100s")
    cluster.kubectl.run("delete", "virtualmachines.kubevirt.io", "--all", "--timeout=100s")
    cluster.kubectl.run("delete", "datasources,datavolumes,pvc", "--all", "--timeout=100s")


@pytest.mark.parametrize("dialect", ["kubevirt", "kubermatic", "stakater", "vitistack"])
@pytest.mark.usefixtures("emptied")
def test_paddock_run_makes_a_guest_of_an_address(dialect: str, fronts: Fronts, image: str, signed: str) -> None:
    """CDI's DataSources have no address, so machines that are made of one get a claim that takes the image first."""
    cluster = fronts.cluster
    # Only Stakater's machines have Secure Boot unless they say otherwise.
    url = signed if dialect == "stakater" else image
    words = ("-n", "web", "--dialect", dialect, "-d", "1Gi", "-m", "512Mi", f"--timeout={BOOT_SECONDS:.0f}s")
    ran = paddock(cluster, "run", url, *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "web is usable, at 10.244.0." in ran.stdout, ran.stdout
    assert cluster.get(f"{INSTANCES}/web")["status"]["interfaces"][0]["ipAddress"].startswith("10.244.0.")
    (disk,) = [each for each in cluster.get(_DISKS)["items"] if not each["metadata"]["name"].startswith("run-")]
    assert disk["status"]["phase"] == "Succeeded"
    if dialect in ("stakater", "kubermatic"):
        (source,) = cluster.get(_SOURCES)["items"]
        filled = source["spec"]["source"]["pvc"]["name"]
        assert cluster.get(f"{_DISKS}/{filled}")["spec"]["source"] == {"http": {"url": url}}
        # Stakater's operator reads the DataSource; for Kubermatic's machine, CDI does.
        copied = disk["spec"].get("sourceRef") or disk["spec"]["source"]["pvc"]
        assert copied["name"] in (source["metadata"]["name"], filled)
    if dialect == "stakater":
        synced = _condition(cluster.get(f"{_STAKATER}/web"), "Synced")
        assert synced["status"] == "True", synced
    again = paddock(cluster, "run", url, *words)
    assert again.returncode == 2 and "already" in again.stderr, again.stderr
    assert paddock(cluster, "rm", "web", "--yes", "--purge").returncode == 0
    until(lambda: not cluster.get(f"{MACHINES}/web"))


def _condition(thing: Json, kind: str) -> Json:
    return next((each for each in thing.get("status", {}).get("conditions", ()) if each["type"] == kind), {})


def _disk(name: str, **spec: Any) -> Json:
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name},
        "spec": {"storage": storage, **spec},
    }


def _source(name: str, **source: Any) -> Json:
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": name}, "spec": {"source": source}}


def test_cdi_refuses_what_the_page_of_the_two_homes_says(cluster: Cluster) -> None:
    """Orders of objects, and sources, that `paddock up` takes."""
    refused = {
        'datasources.cdi.kubevirt.io "nobody" not found': _disk("early", sourceRef={"kind": "DataSource", "name": "nobody"}),
        'unknown field "spec.source.http"': _source("addressed", http={"url": "http://images.invalid/a.img"}),
    }
    for text, document in refused.items():
        ran = cluster.kubectl.run("create", "--validate=strict", "-f", "-", stdin=yaml.safe_dump(document))
        assert ran.code and text in ran.output + ran.errors, (ran.output, ran.errors)


@pytest.mark.usefixtures("emptied")
def test_cdi_tries_a_failed_import_again_without_an_end(cluster: Cluster, image: str) -> None:
    """A file that is not there does not make a disk Failed; one that goes comes back."""
    missing = image.rpartition("/")[0] + "/nothing.img"
    documents = [_disk("lost", source={"http": {"url": missing}}), _disk("blank", source={"blank": {}})]
    cluster.kubectl.ok("create", "-f", "-", stdin=yaml.safe_dump_all(documents))
    until(lambda: cluster.get(f"{_DISKS}/blank").get("status", {}).get("phase") == "Succeeded")
    seen: list[Json] = []

    def has_failed_again() -> bool:
        seen.append(cluster.get(f"{_DISKS}/lost"))
        return int(seen[-1].get("status", {}).get("restartCount", 0)) > 1 and "404" in _condition(seen[-1], "Running").get("message", "")

    until(has_failed_again)
    assert seen[-1]["status"]["phase"] == "ImportInProgress"
    before = cluster.get("/api/v1/namespaces/default/persistentvolumeclaims/blank")["metadata"]["uid"]
    cluster.kubectl.ok("delete", "pvc", "blank", "--wait=false")
    claim = "/api/v1/namespaces/default/persistentvolumeclaims/blank"
    until(lambda: cluster.get(claim).get("metadata", {}).get("uid", before) != before)
    until(lambda: cluster.get(f"{_DISKS}/blank").get("status", {}).get("phase") == "Succeeded")
