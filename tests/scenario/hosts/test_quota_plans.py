"""Plans know quotas: what a manifest adds is what the server then counts, and what finds no room is what the server then refuses."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from paddock.base import quantity
from paddock.cli import serverplans
from paddock.fleet.documents.objects import InputObject
from paddock.fleet.servers import objectwrites
from paddock.fleet.servers.discovery import KindDiscovery
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import serverforecasts
from paddock.kubernetes import admission
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.meta.manifests import write
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.quotas import measuring
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.quotas.forecast import QuotaForecast
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.kit.servers.apiclient import inside
from tests.scenario.fronts.kubermatic.making import pool
from tests.scenario.fronts.stakater.stage import Stage, front
from tests.scenario.fronts.virtrigaud import test_ownserver as rigaud
from tests.scenario.fronts.vitistack.conftest import machine as vitistack
from tests.scenario.hosts.test_quotas import QUOTAS, bound, used
from tests.virtualtime import Clock

NAMES = (
    *(
        "requests.cpu/vmi",
        "requests.memory/vmi",
        "requests.instances/vmi",
        "requests.cpu",
        "requests.memory",
        "limits.cpu",
        "limits.memory",
    ),
    *("pods", "count/pods", "requests.storage", "persistentvolumeclaims", "requests.ephemeral-storage"),
    *("count/virtualmachines.kubevirt.io", "count/virtualmachineinstances.kubevirt.io", "count/datavolumes.cdi.kubevirt.io"),
    *("count/virtualmachines.infrastructure.stakater.com", "count/machines.vitistack.io", "count/virtualmachines.infra.virtrigaud.io"),
)
DISK = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "3Gi"}}}}}
ROOTED = machine("rooted", volumes=[{"name": "root", "dataVolume": {"name": "root"}}], templates=[DISK])
SIZED = machine("sized", volumes=[])
SIZED["spec"]["instancetype"] = {"name": "two"}
del SIZED["spec"]["template"]["spec"]["domain"]["memory"]
TYPE = {
    "apiVersion": "instancetype.kubevirt.io/v1beta1",
    "kind": "VirtualMachineClusterInstancetype",
    "metadata": {"name": "two"},
    "spec": {"cpu": {"guest": 2}, "memory": {"guest": "256Mi"}},
}
REPLICAS: Data = {
    "apiVersion": "pool.kubevirt.io/v1beta1",
    "kind": "VirtualMachinePool",
    "metadata": {"name": "pool"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "pool"}},
        "virtualMachineTemplate": {"metadata": {"labels": {"app": "pool"}}, "spec": ROOTED["spec"]},
    },
}
BARE = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "bare"},
    "spec": machine(volumes=[])["spec"]["template"]["spec"],
}
SET = {
    **rigaud.made("VMSet", "set", replicas=2, selector={"matchLabels": {"app": "set"}}),
}
SET["spec"]["template"] = {"metadata": {"labels": {"app": "set"}}, "spec": rigaud.MACHINE["spec"]}
DOCUMENTS: dict[str, Callable[[], list[Data]]] = {
    "kubevirt": lambda: [ROOTED],
    "halted": lambda: [machine("off", "Halted", volumes=[])],
    "instancetype": lambda: [SIZED],
    "instance": lambda: [BARE],
    "stakater": lambda: [front("web")],
    "vitistack": lambda: [vitistack("web")],
    "virtrigaud": lambda: [rigaud.MACHINE],
    "virtrigaud-set": lambda: [SET],
    "kubermatic-pool": lambda: [{**pool(2, disks=False), "metadata": {"name": "pool"}}],
    "pool": lambda: [REPLICAS],
    "several": lambda: [ROOTED, front("web"), BARE],
}


def subjects(documents: list[Data]) -> list[InputObject]:
    settings = AdmissionSettings()
    named = [{**each, "metadata": {"namespace": "default", **each["metadata"]}} for each in documents]
    found = load(write.to_yaml(named).encode(), "m.yaml")
    return [InputObject(each, admission.admit(each.data, settings)) for each in found]


async def planned(host: FakeHost, documents: list[Data]) -> QuotaForecast:
    async with inside(host.api) as client:
        session = ServerSession(client, None, "default", Clock())  # type: ignore[arg-type]
        sides = await serverplans.sides(session, subjects(documents), AdmissionSettings())
        assert not sides.refused
        return await serverforecasts.on_server(session, sides.whole)


async def opened(host: FakeHost) -> None:
    stage = await Stage(host).open()
    host.engine.images.offer(rigaud.IMAGE)
    await rigaud.Stage(host).make(*rigaud.WORLD)
    kinds = "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes"
    assert (await stage.api.post(kinds, TYPE)).status == 201


async def applied(host: FakeHost, documents: list[Data]) -> None:
    async with inside(host.api) as client:
        session = ServerSession(client, None, "default", Clock())  # type: ignore[arg-type]
        for each in subjects(documents):
            kind, data = await objectwrites.located(session, KindDiscovery(client), each.data)
            await client.apply(kind.target, data, WriteOptions())


@pytest.mark.spec("kubevirt", 255)
@pytest.mark.parametrize("dialect", DOCUMENTS)
@played
async def test_what_a_plan_adds_is_what_the_server_then_counts(host: FakeHost, /, dialect: str) -> None:
    await opened(host)
    documents = DOCUMENTS[dialect]()
    if dialect.startswith("virtrigaud"):
        # The first machine prepares the image for all.
        await rigaud.Stage(host).make({**rigaud.MACHINE, "metadata": {"name": "first"}})
        await asyncio.sleep(60)
    await bound(host)
    reply = await host.api.merge(f"{QUOTAS}/q", {"spec": {"hard": dict.fromkeys(NAMES, "900Gi")}})
    assert reply.status == 200, reply.data
    await asyncio.sleep(2)
    before = await used(host)
    found = await planned(host, documents)
    assert found.bounds and not found.lacking and not found.unclear
    await applied(host, documents)
    await asyncio.sleep(90)
    after = await used(host)
    assert {each.resource: (each.used, each.added) for each in found.bounds} == {
        name: (before[name], measuring.text(name, quantity.parse(amount) - quantity.parse(before[name])))
        for name, amount in after.items()
        if amount != before[name]
    }
    again = await planned(host, documents)
    assert again.bounds == (), "a manifest that was applied adds nothing"


def told(machine: dict[str, Any]) -> str:
    return next(str(each["message"]) for each in machine["status"]["conditions"] if each["type"] == "Synchronized")


@pytest.mark.spec("kubevirt", 255)
@played
async def test_a_plan_has_the_words_that_the_machine_then_waits_with(host: FakeHost, /) -> None:
    await host.make(machine("first", volumes=[], domain={"cpu": {"sockets": 2}}))
    await host.running("first")
    await bound(host, requests_cpu__vmi="3")
    large = machine("large", volumes=[], domain={"cpu": {"sockets": 2}})
    found = await planned(host, [large])
    (line,), (lack,) = found.bounds, found.lacking
    assert (line.quota, line.resource, line.used, line.added, line.hard, line.fits) == ("q", "requests.cpu/vmi", "2", "2", "3", False)
    assert (lack.title, lack.waits) == ("VirtualMachine/large", True)
    await applied(host, [large])
    await asyncio.sleep(10)
    assert lack.why in told(await host.vmi("large"))
    assert lack.why == "exceeded quota: q, requested: requests.cpu/vmi=2, used: requests.cpu/vmi=2, limited: requests.cpu/vmi=3"


@pytest.mark.spec("kubevirt", 255)
@played
async def test_of_a_pool_a_plan_counts_the_machines_that_wait(host: FakeHost, /) -> None:
    await bound(host, requests_cpu__vmi="2")
    found = await planned(host, [REPLICAS])
    assert [(each.title, each.count, each.waits) for each in found.lacking] == [("VirtualMachinePool/pool", 1, True)]
    await applied(host, [REPLICAS])
    await asyncio.sleep(60)
    grown = {**REPLICAS, "spec": {**REPLICAS["spec"], "replicas": 5}}
    assert [each.count for each in (await planned(host, [grown])).lacking] == [3]


@pytest.mark.spec("kubevirt", 255)
@played
async def test_what_the_server_would_refuse_is_refused_and_makes_nothing(host: FakeHost, /) -> None:
    await bound(host, requests_cpu__vmi="9")
    await host.api.merge(f"{QUOTAS}/q", {"spec": {"hard": {"count/virtualmachines.kubevirt.io": "1"}}})
    await asyncio.sleep(2)
    found = await planned(host, [machine("a", volumes=[]), machine("b", volumes=[])])
    assert [(each.title, each.waits) for each in found.lacking] == [("VirtualMachine/b", False)]
    assert next(each.added for each in found.bounds if each.resource == "requests.cpu/vmi") == "1"


@pytest.mark.spec("kubevirt", 255)
@played
async def test_more_sockets_of_a_machine_that_runs_add_the_difference(host: FakeHost, /) -> None:
    await host.make(machine(volumes=[], domain={"cpu": {"sockets": 2, "maxSockets": 8}}))
    await host.running()
    await bound(host, requests_cpu__vmi="4")
    more = machine(volumes=[], domain={"cpu": {"sockets": 5, "maxSockets": 8}})
    async with inside(host.api) as client:
        session = ServerSession(client, None, "default", Clock())  # type: ignore[arg-type]
        (subject,) = subjects([more])
        found = await serverforecasts.on_server(session, serverplans.merged([(subject, subject.data)], AdmissionSettings()))
    assert [(each.used, each.added) for each in found.bounds] == [("2", "3")]
    assert [each.why for each in found.lacking] == [
        "exceeded quota: q, requested: requests.cpu/vmi=3, used: requests.cpu/vmi=2, limited: requests.cpu/vmi=4"
    ]
