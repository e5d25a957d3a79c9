"""The target: what it can do, errors of it, tasks that nobody knows."""

import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client import errors as client
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock_drivers.kubevirt import failures
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from tests.coroutines import played
from tests.kit.servers.interruption import Interruption
from tests.unit.drivers.kubevirt.conftest import SETTINGS, Target, creation

KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"


@played
async def test_paddock_can_do_what_it_says(target: Target, /) -> None:
    assert await target.driver.validate(m.ValidateRequest()) == m.ValidateResponse(ok=True)
    found = await target.driver.get_capabilities(m.GetCapabilitiesRequest())
    assert found.supports_reconfigure_online and found.supports_disk_expansion_online and found.supports_snapshots
    assert found.supports_image_import and found.supports_disk_import and found.supported_import_backends == ("s3",)
    assert found.supports_memory_snapshots and not (found.supports_linked_clones or found.supports_clustering)
    await target.host.api.merge(KUBEVIRT, {"spec": {"configuration": {"vmRolloutStrategy": "Stage"}}})
    for each in (await target.host.api.get("/apis/storage.k8s.io/v1/storageclasses")).data["items"]:
        await target.host.api.merge(f"/apis/storage.k8s.io/v1/storageclasses/{each['metadata']['name']}", {"allowVolumeExpansion": False})
    found = await target.driver.get_capabilities(m.GetCapabilitiesRequest())
    assert not found.supports_reconfigure_online and not found.supports_disk_expansion_online


class Bare(Interruption):
    """A cluster without KubeVirt and CDI: their paths are not there."""

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if "kubevirt.io" in ask.target or "snapshot.storage" in ask.target:
            return TransportResponse(404, {}, b"404 page not found")
        return await super().send(ask)


class WithoutVirtApi(Interruption):
    """A cluster whose virt-api does not answer: its API server says nothing more."""

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if ask.target.startswith("/apis/subresources.kubevirt.io"):
            return TransportResponse(503, {}, b"service unavailable\n")
        return await super().send(ask)


@played
async def test_what_does_not_answer_is_named(target: Target, /) -> None:
    driver = KubeVirtDriver(Client(WithoutVirtApi(Interruption.of(target.host.api))), SETTINGS)
    with pytest.raises(ProviderError) as error:
        await driver.get_features(x.GetFeaturesRequest())
    assert error.value.kind is ErrorKind.UNAVAILABLE
    assert "the target does not serve subresources.kubevirt.io/v1 now" in str(error.value)
    assert "the APIService v1.subresources.kubevirt.io" in str(error.value)


@played
async def test_a_cluster_without_kubevirt(target: Target, /) -> None:
    driver = KubeVirtDriver(Client(Bare(Interruption.of(target.host.api))), SETTINGS)
    answer = await driver.validate(m.ValidateRequest())
    assert not answer.ok and "install KubeVirt" in answer.message
    found = await driver.get_capabilities(m.GetCapabilitiesRequest())
    assert not (found.supports_snapshots or found.supports_image_import or found.supports_disk_import or found.supports_reconfigure_online)
    # A kind that is not served is not a machine that is gone.
    for call in (driver.describe(m.DescribeRequest(id="web/1")), driver.create(creation()), driver.list_vms(m.ListVMsRequest())):
        with pytest.raises(ProviderError) as error:
            await call
        assert error.value.kind is ErrorKind.NOT_SUPPORTED


class Away(Interruption):
    """A target that cannot be reached."""

    async def send(self, ask: TransportRequest) -> TransportResponse:
        raise client.Unreachable("no route to the target", sent=False)


@played
async def test_a_machine_of_a_target_that_is_away_is_not_gone(target: Target, /) -> None:
    vm_id = await target.made()
    driver = KubeVirtDriver(Client(Away(Interruption.of(target.host.api))), SETTINGS)
    task = m.TaskRef(id=f"delete:{vm_id}")
    for call in (
        driver.describe(m.DescribeRequest(id=vm_id)),
        driver.delete(m.DeleteRequest(id=vm_id)),
        driver.task_status(m.TaskStatusRequest(task=task)),
        driver.validate(m.ValidateRequest()),
    ):
        with pytest.raises(ProviderError, match="no route to the target") as error:
            await call
        assert error.value.kind is ErrorKind.UNAVAILABLE


@played
async def test_a_task_that_nobody_knows_has_ended(target: Target, /) -> None:
    for text in ("task-1", "create:web", "create:web/00000000-0000-4000-8000-999999999999", "fly:web/1", "snapshot:a/1", "image:a/1"):
        found = await target.driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=text)))
        assert found.done and found.error, text
    for text in ("delete:web/1", "off:web/1", "snapshot-delete:a/1"):
        found = await target.driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=text)))
        assert found.done and not found.error, text
    assert await target.driver.task_status(m.TaskStatusRequest()) == m.TaskStatusResponse(done=True)


def answered(cls: type[client.ApiError], message: str = "no", **details: str) -> client.ApiError:
    return cls(400, client.StatusDetails(message=message, details=dict(details)))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered(client.NotFound, name="web"), ErrorKind.NOT_FOUND),
        (answered(client.NotFound), ErrorKind.NOT_SUPPORTED),
        (answered(client.Forbidden), ErrorKind.UNAUTHORIZED),
        (answered(client.Forbidden, "exceeded quota: small"), ErrorKind.QUOTA_EXCEEDED),
        (answered(client.Unauthorized), ErrorKind.UNAUTHORIZED),
        (answered(client.Invalid), ErrorKind.INVALID_SPEC),
        (answered(client.Conflict), ErrorKind.CONFLICT),
        (answered(client.AlreadyExists), ErrorKind.CONFLICT),
        (answered(client.TooManyRequests), ErrorKind.RATE_LIMIT),
        (answered(client.Unavailable), ErrorKind.UNAVAILABLE),
        (client.TimedOut("slow", sent=True), ErrorKind.TIMEOUT),
        (client.Unreachable("away", sent=True), ErrorKind.UNAVAILABLE),
        (client.BadAnswer("strange"), ErrorKind.INTERNAL),
    ],
)
def test_each_error_has_its_kind(error: Exception, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as raised, failures.mapped():
        raise error
    assert raised.value.kind is kind and raised.value.what and raised.value.__cause__ is error
