"""The chart, rendered by both helms: the document's names and defaults, rights word for word, and what a real server says of it."""

from typing import Any

import pytest
import yaml

from tests.reference.build import Binaries
from tests.reference.operators.conftest import Cluster
from tests.reference.operators.helm import CHART, NAMESPACE, Helm

pytestmark = pytest.mark.reference
_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]
# The document's own, in its order.
DOCUMENTED = [
    {"apiGroups": ["vitistack.io"], "resources": ["machines", "networkconfigurations"], "verbs": _ALL},
    {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachines", "virtualmachineinstances"], "verbs": _ALL},
    {"apiGroups": [""], "resources": ["persistentvolumeclaims", "secrets", "configmaps"], "verbs": _ALL},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]
_READ = ["get", "list", "watch"]
# group, resource, verbs: what is needed besides
ADDED = [
    ("vitistack.io", "machines/status", ["update", "patch"]),
    ("vitistack.io", "networkconfigurations/status", ["update", "patch"]),
    ("vitistack.io", "machines/finalizers", ["update"]),
    ("k8s.cni.cncf.io", "network-attachment-definitions", _ALL),
    ("storage.k8s.io", "storageclasses", _READ),
]


@pytest.fixture(params=[0, 1], ids=["helm-3", "helm-4"])
def helm(request: pytest.FixtureRequest, helms: list[Helm]) -> Helm:
    index: int = request.param
    return helms[index]


def find(objects: Any, kind: str, name: str) -> Any:
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def allows(rules: Any, group: str, resource: str, verbs: list[str]) -> bool:
    given = {verb for rule in rules if group in rule["apiGroups"] and resource in rule["resources"] for verb in rule["verbs"]}
    return set(verbs) <= given


@pytest.mark.spec("vitistack", 78)
def test_defaults(helm: Helm) -> None:
    assert helm.run("lint", "--strict", str(CHART)).returncode == 0
    values = yaml.safe_load(helm.run("show", "values", str(CHART)).stdout)
    version = yaml.safe_load(helm.run("show", "chart", str(CHART)).stdout)["version"]
    assert values["image"] == {"repository": "ghcr.io/vitistack/kubevirt-operator", "tag": "", "pullPolicy": "IfNotPresent"}
    assert values["replicaCount"] == 1
    assert values["resources"] == {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
    assert (values["nodeSelector"], values["tolerations"], values["affinity"]) == ({}, [], {})
    objects = helm.template(CHART)
    deployment = find(objects, "Deployment", "kubevirt-operator-controller-manager")
    assert deployment["metadata"]["namespace"] == NAMESPACE
    assert deployment["spec"]["replicas"] == 1
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == (f"ghcr.io/vitistack/kubevirt-operator:{version}", "IfNotPresent")
    assert container["resources"] == values["resources"]
    assert {"nodeSelector", "tolerations", "affinity"}.isdisjoint(pod)
    assert pod["serviceAccountName"] == find(objects, "ServiceAccount", "kubevirt-operator-controller-manager")["metadata"]["name"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment == {
        "NAMESPACE": None,
        "RECONCILE_INTERVAL": "30s",
        "MAX_CONCURRENT_RECONCILES": "5",
        "METRICS_BIND_ADDRESS": ":8080",
        "HEALTH_PROBE_BIND_ADDRESS": ":8081",
        "LEADER_ELECTION": "true",
    }
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"metrics": 8080, "health": 8081}
    assert [container[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")] == [
        {"path": "/healthz", "port": "health"},
        {"path": "/readyz", "port": "health"},
    ]


def test_values_have_an_effect(helm: Helm) -> None:
    given = ["image.tag=v9", "replicaCount=2", "nodeSelector.disk=ssd", "tolerations[0].operator=Exists", "resources.limits.cpu=1"]
    given += ["settings.METRICS_BIND_ADDRESS=0", "dialects={stakater,kubermatic}", "front.secretName=front", "args={--log-level=debug}"]
    objects = helm.template(CHART, *(part for each in given for part in ("--set", each)))
    spec = find(objects, "Deployment", "kubevirt-operator-controller-manager")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["replicas"], container["image"].rpartition(":")[2], pod["nodeSelector"]) == (2, "v9", {"disk": "ssd"})
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert container["resources"]["limits"] == {"cpu": 1, "memory": "512Mi"}
    assert container["args"] == ["--dialect=stakater,kubermatic", "--front=/etc/paddock/front/kubeconfig", "--log-level=debug"]
    assert [each["name"] for each in container["ports"]] == ["health"]
    assert not [each for each in objects if each["kind"] == "Service"]
    assert {each["metadata"]["name"] for each in objects if each["kind"] == "CustomResourceDefinition"} == {
        "virtualmachines.infrastructure.stakater.com"
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("dialects={qemu}", "there is no front door"),
        ("dialects={kubermatic}", "needs front.secretName"),
        ("dialects=null", "name at least one"),
    ],
)
def test_values_that_are_refused(helm: Helm, given: str, words: str) -> None:
    ran = helm.run("template", "x", str(CHART), "--kube-version", "1.34", "--set", given)
    assert ran.returncode != 0
    assert words in ran.stderr


@pytest.mark.spec("vitistack", 79)
def test_rights(helm: Helm) -> None:
    objects = helm.template(CHART)
    rules = find(objects, "ClusterRole", "kubevirt-operator")["rules"]
    assert rules[: len(DOCUMENTED)] == DOCUMENTED
    for group, resource, verbs in ADDED:
        assert allows(rules, group, resource, verbs), (group, resource)
    binding = find(objects, "ClusterRoleBinding", "kubevirt-operator-manager-rolebinding")
    account = {"kind": "ServiceAccount", "name": "kubevirt-operator-controller-manager", "namespace": NAMESPACE}
    assert (binding["roleRef"]["name"], binding["subjects"]) == ("kubevirt-operator", [account])
    # Leases in its own namespace, and nowhere else.
    lease = find(objects, "Role", "kubevirt-operator-leader-election")
    assert lease["metadata"]["namespace"] == NAMESPACE
    assert allows(lease["rules"], "coordination.k8s.io", "leases", ["get", "create", "update"])
    assert not allows(rules, "coordination.k8s.io", "leases", ["get"])
    assert find(objects, "RoleBinding", "kubevirt-operator-leader-election")["subjects"] == [account]
    # Nothing is allowed to everything.
    assert not any("*" in rule[part] for rule in rules for part in ("apiGroups", "resources", "verbs"))


def test_definitions_stay_when_the_release_goes(helm: Helm) -> None:
    definitions = [each for each in helm.template(CHART) if each["kind"] == "CustomResourceDefinition"]
    folder = CHART.parents[2] / "api" / "crds" / "vitistack"
    assert {each["metadata"]["name"] for each in definitions} == {path.stem for path in folder.glob("*.yaml")}
    for each in definitions:
        assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert each["spec"] == yaml.safe_load((folder / f"{each['metadata']['name']}.yaml").read_text())["spec"]
    assert not [each for each in helm.template(CHART, "--set", "definitions=false") if each["kind"] == "CustomResourceDefinition"]


def test_a_real_server_takes_it(helm: Helm, cluster: Cluster, binaries: Binaries) -> None:
    objects = helm.template(CHART, "--set", "dialects={vitistack,stakater}")
    said = cluster.kubectl.ok("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert len(said.splitlines()) == len(objects)
