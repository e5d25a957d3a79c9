"""Calls to Providers in a cluster: health, limits, programs that go, controllers that end, and rights."""

import asyncio
import random
import socket
from pathlib import Path

import pytest
import yaml

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.providerpods import CORE, KEY, NAME, Cluster, cluster, services_are_here
from tests.unit.kubevirt.controllers.rigaudharness import WORLD, RecordedDriver, base, machine

_USED = services_are_here


@pytest.mark.spec("virtrigaud", 67)
@timeless
async def test_a_provider_that_goes_is_unhealthy_after_its_threshold_and_comes_back(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(healthCheck={"interval": "10s", "failureThreshold": 3, "successThreshold": 2})
        await asyncio.sleep(2)
        async with world.pod():
            await world.running()
            checked = (await world.status())["lastHealthCheck"]
        # The Pod is gone; until the third check fails, the Provider is what it was.
        await asyncio.sleep(15)
        assert (await world.status())["healthy"] is True
        await asyncio.sleep(20)
        status = await world.status()
        assert status["healthy"] is False and status["lastHealthCheck"] > checked
        assert (await world.condition("ProviderAvailable"))[:2] == ("False", "ProviderUnavailable")
        async with world.pod():
            await asyncio.sleep(8)
            assert (await world.status())["healthy"] is False
            await world.running()


@pytest.mark.spec("virtrigaud", 26)
@timeless
async def test_a_machine_runs_through_pods_that_come_and_go(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make()
        for body in (*WORLD[1:], machine()):
            assert (await world.api.post(base(body["kind"]), body)).status == 201
        driver = RecordedDriver(FakeDriver(FakeSettings(), world.clock, random.Random(7)))
        await asyncio.sleep(2)
        # A hypervisor outlives the program in front of it.
        for seconds in (0.3, 1.0, 2.5, 6.0):
            async with world.pod(driver=driver):
                await asyncio.sleep(seconds)
            await world.stop()
            await world.start()
        async with world.pod(driver=driver):
            async with asyncio.timeout(600):
                while ((await world.get(f"{base('VirtualMachine')}/web")).get("status") or {}).get("phase") != "Running":
                    await asyncio.sleep(1)
        assert len((await driver.driver.list_vms(m.ListVMsRequest())).vms) == 1


@pytest.mark.spec("virtrigaud", 69)
@timeless
async def test_the_rate_limit_holds_for_what_a_provider_sees(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(rateLimit={"qps": 2, "burst": 3})
        await asyncio.sleep(2)
        async with world.pod() as pod:
            await world.running()
            assert world.connections is not None
            driver = world.connections.find(KEY, "libvirt").driver
            assert driver is not None
            loop, before = asyncio.get_running_loop(), len(pod.driver.calls)
            begun = loop.time()
            await asyncio.gather(*(driver.validate(m.ValidateRequest()) for _ in range(23)))
            assert len(pod.driver.calls) - before >= 23
            # Three at once, and then two in a second.
            assert loop.time() - begun >= 9.9


@pytest.mark.spec("virtrigaud", 122)
@timeless
async def test_connection_pooling_bounds_the_connections(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        pooling = {"maxConnections": 2, "maxIdleConnections": 1, "connectionTimeout": "3s", "idleTimeout": "20s"}
        await world.make(connectionPooling=pooling, rateLimit={"qps": 1000, "burst": 2000}, healthCheck={"interval": "10m"})
        await asyncio.sleep(2)
        async with world.pod() as pod:
            await world.running()
            assert world.connections is not None
            client = world.connections.find(KEY, "libvirt").driver
            assert client is not None
            held = asyncio.Event()

            async def hold(rpc: str, request: m.WireMessage) -> None:
                await held.wait()

            pod.driver.script = hold
            calls = [asyncio.create_task(client.validate(m.ValidateRequest())) for _ in range(350)]
            await asyncio.sleep(1)
            assert client.connections == 2  # type: ignore[attr-defined]  # of the client, which it is
            held.set()
            await asyncio.gather(*calls)
            await asyncio.sleep(1)
            assert client.connections == 1  # type: ignore[attr-defined]
            # The controller asks less and less often what the provider can do, until nobody calls for that long.
            async with asyncio.timeout(1200):
                while client.connections:  # type: ignore[attr-defined]
                    await asyncio.sleep(1)


@pytest.mark.spec("virtrigaud", 122)
@pytest.mark.parametrize("seconds", [3, 8])
@timeless
async def test_connecting_takes_no_longer_than_the_provider_allows(tmp_path: Path, seconds: int) -> None:
    """Of a program that takes connections and says nothing."""
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make(connectionPooling={"connectionTimeout": f"{seconds}s"}, healthCheck={"interval": "10m"})
        await asyncio.sleep(2)
        async with world.pod():
            await world.running()
            assert world.connections is not None
            client = world.connections.find(KEY, "libvirt").driver
            assert client is not None
        with socket.create_server(("127.0.0.1", world.port)):
            loop = asyncio.get_running_loop()
            begun = loop.time()
            with pytest.raises(ProviderError, match=f"connecting took longer than {seconds} seconds"):
                await client.get_capabilities(m.GetCapabilitiesRequest())
            assert loop.time() - begun == pytest.approx(seconds, abs=1)


async def settled(world: Cluster) -> dict[str, Data]:
    """What there is when the controllers have nothing to do any more, without what chance or time decides."""
    await asyncio.sleep(90)
    found = {
        "deployment": await world.deployment(),
        "service": await world.get(f"{CORE}/services/{NAME}"),
        "secret": await world.get(f"{CORE}/secrets/{NAME}-tls"),
        "provider": await world.get(f"{base('Provider')}/lab"),
    }
    assert all(found.values()), found
    data = found["secret"].pop("data")
    assert set(data) == {"tls.crt", "tls.key", "ca.crt", "manager.crt", "manager.key"}
    annotations = found["deployment"]["spec"]["template"]["metadata"].pop("annotations")
    assert set(annotations) == {"virtrigaud.io/credentials-revision", "virtrigaud.io/tls-revision"}
    conditions = found["provider"]["status"]["conditions"]
    return {name: each.get("spec") or {} for name, each in found.items()} | {
        "conditions": {each["type"]: (each["status"], each["reason"]) for each in conditions}
    }


@timeless
async def test_the_controllers_may_end_before_any_write(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        await world.credentials()
        await world.make()
        expected = await settled(world)
        writes = world.wire.writes
    assert 4 <= writes <= 8
    for at in range(writes):
        (tmp_path / str(at)).mkdir()
        async with cluster(tmp_path / str(at)) as world:
            world.wire.ends_at = at
            world.port = expected["service"]["ports"][0]["port"]
            await world.credentials()
            await world.make()
            await asyncio.sleep(5)
            await world.stop()
            world.wire.ends_at = -1
            await world.start()
            found = await settled(world)
            for each in (expected, found):
                each["service"].pop("clusterIP", None)
                each["service"].pop("clusterIPs", None)
            assert found == expected, at


@timeless
async def test_the_rights_of_the_chart_suffice(tmp_path: Path) -> None:
    rules = yaml.safe_load(Path("deploy/helm/kubevirt-operator/rules/virtrigaud.yaml").read_text())
    async with cluster(tmp_path) as world:
        asked = record(world)
        await world.credentials()
        await world.make()
        for body in (*WORLD[1:], machine()):
            assert (await world.api.post(base(body["kind"]), body)).status == 201
        await asyncio.sleep(2)
        async with world.pod():
            await world.running()
            await asyncio.sleep(60)
            await world.api.delete(f"{base('VirtualMachine')}/web")
            await asyncio.sleep(60)
            await world.api.delete(f"{base('Provider')}/lab")
            await asyncio.sleep(30)
        lacking = {
            (verb, group, name)
            for verb, group, name in asked
            if not any(verb in each["verbs"] and group in each["apiGroups"] and name in each["resources"] for each in rules)
        }
        assert lacking == set() and ("patch", "apps", "deployments") in asked


def record(world: Cluster) -> set[tuple[str, str, str]]:
    """The verbs, groups and resources that the controllers ask for from now on."""
    found: set[tuple[str, str, str]] = set()
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
    send, stream = world.wire.send, world.wire.stream

    def note(ask: TransportRequest) -> None:
        path, _, query = ask.target.partition("?")
        parts = path.strip("/").split("/")
        group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        parts = parts[2:] if parts[0] == "namespaces" and len(parts) > 2 else parts
        verb = verbs[ask.method]
        verb = ("watch" if "watch=" in query else "list") if verb == "get" and len(parts) == 1 else verb
        found.add((verb, group, parts[0] if len(parts) < 3 else f"{parts[0]}/{parts[2]}"))

    async def sent(ask: TransportRequest) -> TransportResponse:
        note(ask)
        return await send(ask)

    async def streamed(ask: TransportRequest) -> ResponseStream:
        note(ask)
        return await stream(ask)

    world.wire.send, world.wire.stream = sent, streamed  # type: ignore[method-assign]  # every request goes this way
    return found
