"""`paddock operator` on the reference cluster: machines become guests, change, stop, and go.

The chart installs the operator of Stakater and Vitistack as Pods of our own image. That of Kubermatic and VirtRigaud is a process of
the host with the rights of the chart: the API of the forms, and the provider, are programs of the host that no Pod reaches.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.base.images.build import tiny
from paddock.kubernetes.meta.patch import apply_merge_patch
from tests.host.fronts.life import place
from tests.host.guests import serving
from tests.reference import embedded
from tests.reference.build import built
from tests.reference.client import MERGE_PATCH, Api, Json, Kubectl
from tests.reference.cluster import release as releases
from tests.reference.cluster.conftest import BOOT_SECONDS, Cluster, say
from tests.reference.cluster.release import Release
from tests.reference.operators.helm import NAMESPACE, PADDOCK, Helm
from tests.reference.operators.running import Operator, operating
from tests.reference.recipes import HELMS
from tests.reference.server import free_ports, launched, write_kubeconfig
from tests.reference.virtctl.conftest import INSTANCES, MACHINES, Quiet, holds

pytestmark = [pytest.mark.reference, pytest.mark.soak]
_OUTSIDE, _INSIDE = ("kubermatic", "virtrigaud"), ("stakater", "vitistack")
_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
_CATALOGUE = "openshift-virtualization-os-images"
_LOOPBACK = ("--provider-from", "127.0.0.1,localhost")
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
_MADE = (
    *(MACHINES, INSTANCES, "/api/v1/namespaces/default/pods", _CLAIMS),
    *(_VOLUMES, _DISKS),
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
    # the change waits until the machine is off
    waits: bool = False

    @property
    def kind(self) -> str:
        """As kubectl takes it, such as `machines.vitistack.io`."""
        _, _, group, *_, plural, _ = self.path.split("/")
        return f"{plural}.{group}"


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
    waits=True,
)


def _processors(cpu: Json) -> int:
    return int(cpu.get("sockets", 1) * cpu.get("cores", 1) * cpu.get("threads", 1))


@pytest.fixture(scope="module")
def image(cluster: Cluster, tiny_guest: tiny.TinyImage) -> Iterator[str]:
    """The URL of the tiny guest's disk, as the cluster reaches it."""
    with served(tiny_guest) as url:
        yield cluster.reached(url)


@pytest.fixture(scope="module")
def signed(cluster: Cluster, tiny_signed: tiny.TinyImage) -> Iterator[str]:
    """The URL of the one that starts under Secure Boot."""
    with served(tiny_signed) as url:
        yield cluster.reached(url)


@contextmanager
def served(guest: tiny.TinyImage) -> Iterator[str]:
    """The URL of a guest's disk, on the loopback of whoever serves it."""
    with serving(partial(Quiet, directory=str(guest.disk.parent))) as address:
        yield f"http://{address}/{guest.disk.name}"


@dataclass(frozen=True)
class Fronts:
    """The operators on the cluster, and the API that has Kubermatic's forms."""

    cluster: Cluster
    operator: Operator
    release: Release
    front: Api

    def wait(self, what: Callable[[], bool]) -> None:
        """Wait for something, as long as a guest may take."""
        self.operator.wait(what, BOOT_SECONDS)

    def troubles(self) -> Sequence[Any]:
        """Return what operators had to complain of; requests that were refused are among them."""
        refused = [line for line in self.operator.page("/metrics")[1].splitlines() if 'code="403"' in line]
        return [*self.operator.complaints(), *refused, *self.release.troubles()]

    def instance(self, name: str) -> Json:
        """A machine that runs on the cluster; empty when it does not."""
        return self.cluster.get(f"{INSTANCES}/{name}")


@pytest.fixture(scope="module")
def fronts(cluster: Cluster, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    """The operators: Pods of the chart, and a process with the ServiceAccount of the chart, which grants its rights."""
    directory = tmp_path_factory.mktemp("operator")
    helm = Helm(built(HELMS["3"], say(pytestconfig)) / "helm", directory)
    chart = helm.template(PADDOCK, "--set", f"dialects={{{','.join(_OUTSIDE)}}}", "--set", "front.secretName=front")
    (account,) = [each["metadata"]["name"] for each in chart if each["kind"] == "ServiceAccount"]
    objects = [_NAMESPACE, *(each for each in chart if each["kind"] != "Deployment")]
    cluster.kubectl.ok("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))
    token = cluster.kubectl.ok("create", "token", account, "-n", NAMESPACE, "--duration=12h").strip()
    access = write_kubeconfig(directory / "access", cluster.api.access.url, token, cluster.api.access.authority)
    with embedded.serving(directory / "front") as server, ExitStack() as ends:
        front = Api(server.access)
        ends.callback(front.close)
        releases.load_image(cluster, directory)
        values = (f"dialects={{{','.join(_INSIDE)}}}", "args={--reconcile-interval=5s}")
        release = ends.enter_context(releases.installed(cluster, helm, "paddock-fronts", *values))
        dialects = [word for each in _OUTSIDE for word in ("--dialect", each)]
        settings = ("--front", str(server.kubeconfig), "--namespace", NAMESPACE, "--reconcile-interval", "5s", *_LOOPBACK)
        operator = ends.enter_context(operating(access, directory / "log", *dialects, *settings))
        fronts = Fronts(cluster, operator, release, front)
        fronts.wait(lambda: any(each["message"] == "metrics and health endpoints listening" for each in operator.said()))
        fronts.wait(lambda: operator.page("/readyz")[0] == 200)
        yield fronts


@dataclass(frozen=True)
class Remote:
    """A provider that is served already: its address, and the API where it keeps machines."""

    address: str
    endpoint: str


@contextmanager
def providing(cluster: Cluster, directory: Path, namespace: str) -> Iterator[Remote]:
    """A provider that keeps machines in a namespace of the cluster, for the length of a block."""
    # Complete in itself, as a kubeconfig in a Secret is.
    config = yaml.safe_load(cluster.kubectl.ok("config", "view", "--flatten", "--raw"))
    config["contexts"][0]["context"]["namespace"] = namespace
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    words = ("--type", "kubevirt", "--insecure", "--port", str(port), "--health-port", "0", "--credentials-dir", str(directory))
    with launched([sys.executable, "-m", "paddock.app", "provider", "serve", *words], directory / "log"):
        yield Remote(f"127.0.0.1:{port}", cluster.api.access.url)


@pytest.fixture(scope="module")
def provider(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """The one of most tests."""
    with providing(cluster, tmp_path_factory.mktemp("provider"), "default") as remote:
        yield remote


def example(dialect: str, name: str) -> Sequence[Json]:
    text = (files(f"paddock.dialects.{dialect}") / "examples" / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text))


def _catalogue(image: str) -> Sequence[Json]:
    """The images of a cluster: a filled claim, its DataSource, and the right of the machines' ServiceAccount to copy it."""
    metadata, cdi, rbac = {"name": "rhel9", "namespace": _CATALOGUE}, "cdi.kubevirt.io/v1beta1", "rbac.authorization.k8s.io"
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    role = {"rules": [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}]}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    named = {"apiGroup": rbac, "kind": "Role", "name": "rhel9"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _CATALOGUE}},
        {"apiVersion": cdi, "kind": "DataVolume", "metadata": metadata, "spec": {"source": {"http": {"url": image}}, "storage": storage}},
        {"apiVersion": cdi, "kind": "DataSource", "metadata": metadata, "spec": {"source": {"pvc": metadata}}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, **role},
        {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": named, "subjects": [account]},
    ]


def stock(kubectl: Kubectl, image: str) -> None:
    """Fill the catalogue of images; one that an earlier run has filled stays, since its source cannot be changed."""
    if not kubectl.ok("-n", _CATALOGUE, "get", "datavolumes", "-o", "name", "--ignore-not-found"):
        kubectl.ok("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(_catalogue(image)))
    kubectl.ok("-n", _CATALOGUE, "wait", "datavolume/rhel9", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=110s")


def _stakater(_: str, __: Remote | None) -> Sequence[Json]:
    """The document unchanged; its image is in the catalogue, and its plug-in is not there, so the operator takes masquerade."""
    return example("stakater", "minimal")


def _vitistack(image: str, _: Remote | None) -> Sequence[Json]:
    """The document with an image for its root disk."""
    (document,) = example("vitistack", "basic")
    document["metadata"]["annotations"] = {"vitistack.io/root-image": image}
    return [document]


def _kubermatic(image: str, _: Remote | None) -> Sequence[Json]:
    """The document with the address of the image; for a cluster, in an API of its own."""
    machine, source = example("kubermatic", "virtualmachine")
    source["spec"]["source"]["http"]["url"] = image
    return [source, machine]


def _virtrigaud(image: str, remote: Remote | None) -> Sequence[Json]:
    """The document with the address of the image, and for a cluster with that of a provider that is served already."""
    documents = example("virtrigaud", "local")
    for each in documents:
        if each["kind"] == "Provider" and remote is not None:
            each["metadata"]["annotations"] = {"virtrigaud.io/provider-address": remote.address}
            each["spec"]["runtime"] = {"image": "none:1", "service": {"tls": {"enabled": False}}}
            each["spec"]["endpoint"] = remote.endpoint
        elif each["kind"] == "VMImage":
            each["spec"]["source"]["http"]["url"] = image
    return documents


Documents = Callable[[str, Remote | None], Sequence[Json]]
# A machine of each dialect, and its documents: with the URL of an image, and a provider; None: the host's own.
MANIFESTS: Mapping[str, tuple[Front, Documents]] = {
    "stakater": (STAKATER, _stakater),
    "vitistack": (VITISTACK, _vitistack),
    "kubermatic": (KUBERMATIC, _kubermatic),
    "virtrigaud": (VIRTRIGAUD, _virtrigaud),
}


@dataclass(frozen=True)
class Life:
    """The manifest of a dialect on the cluster."""

    fronts: Fronts
    front: Front
    documents: Sequence[Json]
    # that has the dialect's objects
    api: Api
    # what was there before, by list
    before: Mapping[str, set[str]]

    def apply(self, *, change: Json | None = None) -> None:
        """Apply the documents, with a change of the machine's."""
        for document in self.documents:
            where = place(document)
            body = apply_merge_patch(document, change) if change and where == self.front.path else document
            query = {"fieldManager": "user", "fieldValidation": "Strict"}
            answer = self.api.request("PATCH", where, body, query=query, headers={"Content-Type": "application/apply-patch+yaml"})
            assert answer.ok, (where, answer.message)

    def patch(self, body: Json) -> None:
        """Change the machine's document."""
        answer = self.api.request("PATCH", self.front.path, body, headers=MERGE_PATCH)
        assert answer.ok, answer.message

    def reports(self, state: str) -> None:
        """Wait until the front says so."""
        self.fronts.wait(lambda: self.front.state(self.api.request("GET", self.front.path).body) == state)

    def run(self) -> None:
        """Wait until the guest answers, and the front says that it runs."""
        self.fronts.wait(lambda: holds(self.fronts.instance(self.front.machine), "AgentConnected"))
        self.reports("Running")

    def end(self) -> None:
        """Delete everything; nothing may be left, and the operator may have had no trouble."""
        for document in reversed(self.documents):
            assert self.api.request("DELETE", place(document)).ok, document
        cluster = self.fronts.cluster
        # What the next machine would be made of must not be what goes.
        self.fronts.wait(lambda: not any(self.api.request("GET", place(each)).ok for each in self.documents))
        self.fronts.wait(lambda: _there(cluster) == self.before)
        self.fronts.wait(lambda: not cluster.guests())
        assert {each.name for each in (cluster.machine.directory / "volumes").iterdir()} == self.before[_VOLUMES]
        assert self.fronts.troubles() == []


def _there(cluster: Cluster) -> Mapping[str, set[str]]:
    return {path: set(cluster.names(path)) for path in _MADE}


def _settled(cluster: Cluster) -> bool:
    """Return whether every volume has its claim. CDI's importer unpacks in one of its own, which goes a moment after the disk is there."""
    claims = {each["spec"].get("volumeName"): each["metadata"]["name"] for each in cluster.get("/api/v1/persistentvolumeclaims")["items"]}
    return set(cluster.names(_VOLUMES)) == set(claims) and not any(name.endswith("-scratch") for name in claims.values())


def _disks(machine: Json) -> set[str]:
    """Return the claims that KubeVirt's machine names."""
    volumes = machine["spec"]["template"]["spec"]["volumes"]
    named = (each.get("dataVolume") or each.get("persistentVolumeClaim") or {} for each in volumes)
    return {each.get("name") or each["claimName"] for each in named if each}


@pytest.fixture
def life(request: pytest.FixtureRequest, fronts: Fronts, image: str, signed: str, provider: Remote) -> Life:
    """The manifest of the dialect that is the parameter."""
    front, documents = MANIFESTS[request.param]
    if request.param == "stakater":
        # Only Stakater's machines have Secure Boot unless they say otherwise.
        stock(fronts.cluster.kubectl, signed)
    fronts.wait(lambda: _settled(fronts.cluster))
    return Life(
        fronts,
        front,
        documents(image, provider),
        fronts.front if request.param == "kubermatic" else fronts.cluster.api,
        _there(fronts.cluster),
    )


# Kubermatic's disk is made with the first start, and not before.
@pytest.mark.parametrize("life", ["stakater", "vitistack", "virtrigaud"], indirect=True)
def test_stopped_machine(life: Life) -> None:
    """It is there with a filled disk on a bound claim."""
    cluster = life.fronts.cluster
    life.apply(change=life.front.stop)
    life.fronts.wait(lambda: bool(cluster.get(f"{MACHINES}/{life.front.machine}")))
    wanted = _disks(cluster.get(f"{MACHINES}/{life.front.machine}"))

    def filled() -> bool:
        disks = {each["metadata"]["name"] for each in cluster.get(_DISKS)["items"] if each.get("status", {}).get("phase") == "Succeeded"}
        return bool(wanted) and wanted <= disks

    life.fronts.wait(filled)
    life.fronts.wait(lambda: _settled(cluster))
    assert {each["status"]["phase"] for each in cluster.get(_CLAIMS)["items"]} == {"Bound"}
    new = set(cluster.names(_VOLUMES)) - life.before[_VOLUMES]
    sizes = [(cluster.machine.directory / "volumes" / each / "disk.img").stat() for each in new]
    assert new and all(each.st_blocks for each in sizes)
    assert cluster.guests() == []
    life.end()


@pytest.mark.parametrize("life", list(MANIFESTS), indirect=True)
def test_guest(life: Life) -> None:
    """It runs with an address, changes, stops, and starts again."""
    fronts, front = life.fronts, life.front
    life.apply()
    life.run()
    assert fronts.instance(front.machine)["status"]["interfaces"][0]["ipAddress"].startswith("10.244.0.")
    life.patch(front.change)
    fronts.wait(lambda: front.waits or _is_changed(life))
    life.patch(front.stop)
    fronts.wait(lambda: not fronts.instance(front.machine) and not fronts.cluster.guests())
    life.reports("Stopped")
    life.patch(front.start)
    life.run()
    assert _is_changed(life)
    life.end()


def _is_changed(life: Life) -> bool:
    return life.front.changed(life.fronts.cluster.get(f"{MACHINES}/{life.front.machine}"))
