"""`paddock operator` with the rights of its chart on the reference cluster: machines become guests, change, stop, and go."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from paddock.engine.images.build import tiny
from tests.host.fronts.life import place
from tests.host.guests import serving
from tests.reference import embedded
from tests.reference.build import built
from tests.reference.client import MERGE_PATCH, Api, Json
from tests.reference.cluster.conftest import BOOT_SECONDS, Cluster, say
from tests.reference.operators.helm import NAMESPACE, PADDOCK, Helm
from tests.reference.operators.running import Operator, operating
from tests.reference.recipes import HELMS
from tests.reference.server import free_ports, launched, write_kubeconfig
from tests.reference.virtctl.conftest import INSTANCES, MACHINES, Quiet, holds

pytestmark = [pytest.mark.reference, pytest.mark.soak]
_DIALECTS = ("kubermatic", "stakater", "vitistack", "virtrigaud")
_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
_LOOPBACK = ("--provider-from", "127.0.0.1,localhost")
_MADE = (
    *(MACHINES, INSTANCES, "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/persistentvolumeclaims"),
    *("/api/v1/persistentvolumes", "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"),
    *("/api/v1/namespaces/default/secrets",),
)


@dataclass(frozen=True)
class Front:
    """A machine of a dialect, and the patches of its life."""

    path: str
    machine: str
    change: Json
    # True of KubeVirt's machine once the change has reached it
    changed: Callable[[Json], bool]
    stop: Json
    start: Json
    # the power state that the front reports
    state: Callable[[Json], str]


STAKATER = Front(
    "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines/basic-vm",
    "basic-vm",
    {"spec": {"parameters": {"additionalLabels": {"tier": "gold"}}}},
    lambda machine: machine["metadata"]["labels"].get("tier") == "gold",
    {"spec": {"parameters": {"runStrategy": "Halted"}}},
    {"spec": {"parameters": {"runStrategy": "Always"}}},
    lambda front: str(front.get("status", {}).get("vm", {}).get("printableStatus")),
)
VITISTACK = Front(
    "/apis/vitistack.io/v1alpha1/namespaces/default/machines/basic-vm",
    "basic-vm",
    {"spec": {"resources": {"cpu": {"cores": 3}}}},
    lambda machine: machine["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 3,
    {"metadata": {"annotations": {"vitistack.io/power-state": "stopped"}}},
    {"metadata": {"annotations": {"vitistack.io/power-state": "running"}}},
    lambda front: str(front.get("status", {}).get("phase")),
)
KUBERMATIC = Front(
    f"{MACHINES}/my-vm-with-http-data-volume",
    "my-vm-with-http-data-volume",
    {"spec": {"template": {"metadata": {"labels": {"tier": "gold"}}}}},
    lambda machine: machine["spec"]["template"]["metadata"]["labels"].get("tier") == "gold",
    {"spec": {"runStrategy": "Halted"}},
    {"spec": {"runStrategy": "RerunOnFailure"}},
    lambda front: str(front.get("status", {}).get("printableStatus")),
)
VIRTRIGAUD = Front(
    "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines/debian",
    "debian",
    {"spec": {"resources": {"cpu": 3}}},
    lambda machine: _processors(machine["spec"]["template"]["spec"]["domain"]["cpu"]) == 3,
    {"spec": {"powerState": "Off"}},
    {"spec": {"powerState": "On"}},
    lambda front: "Running" if front.get("status", {}).get("powerState") == "On" else "Stopped",
)


def _processors(cpu: Json) -> int:
    return int(cpu.get("sockets", 1) * cpu.get("cores", 1) * cpu.get("threads", 1))


@pytest.fixture(scope="module")
def image(tiny_guest: tiny.TinyImage) -> Iterator[str]:
    """The URL of the tiny guest's disk, on the host's loopback."""
    with serving(partial(Quiet, directory=str(tiny_guest.disk.parent))) as address:
        yield f"http://{address}/{tiny_guest.disk.name}"


@dataclass(frozen=True)
class Fronts:
    """The operator on the cluster, and the API that has Kubermatic's forms."""

    cluster: Cluster
    operator: Operator
    front: Api

    def wait(self, what: Callable[[], bool]) -> None:
        """Wait for something, as long as a guest may take."""
        self.operator.wait(what, BOOT_SECONDS)

    def instance(self, name: str) -> Json:
        """A machine that runs on the cluster; empty when it does not."""
        return self.cluster.get(f"{INSTANCES}/{name}")


@pytest.fixture(scope="module")
def fronts(cluster: Cluster, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    """The operator with the ServiceAccount of the chart, which grants its rights."""
    directory = tmp_path_factory.mktemp("operator")
    helm = Helm(built(HELMS["3"], say(pytestconfig)) / "helm", directory)
    chart = helm.template(PADDOCK, "--set", f"dialects={{{','.join(_DIALECTS)}}}", "--set", "front.secretName=front")
    (account,) = [each["metadata"]["name"] for each in chart if each["kind"] == "ServiceAccount"]
    # No image of the operator is on the node: its process is the host's.
    objects = [_NAMESPACE, *(each for each in chart if each["kind"] != "Deployment")]
    cluster.kubectl.ok("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))
    token = cluster.kubectl.ok("create", "token", account, "-n", NAMESPACE, "--duration=12h").strip()
    access = write_kubeconfig(directory / "access", cluster.api.access.url, token, cluster.api.access.authority)
    with embedded.serving(directory / "front") as server, ExitStack() as ends:
        front = Api(server.access)
        ends.callback(front.close)
        dialects = [word for each in _DIALECTS for word in ("--dialect", each)]
        settings = ("--front", str(server.kubeconfig), "--namespace", NAMESPACE, "--reconcile-interval", "5s", *_LOOPBACK)
        operator = ends.enter_context(operating(access, directory / "log", *dialects, *settings))
        fronts = Fronts(cluster, operator, front)
        fronts.wait(lambda: any(each["message"] == "metrics and health endpoints listening" for each in operator.said()))
        fronts.wait(lambda: operator.page("/readyz")[0] == 200)
        yield fronts


@pytest.fixture
def provider(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """The address of a provider that keeps machines on the cluster."""
    # Complete in itself, as a kubeconfig in a Secret is.
    (tmp_path / "kubeconfig").write_text(cluster.kubectl.ok("config", "view", "--flatten", "--raw"))
    (port,) = free_ports(1)
    words = ("--type", "kubevirt", "--insecure", "--port", str(port), "--health-port", "0", "--credentials-dir", str(tmp_path))
    with launched([sys.executable, "-m", "paddock.app", "provider", "serve", *words], tmp_path / "log"):
        yield f"127.0.0.1:{port}"


def _example(dialect: str, name: str) -> Sequence[Json]:
    text = (files(f"paddock.dialects.{dialect}") / "examples" / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text))


def _catalogue(image: str) -> Sequence[Json]:
    """The images of a cluster as OpenShift has them: a filled claim, its DataSource, and the right of everybody to copy it."""
    namespace = "openshift-virtualization-os-images"
    metadata, cdi, rbac = {"name": "rhel9", "namespace": namespace}, "cdi.kubevirt.io/v1beta1", "rbac.authorization.k8s.io"
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    role = {"rules": [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}]}
    group = {"apiGroup": rbac, "kind": "Group", "name": "system:authenticated"}
    named = {"apiGroup": rbac, "kind": "Role", "name": "rhel9"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": cdi, "kind": "DataVolume", "metadata": metadata, "spec": {"source": {"http": {"url": image}}, "storage": storage}},
        {"apiVersion": cdi, "kind": "DataSource", "metadata": metadata, "spec": {"source": {"pvc": metadata}}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, **role},
        {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": named, "subjects": [group]},
    ]


def _live(fronts: Fronts, front: Front, documents: Sequence[Json], api: Api) -> None:
    """Everything, in order; the API is the one that has the dialect's objects."""
    cluster = fronts.cluster

    def patch(body: Json) -> None:
        answer = api.request("PATCH", front.path, body, headers=MERGE_PATCH)
        assert answer.ok, answer.message

    def runs() -> None:
        fronts.wait(lambda: holds(fronts.instance(front.machine), "AgentConnected"))
        fronts.wait(lambda: front.state(api.request("GET", front.path).body) == "Running")

    before = {path: set(cluster.names(path)) for path in _MADE}
    for document in documents:
        where = place(document)
        query = {"fieldManager": "user", "fieldValidation": "Strict"}
        answer = api.request("PATCH", where, document, query=query, headers={"Content-Type": "application/apply-patch+yaml"})
        assert answer.ok, (where, answer.message)
    runs()
    assert fronts.instance(front.machine)["status"]["interfaces"][0]["ipAddress"].startswith("10.244.0.")
    patch(front.change)
    fronts.wait(lambda: front.changed(cluster.get(f"{MACHINES}/{front.machine}")))
    patch(front.stop)
    fronts.wait(lambda: not fronts.instance(front.machine) and not cluster.guests())
    fronts.wait(lambda: front.state(api.request("GET", front.path).body) == "Stopped")
    patch(front.start)
    runs()
    for document in [each for each in reversed(documents) if each["kind"] != "Namespace"]:
        assert api.request("DELETE", place(document)).ok, document
    fronts.wait(lambda: {path: set(cluster.names(path)) for path in _MADE} == before)
    fronts.wait(lambda: not cluster.guests())
    folders = {each.name for each in (cluster.machine.directory / "volumes").iterdir()}
    assert folders == before["/api/v1/persistentvolumes"]
    assert fronts.operator.complaints() == []
    assert 'code="403"' not in fronts.operator.page("/metrics")[1]


def test_stakater(fronts: Fronts, image: str) -> None:
    """The document unchanged, with its image in the catalogue; its plug-in is not there, so the operator takes masquerade."""
    fronts.cluster.kubectl.ok("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(_catalogue(image)))
    _live(fronts, STAKATER, _example("stakater", "minimal"), fronts.cluster.api)


def test_vitistack(fronts: Fronts, image: str) -> None:
    """The document with an image for its root disk."""
    (document,) = _example("vitistack", "basic")
    document["metadata"]["annotations"] = {"vitistack.io/root-image": image}
    _live(fronts, VITISTACK, [document], fronts.cluster.api)


def test_kubermatic(fronts: Fronts, image: str) -> None:
    """The document with the address of the image, in an API of its own."""
    machine, source = _example("kubermatic", "virtualmachine")
    source["spec"]["source"]["http"]["url"] = image
    _live(fronts, KUBERMATIC, [source, machine], fronts.front)


def test_virtrigaud(fronts: Fronts, provider: str, image: str) -> None:
    """The document with the address of the image, and with that of a provider that is served already."""
    documents = _example("virtrigaud", "local")
    for each in documents:
        if each["kind"] == "Provider":
            each["metadata"]["annotations"] = {"virtrigaud.io/provider-address": provider}
            each["spec"]["runtime"] = {"image": "none:1", "service": {"tls": {"enabled": False}}}
            each["spec"]["endpoint"] = fronts.cluster.api.access.url
        elif each["kind"] == "VMImage":
            each["spec"]["source"]["http"]["url"] = image
    _live(fronts, VIRTRIGAUD, documents, fronts.cluster.api)
