"""The operator in a cluster where KubeVirt's own virt-api and virt-controller work: they take what it writes, and make machines of it."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.reference.build import Binaries
from tests.reference.client import Api, Json, Kubectl
from tests.reference.embedded import serving
from tests.reference.operators import upstream
from tests.reference.operators.conftest import LAUNCHERS, Real, found
from tests.reference.operators.helm import NAMESPACE
from tests.reference.operators.running import Operator, operating
from tests.reference.operators.scenario import EXAMPLES, INTERVAL, Script
from tests.reference.operators.test_backends import play
from tests.reference.operators.test_two_apis import MACHINE, POOL, SOURCE, URL, example

pytestmark = pytest.mark.reference
SETTINGS = ("--namespace", NAMESPACE, "--reconcile-interval", INTERVAL)
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
NUMBERED = tuple(f"my-vm-http-pool-{number}" for number in range(3))
ONE = "my-vm-with-http-data-volume"
DEVIATIONS = Path(__file__).with_name("deviations.yaml")


@dataclass(frozen=True)
class Front:
    """The API of Kubermatic's users, and the operator between them and the cluster."""

    real: Real
    api: Api
    kubectl: Kubectl
    operator: Operator

    def status(self, path: str) -> Json:
        """Return the status that users see."""
        status: Json = found(self.api, path).get("status", {})
        return status

    def condition(self, path: str, kind: str) -> Json:
        """A condition; empty when it is not there."""
        return next((each for each in self.status(path).get("conditions", ()) if each["type"] == kind), {})

    def wait_running(self, *names: str) -> None:
        """Wait until machines run, and their users are told."""
        self.operator.wait(lambda: self.real.launched("default") >= set(names))
        paths = [f"{MACHINES}/{name}" for name in names if name not in NUMBERED]
        self.operator.wait(lambda: all(self.status(path).get("printableStatus") == "Running" for path in paths))

    def revisions(self) -> dict[str, str]:
        """The revision of all machines, pools and disks on both sides."""
        seen = {}
        for side, api in (("front", self.api), ("cluster", self.real.cluster.api)):
            for path in (MACHINES, POOL.rpartition("/")[0], VOLUMES):
                for each in found(api, path)["items"]:
                    seen[f"{side} {path}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
        return seen

    def wait_sweeps(self) -> None:
        """Wait until everything was looked at again, more than once."""
        controllers = ("kubermatic-virtualmachine", "kubermatic-virtualmachinepool")
        swept = {each: self.operator.sweeps(each) for each in controllers}
        self.operator.wait(lambda: all(self.operator.sweeps(each) > swept[each] + 6 for each in controllers))


@pytest.fixture(scope="module")
def front(real: Real, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    directory = tmp_path_factory.mktemp("front")
    (directory / "home").mkdir()
    with serving(directory / "server") as server, ExitStack() as ends:
        arguments = (*SETTINGS, "--dialect", "kubermatic", "--front", str(server.kubeconfig))
        operator = ends.enter_context(operating(real.cluster.operator, directory / "log", *arguments))
        operator.wait_ready()
        api = Api(server.access)
        ends.callback(api.close)
        yield Front(real, api, Kubectl(binaries.kubectl, server.access, directory / "home"), operator)
        assert operator.complaints() == []
        assert 'code="403"' not in operator.page("/metrics")[1]


def warned(operator: Operator) -> list[str]:
    """Return the operator's unusual log lines, such as warnings of the server: also of fields that it does not know."""
    return [str(each.get("warning", each["message"])) for each in operator.said() if each["level"] != "info"]


@pytest.fixture(scope="module")
def seeded(front: Front) -> Front:
    """Kubermatic's two examples are there, and run."""
    for name in ("virtualmachine", "pool"):
        front.kubectl.ok("apply", "-f", example(name))
    front.wait_running(ONE, *NUMBERED)
    front.operator.wait(lambda: front.status(POOL).get("readyReplicas") == 3)
    return front


@pytest.mark.spec("kubevirt", 13)
def test_the_examples_run(seeded: Front) -> None:
    real = seeded.real
    # What was written is in KubeVirt's own words: nested, with the address in each disk, and without the DataSource.
    pool = real.get(POOL)["spec"]["virtualMachineTemplate"]["spec"]
    assert pool["template"]["spec"]["domain"]["memory"] == {"guest": "2Gi"} and "domain" not in pool
    machine = real.get(MACHINE)["spec"]
    for (template,) in (pool["dataVolumeTemplates"], machine["dataVolumeTemplates"]):
        assert template["spec"]["source"] == {"http": {"url": URL}} and "sourceRef" not in template["spec"]
        assert template["metadata"]["annotations"] == {"virtualization.k8c.io/data-source": "default/my-http-datasource"}
    assert real.get(SOURCE) == {}
    disks = real.items(VOLUMES)
    assert {each["metadata"]["name"] for each in disks} == {"my-http-data-volume", *(f"my-pool-vm-data-volume-{n}" for n in range(3))}
    assert upstream.unknown_to_cdi(real.upstream, disks) == [""] * 4
    # A field that KubeVirt's definitions do not know would have been warned of.
    assert warned(seeded.operator) == []


def test_what_kubevirt_fills_in_is_left_alone(seeded: Front) -> None:
    before = seeded.revisions()
    machine = seeded.real.get(MACHINE)["spec"]["template"]["spec"]
    assert machine["domain"]["machine"] == {"type": "q35"} and machine["domain"]["firmware"]["uuid"]
    for name in ("virtualmachine", "pool"):
        assert seeded.kubectl.run("diff", "-f", example(name)).code == 0
        seeded.kubectl.ok("apply", "-f", example(name))
    seeded.wait_sweeps()
    assert seeded.revisions() == before


@pytest.mark.spec("kubevirt", 13)
def test_deviations(front: Front) -> None:
    """Those of the form that the examples do not have."""
    authority = front.real.upstream.authority.certificate
    front.kubectl.ok("apply", "-f", "-", stdin=DEVIATIONS.read_text().replace("AUTHORITY", base64.b64encode(authority).decode()))
    front.wait_running("trusting", "odd")
    front.operator.wait(lambda: bool(front.condition(f"{MACHINES}/summing", "Failure")))
    disk = front.real.get(f"{VOLUMES}/trusting-disk")
    assert disk["spec"]["source"]["http"] == {"url": "https://images.example.com/a.qcow2", "certConfigMap": "trusted-ca"}
    bundle = front.real.get("/api/v1/namespaces/default/configmaps/trusted-ca")["data"]["ca.pem"]
    assert bundle.strip() == authority.decode().strip()
    assert upstream.unknown_to_cdi(front.real.upstream, [disk]) == [""]

    # A disk whose content nobody would check is not made.
    told = front.condition(f"{MACHINES}/summing", "Failure")
    fields = "spec.dataVolumeTemplates[].spec.source.http.checksum"
    assert told["reason"] == "FailedApply" and f"VirtualMachine of kubevirt.io/v1 does not have {fields} on this server" in told["message"]

    resolved = front.condition(f"{MACHINES}/guarding", "DataSourceResolved")
    assert (resolved["status"], resolved["reason"]) == ("False", "ClientCertificateUnsupported")
    assert front.real.get(f"{MACHINES}/guarding") == {}

    spec = front.real.get(f"{MACHINES}/odd")["spec"]["template"]["spec"]
    assert spec["domain"]["devices"]["networkInterfaceMultiqueue"] is True
    disks = {each["name"]: each for each in spec["domain"]["devices"]["disks"]}
    assert (disks["old"]["disk"]["bus"], disks["drive"]["cdrom"]["bus"], disks["fast"].get("io")) == ("sata", "sata", None)
    (init,) = [each["cloudInitNoCloud"] for each in spec["volumes"] if each["name"] == "init"]
    assert init == {"secretRef": {"name": "init"}}


def test_kubevirt_refuses_what_is_not_translated(real: Real) -> None:
    """The same machine as it was written, in front of virt-api: it judges, and not a schema alone."""
    machine = next(each for each in yaml.safe_load_all(DEVIATIONS.read_text()) if each["metadata"]["name"] == "odd")
    machine["metadata"]["namespace"] = "default"
    answer = real.cluster.api.request("POST", MACHINES, machine, query={"dryRun": "All"})
    assert answer.status == 422
    causes = {each["message"] for each in answer.body["details"]["causes"]}
    assert {"IDE bus is not supported", "Bus type virtio is invalid for CD-ROM device"} < causes
    assert any("Supported modes are: native, threads" in each for each in causes)


@pytest.mark.spec("kubevirt", 13)
def test_an_image_is_imported_once(front: Front) -> None:
    """And copied for each machine of a pool, because its DataSource says so."""
    front.kubectl.ok("apply", "-f", example("nested-pool"))
    workers = [f"workers-{number}" for number in range(4)]
    front.operator.wait(lambda: front.real.launched("default") >= set(workers))
    disks = {each["metadata"]["name"]: each for each in front.real.items(VOLUMES)}
    golden, roots = disks["debian-golden"], [disks[f"root-{number}"] for number in range(4)]
    assert golden["spec"]["source"] == {"registry": {"url": "docker://quay.io/containerdisks/debian:12"}}
    assert [each["spec"]["source"] for each in roots] == [{"pvc": {"name": "debian-golden", "namespace": "default"}}] * 4
    assert upstream.unknown_to_cdi(front.real.upstream, [golden, *roots]) == [""] * 5


def test_changes_are_taken(seeded: Front) -> None:
    for name in ("virtualmachine", "pool"):
        seeded.kubectl.ok("apply", "-f", "-", stdin=Path(example(name)).read_text().replace("cores: 1", "cores: 2"))
    # KubeVirt hands the change on to the machines of a pool by itself, and says of others that they have to be restarted.
    paths = [MACHINE, *(f"{MACHINES}/{each}" for each in NUMBERED)]
    seeded.operator.wait(lambda: all(cores(seeded.real.get(path)) == 2 for path in paths))
    seeded.operator.wait(lambda: seeded.condition(MACHINE, "RestartRequired").get("status") == "True")


def cores(machine: Json) -> int:
    """As a machine wants them."""
    return int(machine["spec"]["template"]["spec"]["domain"]["cpu"]["cores"])


def test_what_goes_in_the_front_goes_in_the_cluster(seeded: Front) -> None:
    for kind in ("virtualmachines", "virtualmachinepools", "datasources"):
        seeded.kubectl.ok("delete", kind, "--all", "--timeout=60s")
    left = (MACHINES, VOLUMES, LAUNCHERS.format("default"))
    seeded.operator.wait(lambda: not any(seeded.real.items(each) for each in left))


def test_fronts_of_the_cluster(real: Real, tmp_path: Path) -> None:
    """Stakater's and Vitistack's."""
    with operating(real.cluster.operator, tmp_path / "log", *SETTINGS, "--dialect", "stakater,vitistack") as operator:
        operator.wait_ready()
        played = play(Script(real.cluster.api, real.cluster.kubectl, EXAMPLES))
        # Vitistack's document wants it, and KubeVirt takes it.
        power = '299 - "spec.running is deprecated, please use spec.runStrategy instead."'
        assert warned(operator) == [power], "\n".join(str(each) for each in operator.said() if each["level"] != "info")
        assert 'code="403"' not in operator.page("/metrics")[1]
    assert played.rewritten == {"created": {}, "changed": {}}
    assert played.differing == {"created": {}, "changed": {}}
    created, mended, changed, deleted = played.script.steps.values()
    for there in (created, mended, changed):
        machines = [each for each in there.values() if (each["apiVersion"], each["kind"]) == ("kubevirt.io/v1", "VirtualMachine")]
        assert [each["status"]["printableStatus"] for each in machines] == ["Running"] * len(EXAMPLES)
    disks = [each for each in created.values() if each["kind"] in ("DataVolume", "DataSource")]
    assert disks and upstream.unknown_to_cdi(real.upstream, disks) == [""] * len(disks)
    assert {each["kind"] for each in deleted.values()} <= {"NetworkConfiguration", "ConfigMap"}
