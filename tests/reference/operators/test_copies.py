"""Copies of the operator take turns, also when the one that leads is killed; and what they say before a cluster is ready for them."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.client import MERGE_PATCH, Json
from tests.reference.operators.conftest import Cluster, definitions, lacking, made
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.rights import Right
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/paddock-operator-vitistack"
ARGUMENTS = ("--dialect", "vitistack", "--namespace", NAMESPACE, "--reconcile-interval", "1s")
DURATION, RETRY = 15.0, 2.0
# One that waits looks so often at the latest: it sees the last renewal that late, and its end that late.
LATEST = DURATION + 2 * RETRY * 2.2
MISSING = [f"{each}.kubevirt.io/v1 is not served: install KubeVirt" for each in ("virtualmachineinstances", "virtualmachines")]
Record = Callable[[str, object], None]


def holder(cluster: Cluster) -> str:
    return str(cluster.api.request("GET", LEASE).body.get("spec", {}).get("holderIdentity", ""))


def identity(operator: Operator) -> str:
    return str(next(each["identity"] for each in operator.said() if each["message"] == "operator started"))


def apply_machine(cluster: Cluster, name: str) -> None:
    machine: Json = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": name}, "spec": {"template": "small"}}
    cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump(machine))


def is_made(cluster: Cluster, name: str) -> bool:
    return cluster.api.request("GET", f"/apis/kubevirt.io/v1/namespaces/default/virtualmachines/{name}").ok


@pytest.fixture(scope="module")
def stored(cluster: Cluster) -> Cluster:
    """The cluster, with a class of storage for the machines' disks."""
    metadata = {"name": "default"}
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "example.com/none"}
    cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump(storage))
    return cluster


def test_one_of_two_leads_and_the_other_takes_over(stored: Cluster, tmp_path: Path, record_property: Record) -> None:
    cluster = stored
    with operating(cluster.operator, tmp_path / "one", *ARGUMENTS) as one, operating(cluster.operator, tmp_path / "two", *ARGUMENTS) as two:
        for each in (one, two):
            each.wait_ready()
        one.wait(lambda: one.leads or two.leads)
        leader, other = (one, two) if one.leads else (two, one)
        assert not other.leads
        assert holder(cluster) == identity(leader)
        apply_machine(cluster, "before")
        leader.wait(lambda: is_made(cluster, "before"))

        leader.process.kill()
        leader.process.wait()
        apply_machine(cluster, "after")
        took = other.wait(lambda: other.leads, LATEST + 5)
        record_property("seconds to take over from one that was killed", round(took, 1))
        assert DURATION - RETRY * 2.2 - 1 < took < LATEST + 1
        assert holder(cluster) == identity(other)
        other.wait(lambda: is_made(cluster, "after"))

        with operating(cluster.operator, tmp_path / "three", *ARGUMENTS) as third:
            third.wait_ready()
            assert not third.leads
            other.process.send_signal(signal.SIGTERM)
            assert other.process.wait(15) == 0
            # One that ends gives the lease back.
            took = third.wait(lambda: third.leads)
            record_property("seconds to take over from one that ended", round(took, 1))
            assert took < RETRY * 2.2 + 1
            assert [each["message"] for each in other.said()][-1] == "operator stopped"
            for each in (one, two, third):
                assert each.complaints() == []


def test_what_a_cluster_lacks_is_named_until_it_is_there(binaries: Binaries, helms: list[Helm], tmp_path: Path) -> None:
    everything = definitions()
    ours = [each for each in everything if each.spec["group"] == "vitistack.io"]
    kubevirt = [each for each in everything if each.spec["group"] == "kubevirt.io"]
    (tmp_path / "cluster").mkdir()
    with (
        made(binaries, helms[0], tmp_path / "cluster", ours) as cluster,
        operating(cluster.operator, tmp_path / "log", *ARGUMENTS) as operator,
    ):
        operator.wait(lambda: any(each["message"] == "operator not ready" for each in operator.said()))
        status, text = operator.page("/readyz")
        assert status == 500
        assert f"[-]definitions {'; '.join(MISSING)}" in text
        assert {each["problem"] for each in operator.said() if each["message"] == "operator not ready"} == set(MISSING)
        assert operator.page("/healthz")[0] == 200
        assert holder(cluster) == ""
        crds.install(cluster.api, kubevirt)
        operator.wait_ready()
        # Multus and CDI are still not there; only who needs them has to wait.
        operator.wait(lambda: operator.leads)

        path = f"{crds.PATH}/machines.vitistack.io"
        owner = {"apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "name": "xmachines", "uid": "1"}
        assert cluster.api.request("PATCH", path, {"metadata": {"ownerReferences": [owner]}}, headers=MERGE_PATCH).ok
        with operating(cluster.operator, tmp_path / "second", *ARGUMENTS) as second:
            assert second.process.wait(30) == 1
            (end,) = second.complaints()
            assert (
                "cannot look after machines.vitistack.io: its definition belongs to CompositeResourceDefinition xmachines" in end["error"]
            )


def test_without_rights_it_says_what_it_lacks(cluster: Cluster, tmp_path: Path) -> None:
    (binding,) = [each["metadata"]["name"] for each in cluster.rights if each["kind"] == "ClusterRoleBinding"]
    kept = cluster.kubectl.ok("get", "clusterrolebinding", binding, "-o", "yaml")
    cluster.kubectl.ok("delete", "clusterrolebinding", binding)
    try:
        with operating(cluster.operator, tmp_path / "log", *ARGUMENTS) as operator:
            operator.wait(lambda: any(each["message"] == "operator not ready" for each in operator.said()))
            said = operator.page("/readyz")[1]
            assert "cannot see whose machines.vitistack.io is: allow get of customresourcedefinitions to the operator" in said
    finally:
        document = yaml.safe_load(kept)
        document["metadata"] = {"name": binding}
        cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump(document))


def test_a_right_that_was_cut_is_named_until_it_is_granted(stored: Cluster, tmp_path: Path) -> None:
    cluster = stored
    with operating(cluster.operator, tmp_path / "log", *ARGUMENTS) as operator:
        with lacking(cluster, Right("kubevirt.io", "virtualmachines", "create")):
            operator.wait(lambda: operator.listens and operator.leads)
            fix = 'the verb "create" on virtualmachines of API group "kubevirt.io"'
            problem = "cannot create virtualmachines.kubevirt.io at the cluster scope"
            named = f"[-]rights {problem}, which vitistack needs: grant the operator {fix}"
            # Before anything needs it.
            operator.wait(lambda: named in operator.page("/readyz")[1])
            assert operator.page("/readyz")[0] == 500
            (told,) = [each for each in operator.said() if each["message"] == "right missing"]
            assert told["problem"] == problem and fix in told["fix"]
            apply_machine(cluster, "refused")
            # The machine's own status says it, too.
            path = "/apis/vitistack.io/v1alpha1/namespaces/default/machines/refused"
            operator.wait(lambda: fix in str(cluster.api.request("GET", path).body.get("status", {})))
        operator.wait_ready()
        operator.wait(lambda: is_made(cluster, "refused"))


def leading(operator: Operator) -> set[str]:
    """Return the dialects in which an operator leads."""
    lines = [line for line in operator.page("/metrics")[1].splitlines() if line.startswith("paddock_leader{") and line.endswith(" 1")]
    return {line.partition("paddock-operator-")[2].partition('"')[0] for line in lines}


def test_operators_with_a_common_dialect_exclude_each_other_in_it(stored: Cluster, tmp_path: Path) -> None:
    cluster = stored
    both = ("--dialect", "stakater,vitistack", *ARGUMENTS[2:])
    with operating(cluster.operator, tmp_path / "one", *ARGUMENTS) as one:
        one.wait_ready()
        one.wait(lambda: leading(one) == {"vitistack"})
        with operating(cluster.operator, tmp_path / "both", *both) as other:
            other.wait_ready()
            other.wait(lambda: leading(other) == {"stakater"})
            apply_machine(cluster, "shared")
            one.wait(lambda: is_made(cluster, "shared"))
            assert leading(one) == {"vitistack"} and leading(other) == {"stakater"}
            one.process.send_signal(signal.SIGTERM)
            assert one.process.wait(15) == 0
            other.wait(lambda: leading(other) == {"stakater", "vitistack"})
            assert one.complaints() == other.complaints() == []
