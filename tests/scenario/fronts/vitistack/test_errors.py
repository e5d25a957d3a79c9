"""The problems of a Machine, their reports, and their end when the cause ends."""

import asyncio
import json
from collections.abc import AsyncIterator

import orjson
import pytest

from paddock.base.images.errors import ImageUnavailable
from paddock.dialects.vitistack.plan.problems import ERROR_TYPES
from paddock.kubernetes.client.client import Frames
from paddock.kubernetes.client.options import WatchOptions
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock.kubernetes.runtime.informer import Informer
from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Data, Vitistack, machine, network

IMAGE = "http://images/root.qcow2"
ERRORS = "kubevirt_operator_reconciliation_errors_total"
NETWORK_ERRORS = "kubevirt_operator_network_configuration_errors_total"


def errors(host: Vitistack, error_type: str) -> float:
    """Return the count of an error type."""
    return host.metrics().get(f'{ERRORS}{{controller="Machine",error_type="{error_type}"}}', 0.0)


@pytest.mark.spec("vitistack", 15)
@pytest.mark.spec("vitistack", 16)
@played
async def test_an_unknown_template_fails_until_it_is_corrected(host: Vitistack, /) -> None:
    await host.make(machine(template="huge"))
    await asyncio.sleep(5)
    assert await host.phase() == "Failed"
    assert await host.condition("Ready") == ("False", "TemplateNotFound", 'template "huge" not found: use small, medium or large')
    # once for a generation, however often it is looked at, and by whom
    await asyncio.sleep(300)
    assert errors(host, "TemplateNotFound") == 1
    assert (await host.events("web", "Machine")).count("TemplateNotFound") == 1
    await host.again()
    await asyncio.sleep(300)
    assert errors(host, "TemplateNotFound") == 0
    assert await host.names("PersistentVolumeClaim") == []
    await host.merge("Machine", "web", {"spec": {"template": "enormous"}})
    await asyncio.sleep(60)
    assert errors(host, "TemplateNotFound") == 1
    async with host.recorded() as states:
        await host.merge("Machine", "web", {"spec": {"template": "medium"}})
        await host.up()
    assert [each["status"]["phase"] for each in states][-1] == "Running"
    assert "Pending" in [each["status"]["phase"] for each in states]


@pytest.mark.spec("vitistack", 15)
@played
async def test_a_failed_machine_is_tried_again_when_its_annotation_changes(host: Vitistack, /) -> None:
    await host.make(machine(template="huge", metadata={"annotations": {"vitistack.io/retry": "1"}}))
    await asyncio.sleep(60)
    assert errors(host, "TemplateNotFound") == 1
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/retry": "2"}}})
    await asyncio.sleep(60)
    assert errors(host, "TemplateNotFound") == 2
    assert await host.phase() == "Failed"


@played
async def test_a_template_that_comes_later_ends_the_failure(host: Vitistack, /) -> None:
    await host.make(machine(template="database"))
    await asyncio.sleep(30)
    assert await host.phase() == "Failed"
    spec = {"resources": {"memory": {"size": "3Gi"}}, "disks": [{"name": "root", "size": "5Gi"}, {"name": "data", "size": "9Gi"}]}
    template = {"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineTemplate", "metadata": {"name": "database"}, "spec": spec}
    await host.make(template)
    await host.up()
    assert await host.names("PersistentVolumeClaim") == ["web-data", "web-root"]
    assert (await host.vm())["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "3Gi"


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays the watches of everything that machines refer to."""
    frames = Informer._frames

    async def delayed(informer: Informer, watching: WatchOptions) -> AsyncIterator[Frames]:
        async for each in frames(informer, watching):
            if informer.synced and informer.target.plural in ("machinetemplates", "networkconfigurations", "secrets", "storageclasses"):
                await asyncio.sleep(3)
            yield each

    monkeypatch.setattr(Informer, "_frames", delayed)


@pytest.mark.usefixtures("late")
@played
async def test_a_machine_that_arrives_before_what_was_made_earlier_has_no_problem(host: Vitistack, /) -> None:
    """Each kind has a watch of its own, and on a busy host one may be behind another."""
    size = {"resources": {"memory": {"size": "1Gi"}}, "disks": [{"name": "root", "size": "1Gi", "storageClass": "fast"}]}
    template = {"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineTemplate", "metadata": {"name": "own"}, "spec": size}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "first-boot"},
        "stringData": {"userData": "#cloud-config\n{}\n"},
    }
    await host.storage_class("fast")
    async with host.recorded() as states:
        await host.make(template, network(), secret)
        card = {"name": "eth0", "networkName": "prod"}
        await host.make(machine(template="own", networks=[card], cloudInit={"secretRef": {"name": "first-boot", "key": "userData"}}))
        await host.up()
    problems = {each["reason"] for state in states for each in state.get("status", {}).get("conditions", ()) if each["type"] == "Ready"}
    assert not problems & set(ERROR_TYPES), problems
    assert not set(await host.events("web", "Machine")) & set(ERROR_TYPES)
    assert not any(errors(host, each) for each in ERROR_TYPES)


async def without_default(host: Vitistack) -> None:
    """Take the mark off the default class."""
    marks = {f"storageclass.kube{rest}": None for rest in ("rnetes.io/is-default-class", "virt.io/is-default-virt-class")}
    reply = await host.api.merge("/apis/storage.k8s.io/v1/storageclasses/paddock", {"metadata": {"annotations": marks}})
    assert reply.status == 200


@pytest.mark.spec("vitistack", 25)
@played
async def test_a_machine_proceeds_when_its_class_is_made(host: Vitistack, /) -> None:
    await without_default(host)
    await host.make(machine())
    await asyncio.sleep(60)
    assert await host.phase() == "Pending"
    assert (await host.condition("Ready"))[:2] == ("False", "StorageClassNotFound")
    assert (await host.condition("StorageReady"))[:2] == ("False", "PVCPending")
    assert errors(host, "StorageClassNotFound") >= 1
    generation = (await host.machine())["metadata"]["generation"]
    await host.storage_class("late", metadata={"name": "late", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}})
    await host.up(seconds=20)
    assert (await host.machine())["metadata"]["generation"] == generation
    assert (await host.seen("PersistentVolumeClaim", "web-root"))["spec"]["storageClassName"] == "late"
    # the default of later days does not matter any more
    await host.api.delete("/apis/storage.k8s.io/v1/storageclasses/late")
    # CDIConfig no longer names the class
    await asyncio.sleep(5)
    revision = await host.revision()
    await asyncio.sleep(120)
    assert await host.revision() == revision
    assert await host.phase() == "Running"


@pytest.mark.spec("vitistack", 26)
@played
async def test_a_class_that_is_named_is_waited_for(host: Vitistack, /) -> None:
    await host.make(machine(disks=[{"name": "data", "size": "1Gi", "storageClass": "fast"}]))
    await asyncio.sleep(60)
    assert await host.phase() == "Pending"
    assert (await host.condition("Ready"))[1] == "StorageClassNotFound"
    assert await host.names("PersistentVolumeClaim") == []
    await host.storage_class("fast")
    await host.up(seconds=20)
    assert (await host.seen("PersistentVolumeClaim", "web-data"))["spec"]["storageClassName"] == "fast"


@pytest.mark.spec("vitistack", 30)
@played
async def test_a_machine_proceeds_when_its_network_is_made(host: Vitistack, /) -> None:
    await host.make(machine(networks=[{"name": "eth0", "networkName": "prod"}]))
    await asyncio.sleep(60)
    assert await host.phase() == "Pending"
    assert (await host.condition("Ready"))[:2] == ("False", "NetworkConfigurationNotFound")
    assert (await host.condition("NetworkReady"))[:2] == ("False", "NetworkFailed")
    assert host.metrics()[f'{NETWORK_ERRORS}{{network_name="prod"}}'] >= 1
    assert errors(host, "NetworkConfigurationNotFound") >= 1
    assert "NetworkConfigurationNotFound" in await host.events("web", "Machine")
    await host.make(network())
    await host.up(seconds=20)
    assert (await host.condition("NetworkReady"))[:2] == ("True", "NetworkConfigured")


@pytest.mark.spec("vitistack", 47)
@played
async def test_a_machine_proceeds_when_its_secret_is_made(host: Vitistack, /) -> None:
    await host.make(machine(cloudInit={"secretRef": {"name": "login", "key": "mine"}}))
    await asyncio.sleep(60)
    assert await host.phase() == "Pending"
    assert (await host.condition("Ready"))[1] == "SecretNotFound"
    await host.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"other": "x"}})
    await asyncio.sleep(60)
    assert 'has no key "mine"' in (await host.condition("Ready"))[2]
    await host.merge("Secret", "login", {"stringData": {"mine": "#cloud-config"}})
    await host.up(seconds=20)


@played
async def test_a_running_machine_keeps_running_when_what_it_names_goes(host: Vitistack, /) -> None:
    await host.make(network(), machine(networks=[{"name": "eth0", "networkName": "prod"}]))
    run = (await host.up()) and (await host.vmi())["metadata"]["uid"]
    await host.drop("NetworkConfiguration", "prod")
    await asyncio.sleep(60)
    assert await host.phase() == "Running"
    assert (await host.condition("Ready"))[1] == "NetworkConfigurationNotFound"
    assert (await host.vmi())["metadata"]["uid"] == run
    await host.make(network())
    await asyncio.sleep(60)
    assert (await host.condition("Ready"))[0] == "True"


async def deny(host: Vitistack, plural: str, answers: list[tuple[int, Data]]) -> None:
    """Have applies of a kind answered so, one after the other; then as always."""
    client = host.control.program.client
    send = client._transport.send

    async def refused(ask: TransportRequest) -> TransportResponse:
        if answers and ask.method == "PATCH" and f"/{plural}/" in ask.target and "paddock-vitistack" in ask.target:
            code, said = answers.pop(0)
            return TransportResponse(code, {}, orjson.dumps({"kind": "Status", "code": code, **said}))
        return await send(ask)

    client._transport.send = refused  # type: ignore[method-assign]


@played
async def test_too_small_a_quota_is_waited_for_with_growing_pauses(host: Vitistack, /) -> None:
    quota = (403, {"reason": "Forbidden", "message": 'persistentvolumeclaims "web-root" is forbidden: exceeded quota: disks'})
    answers = [quota] * 6
    await deny(host, "persistentvolumeclaims", answers)
    await host.make(machine())
    await asyncio.sleep(4)
    assert (await host.condition("Ready"))[:2] == ("False", "InsufficientResources")
    assert await host.phase() == "Pending"
    assert len(answers) == 5
    await asyncio.sleep(30)
    # after 5, 10, 20 s
    assert len(answers) in (2, 3)
    # after 40, 80 and 160 s more, give or take what chance adds
    await host.up(seconds=600)


@pytest.mark.parametrize(
    ("code", "said", "fails"),
    [
        (422, {"reason": "Invalid", "message": "spec.template: no"}, True),
        (403, {"reason": "Forbidden", "message": "admission webhook denied the request"}, True),
        (403, {"reason": "Forbidden", "message": 'User "op" cannot patch resource "virtualmachines" in API group "kubevirt.io"'}, False),
        (503, {"reason": "ServiceUnavailable", "message": "no endpoints"}, False),
        (404, {"reason": "NotFound", "message": "the server could not find the requested resource"}, False),
    ],
)
@played
async def test_what_the_backend_answers(host: Vitistack, /, code: int, said: Data, fails: bool) -> None:
    await deny(host, "virtualmachines", [(code, said)] * (1 if fails else 12))
    await host.make(machine())
    await asyncio.sleep(2)
    status, reason, message = await host.condition("VirtualMachineReady")
    assert (status, reason) == ("False", "VMFailed")
    assert str(said["message"]) in message
    assert (await host.condition("Ready"))[1] == "KubeVirtApiError"
    assert errors(host, "KubeVirtApiError") >= 1
    if fails:
        await asyncio.sleep(300)
        assert await host.phase() == "Failed"
        assert errors(host, "KubeVirtApiError") == 1
        await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/retry": "now"}}})
    await host.up(seconds=600)


@played
async def test_too_little_memory_is_said_and_ends_with_more(host: Vitistack, /) -> None:
    await host.make(machine(resources={"memory": {"size": "512Gi"}}))
    await asyncio.sleep(30)
    assert await host.phase() == "Creating"
    status, reason, message = await host.condition("Ready")
    assert (status, reason) == ("False", "InsufficientResources")
    assert "add capacity or make the machine smaller" in message
    assert "InsufficientResources" in await host.events("web", "Machine")
    await host.merge("Machine", "web", {"spec": {"resources": {"memory": {"size": "1Gi"}}}})
    await asyncio.sleep(5)
    await host.drop("VirtualMachineInstance", "web")
    await host.up(seconds=120)


@played
async def test_an_image_that_is_not_there_fails_the_machine(host: Vitistack, /) -> None:
    await host.make(machine(metadata={"annotations": {"vitistack.io/root-image": IMAGE}}))
    await asyncio.sleep(120)
    assert (await host.status(), await host.phase()) == ("DataVolumeError", "Failed")
    status, reason, message = await host.condition("Ready")
    assert (status, reason) == ("False", "KubeVirtApiError") and "change vitistack.io/retry" in message
    assert (await host.condition("StorageReady"))[:2] == ("False", "ImportFailed")


@pytest.mark.spec("vitistack", 96)
@played
async def test_an_import_that_is_tried_again_fails_no_machine(host: Vitistack, /) -> None:
    host.engine.images.offer(IMAGE)
    host.engine.images.script(IMAGE, [ImageUnavailable("Unreachable", "the server said 503")] * 3)
    await host.make(machine(metadata={"annotations": {"vitistack.io/root-image": IMAGE}}))
    async with host.recorded() as states:
        await host.up(seconds=300)
    waiting = [each for each in states if "it is tried again" in json.dumps(each.get("status"))]
    assert waiting and {each["status"]["phase"] for each in waiting} == {"Creating"}
    assert "Failed" not in {each["status"]["phase"] for each in states if each.get("status")}
