"""Vitistack's operator, installed by hand as docs/cluster/operator.md says: it is what the chart gives, and it works."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.client import Api, Json, Kubectl
from tests.reference.operators.conftest import Cluster, definitions, others
from tests.reference.operators.helm import CHART, CHARTS, NAMESPACE, Helm
from tests.reference.operators.rights import audited, auditing
from tests.reference.operators.running import operating
from tests.reference.operators.scenario import EXAMPLES, INTERVAL, Script
from tests.reference.server import Rules, running, write_kubeconfig

pytestmark = pytest.mark.reference
BASE = CHARTS.parent / "kubevirt-operator"
# In the document's order.
DIRECTORIES = ("crd", "rbac", "manager")
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kubevirt-operator-controller-manager"
TOKEN = "manual"
# What the operator of the manifest listens on belongs to a Pod; here it listens on a port that is free.
ELSEWHERE = ("METRICS_BIND_ADDRESS", "HEALTH_PROBE_BIND_ADDRESS", "NAMESPACE", "RECONCILE_INTERVAL")


@pytest.fixture(scope="module")
def rendered(helms: list[Helm]) -> Sequence[Json]:
    """What the chart gives with its defaults, said of kubectl instead of helm."""
    text = yaml.safe_dump_all(helms[0].template(CHART), sort_keys=False)
    return [each for each in yaml.safe_load_all(text.replace("managed-by: Helm", "managed-by: kubectl")) if each]


@pytest.fixture(scope="module")
def cluster(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with KubeVirt's and CDI's definitions, without any of Vitistack's."""
    directory = tmp_path_factory.mktemp("manual")
    rules = Rules(
        authorization="RBAC",
        users=(f'{TOKEN},{ACCOUNT},operator,"system:serviceaccounts"',),
        admission=("OwnerReferencesPermissionEnforcement",),
        flags=tuple(auditing(directory, ACCOUNT)),
    )
    with running(binaries, directory, rules) as access:
        api = Api(access)
        crds.install(api, [each for each in definitions() if each.spec["group"] != "vitistack.io"])
        (directory / "home").mkdir()
        kubectl = Kubectl(binaries.kubectl, access, directory / "home")
        operator = write_kubeconfig(directory / "operator", access.url, TOKEN, access.authority)
        yield Cluster(access, operator, api, kubectl, directory / "audit.log", ())
        api.close()


def documents(directory: str) -> Iterator[Json]:
    for path in sorted((BASE / "config" / directory).iterdir()):
        yield from (each for each in yaml.safe_load_all(path.read_text()) if each)


def known(objects: Sequence[Json]) -> dict[tuple[str, str], Any]:
    """Objects by kind and name, without what is only helm's."""
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects if each["kind"] != "Namespace"}
    for each in found.values():
        each["metadata"].get("annotations", {}).pop("helm.sh/resource-policy", None)
        each["metadata"] = {name: value for name, value in each["metadata"].items() if value}
    return found


def write(rendered: Sequence[Json]) -> None:
    """Write the directories anew, but for the definitions, which `make gen` writes."""
    rights = [each for each in rendered if "rbac" in each["apiVersion"] or each["kind"] == "ServiceAccount"]
    rest = [each for each in rendered if each not in rights and each["kind"] != "CustomResourceDefinition"]
    for name, objects in (("rbac/rights.yaml", rights), ("manager/operator.yaml", rest)):
        (BASE / "config" / name).write_text(yaml.safe_dump_all(objects, sort_keys=False))


@pytest.mark.spec("vitistack", 82)
def test_the_directories_are_what_the_chart_gives(rendered: Sequence[Json], pytestconfig: pytest.Config) -> None:
    """`--golden-update` writes them anew."""
    if pytestconfig.getoption("--golden-update"):
        write(rendered)
    assert known([each for name in DIRECTORIES for each in documents(name)]) == known(rendered)


def asked(deployment: Json) -> tuple[dict[str, str], list[str]]:
    """The environment and the arguments that a Deployment gives its operator."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}, container["args"]


@pytest.mark.spec("vitistack", 82)
def test_kubectl_brings_up_an_operator_that_works(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DIRECTORIES:
        cluster.kubectl.ok("apply", "-f", f"{BASE / 'config' / name}/")
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kubevirt-operator-controller-manager"
    environment, arguments = asked(cluster.api.request("GET", path).body)
    for name, value in environment.items():
        if name not in ELSEWHERE:
            monkeypatch.setenv(name, value)
    given = ("--namespace", NAMESPACE, "--reconcile-interval", INTERVAL)
    with others(cluster), operating(cluster.operator, tmp_path / "log", *arguments, *given) as operator:
        operator.wait_ready()
        operator.wait(lambda: operator.leads)
        script = Script(cluster.api, cluster.kubectl, [each for each in EXAMPLES if each.name == "v-basic"])
        script.prepare()
        for name, act in (("created", script.apply), ("deleted", script.delete)):
            act()
            script.settled(name)
    seen = audited(cluster.audit)
    assert not seen.refused
    assert {each.verb for each in seen.allowed if each.resource == "virtualmachines"} >= {"create", "delete"}
