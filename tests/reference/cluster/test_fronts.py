"""`paddock operator` with the rights of its chart on the reference cluster: machines become guests, change, stop, and go."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

import pytest
import yaml

from paddock.engine.images.build import tiny
from tests.host.fronts.life import catalogue
from tests.host.guests import serving
from tests.reference.build import built
from tests.reference.client import MERGE_PATCH, Json
from tests.reference.cluster.conftest import BOOT_SECONDS, Cluster, say
from tests.reference.operators.helm import NAMESPACE, PADDOCK, Helm
from tests.reference.operators.running import Operator, operating
from tests.reference.recipes import HELMS
from tests.reference.server import write_kubeconfig
from tests.reference.virtctl.conftest import INSTANCES, MACHINES, Quiet, holds

pytestmark = [pytest.mark.reference, pytest.mark.soak]
_IN_DEFAULT = (
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


@pytest.fixture(scope="module")
def image(tiny_guest: tiny.TinyImage) -> Iterator[str]:
    """The URL of the tiny guest's disk, on the host's loopback."""
    with serving(partial(Quiet, directory=str(tiny_guest.disk.parent))) as address:
        yield f"http://{address}/{tiny_guest.disk.name}"


@pytest.fixture(scope="module")
def operator(cluster: Cluster, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The operator with the ServiceAccount of the chart, which grants its rights."""
    directory = tmp_path_factory.mktemp("operator")
    helm = Helm(built(HELMS["3"], say(pytestconfig)) / "helm", directory)
    chart = helm.template(PADDOCK, "--set", "dialects={stakater,vitistack}")
    (account,) = [each["metadata"]["name"] for each in chart if each["kind"] == "ServiceAccount"]
    cluster.kubectl.ok("create", "namespace", NAMESPACE)
    # No image of the operator is on the node: its process is the host's.
    objects = [each for each in chart if each["kind"] != "Deployment"]
    cluster.kubectl.ok("apply", "--server-side", "-n", NAMESPACE, "-f", "-", stdin=yaml.safe_dump_all(objects))
    token = cluster.kubectl.ok("create", "token", account, "-n", NAMESPACE, "--duration=12h").strip()
    access = write_kubeconfig(directory / "operator", cluster.api.access.url, token, cluster.api.access.authority)
    dialects = ("--dialect", "stakater", "--dialect", "vitistack")
    with operating(access, directory / "log", *dialects, "--namespace", NAMESPACE, "--reconcile-interval", "5s") as operator:
        operator.wait_ready()
        yield operator


def _example(dialect: str, name: str) -> Sequence[Json]:
    text = (files(f"paddock.dialects.{dialect}") / "examples" / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text))


def _live(cluster: Cluster, operator: Operator, front: Front, documents: Sequence[Json]) -> None:
    """Everything, in order."""

    def patch(body: Json) -> None:
        answer = cluster.api.request("PATCH", front.path, body, headers=MERGE_PATCH)
        assert answer.ok, answer.message

    def instance() -> Json:
        return cluster.get(f"{INSTANCES}/{front.machine}")

    def reports(state: str) -> None:
        operator.wait(lambda: front.state(cluster.get(front.path)) == state, BOOT_SECONDS)

    before = {path: set(cluster.names(path)) for path in _IN_DEFAULT}
    cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))
    operator.wait(lambda: holds(instance(), "AgentConnected"), BOOT_SECONDS)
    reports("Running")
    assert instance()["status"]["interfaces"][0]["ipAddress"].startswith("10.244.0.")
    patch(front.change)
    operator.wait(lambda: front.changed(cluster.get(f"{MACHINES}/{front.machine}")))
    patch(front.stop)
    operator.wait(lambda: not instance() and not cluster.guests(), BOOT_SECONDS)
    reports("Stopped")
    patch(front.start)
    operator.wait(lambda: holds(instance(), "AgentConnected"), BOOT_SECONDS)
    reports("Running")
    assert cluster.api.request("DELETE", front.path).ok
    operator.wait(lambda: {path: set(cluster.names(path)) for path in _IN_DEFAULT} == before, BOOT_SECONDS)
    operator.wait(lambda: not cluster.guests())
    assert list((cluster.machine.directory / "volumes").iterdir()) == []
    assert operator.complaints() == []


def test_stakater(cluster: Cluster, operator: Operator, image: str) -> None:
    """The document unchanged, with its image in the catalogue; its plug-in is not there, so the operator takes masquerade."""
    _live(cluster, operator, STAKATER, [*catalogue(image), *_example("stakater", "minimal")])


def test_vitistack(cluster: Cluster, operator: Operator, image: str) -> None:
    """The document with an image for its root disk."""
    (document,) = _example("vitistack", "basic")
    document["metadata"]["annotations"] = {"vitistack.io/root-image": image}
    _live(cluster, operator, VITISTACK, [document])
