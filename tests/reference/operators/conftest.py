"""The two backends of the front doors: a cluster with KubeVirt's definitions and the chart's rights, and the embedded server."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from paddock.dialects import fronts
from paddock.dialects.fronts import FrontSettings
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from tests.reference import cdidefinitions, crds, projects, recipes
from tests.reference.build import Binaries, built
from tests.reference.cdiwebhooks import refusing
from tests.reference.client import Api, Json, Kubectl
from tests.reference.crds import Crd
from tests.reference.embedded import serving
from tests.reference.operators import upstream
from tests.reference.operators.helm import NAMESPACE, PADDOCK, Helm
from tests.reference.operators.node import run_handler, run_node
from tests.reference.operators.others import collect_garbage, play_kubevirt
from tests.reference.operators.rights import Right, audited, auditing, without
from tests.reference.operators.running import beside
from tests.reference.operators.upstream import Upstream
from tests.reference.recipes import KUBEVIRT
from tests.reference.server import Access, Rules, running, write_kubeconfig

# What an operator of the two dialects needs of KubeVirt and CDI, and what it can use.
_KUBEVIRT = (
    "virtualmachines.kubevirt.io",
    "virtualmachineinstances.kubevirt.io",
    "virtualmachinepools.pool.kubevirt.io",
    "kubevirts.kubevirt.io",
)
_RULES = Rules()
CONFIGURATION: Json = {"configuration": {"network": {"binding": {"l2bridge": {"domainAttachmentType": "managedTap"}}}}}
LAUNCHERS = "/api/v1/namespaces/{}/pods"


@dataclass(frozen=True)
class Cluster:
    """A server with definitions of KubeVirt and CDI, and the rights that the chart gives."""

    access: Access
    # of the operator's ServiceAccount
    operator: Path
    api: Api
    kubectl: Kubectl
    # what the server notes of the operator's requests
    audit: Path
    # the objects of the chart that grant rights
    rights: Sequence[Json]


@pytest.fixture(scope="session")
def helms(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> list[Helm]:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    say = terminal.write_line if terminal else print
    return [Helm(built(each, say=say) / "helm", tmp_path_factory.mktemp("helm")) for each in recipes.HELMS.values()]


@pytest.fixture(scope="module")
def cluster(binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own for each file, because its definitions are KubeVirt's and not ours."""
    with made(binaries, helms[0], tmp_path_factory.mktemp("cluster"), definitions()) as cluster:
        yield cluster


def definitions() -> Sequence[Crd]:
    """KubeVirt's own, and those of others."""
    theirs = [Crd(origin, document) for origin, document in projects.kubevirt() if document["metadata"]["name"] in _KUBEVIRT]
    return [*theirs, *beside_kubevirt()]


def beside_kubevirt() -> Sequence[Crd]:
    """CDI's own, and those of the front doors."""
    wanted = ("k8s.cni.cncf.io", "vitistack.io", "infrastructure.stakater.com")
    return [*cdidefinitions.definitions(), *(each for each in crds.load() if each.spec["group"] in wanted)]


@contextmanager
def made(binaries: Binaries, helm: Helm, directory: Path, wanted: Sequence[Crd], *values: str, more: Rules = _RULES) -> Iterator[Cluster]:
    """A cluster with the rights that the chart gives with these values, ready; gone when the block ends."""
    values = values or ("dialects={vitistack,stakater}",)
    chart = helm.template(PADDOCK, *(part for each in values for part in ("--set", each)))
    (name,) = [each["metadata"]["name"] for each in chart if each["kind"] == "ServiceAccount"]
    account, token = f"system:serviceaccount:{NAMESPACE}:{name}", secrets.token_hex(16)
    rules = Rules(
        authorization="RBAC",
        users=(f'{token},{account},operator,"system:serviceaccounts"', *more.users),
        admission=("OwnerReferencesPermissionEnforcement",),
        flags=(*more.flags, *auditing(directory, account)),
    )
    with running(binaries, directory, rules) as access, ExitStack() as ends:
        api = Api(access)
        ends.callback(api.close)
        crds.install(api, wanted)
        (directory / "home").mkdir()
        kubectl = Kubectl(binaries.kubectl, access, directory / "home")
        kubectl.ok("create", "namespace", NAMESPACE)
        rights = [each for each in chart if "rbac" in each["apiVersion"]]
        kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))
        operator = write_kubeconfig(directory / "operator", access.url, token, access.authority)
        yield Cluster(access, operator, api, kubectl, directory / "audit.log", rights)


@contextmanager
def lacking(cluster: Cluster, right: Right) -> Iterator[Callable[[], bool]]:
    """Take a right away until the block ends; yields whether the operator was refused anything since."""
    before = cluster.audit.stat().st_size
    cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(without(cluster.rights, right)))
    try:
        yield lambda: bool(audited(cluster.audit, before).refused)
    finally:
        cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(cluster.rights))


@contextmanager
def others(cluster: Cluster) -> Iterator[None]:
    """KubeVirt, CDI with its webhooks, and the garbage collector of a cluster."""
    kubeconfig = cluster.access.kubeconfig
    with refusing(cluster.api, cluster.operator.parent), beside(kubeconfig, play_kubevirt), beside(kubeconfig, collect_garbage):
        yield


@contextmanager
def embedded_fronts(binaries: Binaries, directory: Path, interval: float) -> Iterator[tuple[Api, Kubectl]]:
    """The embedded server with its front doors, and KubeVirt's part played."""

    async def front_doors(client: Client) -> None:
        program = ControllerManager(client, component="paddock", instance="embedded", machinery=Machinery())
        fronts.wire(program, FrontSettings(resync_seconds=interval))
        await program.run()

    with serving(directory / "server") as server, ExitStack() as ends:
        api = Api(server.access)
        ends.callback(api.close)
        (directory / "home").mkdir()
        ends.enter_context(beside(server.kubeconfig, play_kubevirt))
        ends.enter_context(beside(server.kubeconfig, front_doors))
        yield api, Kubectl(binaries.kubectl, server.access, directory / "home")


def found(api: Api, path: str) -> Json:
    """An object or a list; empty when it is not there."""
    answer = api.request("GET", path)
    return answer.body if answer.ok else {}


@dataclass(frozen=True)
class Real:
    """A cluster with KubeVirt."""

    upstream: Upstream
    cluster: Cluster

    def get(self, path: str) -> Json:
        """An object; empty when it is not there."""
        return found(self.cluster.api, path)

    def items(self, path: str) -> Sequence[Json]:
        """A list."""
        found: list[Json] = self.get(path)["items"]
        return found

    def launched(self, namespace: str) -> set[str]:
        """The machines of which virt-controller has made a pod, and that run in it."""
        pods = self.items(LAUNCHERS.format(namespace))
        running = {each["metadata"]["annotations"]["kubevirt.io/domain"] for each in pods if each["status"].get("phase") == "Running"}
        instances = self.items(f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances")
        return running & {each["metadata"]["name"] for each in instances if each["status"].get("phase") == "Running"}


@pytest.fixture(scope="package")
def real(pytestconfig: pytest.Config, binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """For all files that ask it."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    programs = built(KUBEVIRT, say=terminal.write_line if terminal else print)
    directory = tmp_path_factory.mktemp("upstream")
    (directory / "cluster").mkdir()
    theirs = upstream.prepared(programs, KUBEVIRT.version, directory / "kubevirt")
    wanted = [*theirs.definitions, *beside_kubevirt()]
    values = ("dialects={kubermatic,stakater,vitistack}", "front.secretName=front")
    with ExitStack() as ends:
        cluster = ends.enter_context(made(binaries, helms[0], directory / "cluster", wanted, *values, more=theirs.rules))
        ends.enter_context(upstream.kubevirt(theirs, cluster.api, CONFIGURATION))
        ends.enter_context(beside(upstream.way_in(theirs, cluster.api, "virt-handler"), run_handler))
        ends.enter_context(refusing(cluster.api, directory))
        for each in (run_node, collect_garbage):
            ends.enter_context(beside(cluster.access.kubeconfig, each))
        yield Real(theirs, cluster)
