"""The chart with our own image on the reference cluster: two Pods without rights on their node, of which one follows the other."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.reference.build import built
from tests.reference.client import Json
from tests.reference.cluster import release as releases
from tests.reference.cluster.conftest import Cluster, say
from tests.reference.cluster.release import Release
from tests.reference.operators.helm import Helm
from tests.reference.recipes import HELMS

pytestmark = [pytest.mark.reference, pytest.mark.soak]
# A dialect that needs nothing of the cluster but its own definitions.
DIALECT = "virtrigaud"
DURATION, RETRY = 15.0, 2.0
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def release(cluster: Cluster, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    releases.load_image(cluster, tmp_path_factory.mktemp("image"))
    helm = Helm(built(HELMS["3"], say(pytestconfig)) / "helm", tmp_path_factory.mktemp("helm"))
    with releases.installed(cluster, helm, "paddock-release", f"dialects={{{DIALECT}}}", "args={--reconcile-interval=1s}") as release:
        yield release


def names(release: Release) -> set[str]:
    return {each["metadata"]["name"] for each in release.pods()}


def is_ready(pod: Json) -> bool:
    return any((each["type"], each["status"]) == ("Ready", "True") for each in pod["status"].get("conditions", ()))


def test_two_pods_run_as_nobody_on_a_root_that_nothing_writes(release: Release) -> None:
    pods = release.pods()
    assert len(pods) == 2 and all(map(is_ready, pods))
    for pod in pods:
        (container,) = pod["status"]["containerStatuses"]
        assert container["user"]["linux"]["uid"] == 65532 and container["restartCount"] == 0
        assert pod["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
        assert "[+]rights ok" in release.page(pod["metadata"]["name"], "/readyz")
    assert release.leader(DIALECT) in names(release)
    assert release.troubles() == []


def test_helm_asks_every_replica(release: Release) -> None:
    said = release.run("test", "paddock", "--logs")
    assert "Phase:          Succeeded" in said
    assert sorted(each for each in said.splitlines() if each.endswith(": ready")) == sorted(
        f"{each['status']['podIP']}: ready" for each in release.pods()
    )


def act(release: Release, name: str) -> None:
    """Have the operator notice an object: it writes a status."""
    metadata = {"name": name, "namespace": "default"}
    network = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VMNetworkAttachment", "metadata": metadata}
    release.cluster.kubectl.ok("apply", "-f", "-", stdin=json.dumps({**network, "spec": {"network": {"type": "nat"}}}))
    path = f"/apis/infra.virtrigaud.io/v1beta1/namespaces/default/vmnetworkattachments/{name}"
    release.wait(lambda: bool(release.cluster.get(path).get("status")))
    release.cluster.kubectl.ok("delete", "vmnetworkattachment", name)


def test_a_release_of_another_namespace_stands_by(release: Release) -> None:
    leader, values = release.leader(DIALECT), (f"leaderElection.namespace={release.namespace}", "replicaCount=1", "definitions=false")
    with releases.installed(release.cluster, release.helm, "paddock-second", f"dialects={{{DIALECT}}}", *values) as second:
        (pod,) = second.pods()
        assert "[+]rights ok" in second.page(pod["metadata"]["name"], "/readyz")
        act(release, "shared")
        assert release.leader(DIALECT) == leader in names(release)
        assert [each["message"] for each in second.said()].count("leader election won") == 0
        assert second.troubles() == []


def test_another_leads_when_the_leader_is_killed(release: Release, record_property: Record) -> None:
    act(release, "before")
    before, leader = release.holder(DIALECT), release.leader(DIALECT)
    (pod,) = [each for each in release.pods() if each["metadata"]["name"] == leader]
    container = pod["status"]["containerStatuses"][0]["containerID"].partition("//")[2]
    # It has no chance to give the lease back. The Pod's next process is a candidate like the other Pod's.
    release.cluster.machine.run("ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", container)
    took = release.wait(lambda: release.holder(DIALECT) not in ("", before))
    record_property("seconds until another leads", round(took, 1))
    assert took > DURATION - 2 * RETRY
    act(release, "after")
    release.wait(lambda: len(release.pods()) == 2 and all(map(is_ready, release.pods())))


def test_a_leader_that_is_evicted_gives_the_lease_back(release: Release, record_property: Record) -> None:
    leader = release.leader(DIALECT)
    release.cluster.kubectl.ok("delete", "pod", leader, "-n", release.namespace, "--wait=false")
    # The Pod that comes in its place may be the first to ask.
    took = release.wait(lambda: release.leader(DIALECT) not in ("", leader))
    record_property("seconds until another Pod leads", round(took, 1))
    assert took < DURATION
    release.wait(lambda: len(release.pods()) == 2 and all(map(is_ready, release.pods())))
    assert release.troubles() == []
