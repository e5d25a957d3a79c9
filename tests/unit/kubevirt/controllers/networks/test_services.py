"""Services lead to the machines that are ready, in the API and in the engine."""

import asyncio
from typing import Any

from paddock.engine.networks.nics import ForwardTarget, PublishedService
from tests.coroutines import played
from tests.unit.kubevirt.controllers.networks.conftest import CORE, INSTANCES, SLICES, Host

SELECTS = {"app": "web"}


async def service(host: Host, name: str = "web", **spec: Any) -> dict[str, Any]:
    made = await host.api.post(
        f"{CORE}/services",
        {"metadata": {"name": name}, "spec": {"selector": SELECTS, "ports": [{"port": 80, "targetPort": 8080}], **spec}},
    )
    assert made.status == 201, made.data
    await asyncio.sleep(1)
    return dict(made.data)


def published(host: Host, name: str = "default/web") -> PublishedService:
    return next(each for each in host.networks.published if each.name == name)


async def events(host: Host) -> list[tuple[str, str]]:
    return [(each["reason"], each["message"]) for each in (await host.api.get(f"{CORE}/events")).data["items"]]


@played
async def test_endpoints_follow_readiness(host: Host, /) -> None:
    made = await service(host)
    first = await host.machine("one", "10.112.64.5")
    await host.machine("two", "10.112.64.6", ready=False)
    await host.machine("other", "10.112.64.7", labels={"app": "db"})
    own = published(host)
    assert own.addresses == (made["spec"]["clusterIP"],)
    assert own.ports[0].targets == (ForwardTarget(first["metadata"]["uid"], "default", 8080),)
    subsets = (await host.api.get(f"{CORE}/endpoints/web")).data["subsets"]
    assert [each["ip"] for each in subsets[0]["addresses"]] == ["10.112.64.5"]
    assert [each["ip"] for each in subsets[0]["notReadyAddresses"]] == ["10.112.64.6"]
    assert subsets[0]["ports"] == [{"port": 8080, "protocol": "TCP"}]
    (found,) = (await host.api.get(SLICES)).data["items"]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    assert {each["addresses"][0]: each["conditions"]["ready"] for each in found["endpoints"]} == {
        "10.112.64.5": True,
        "10.112.64.6": False,
    }
    await host.state("two", "10.112.64.6", ready=True)
    await host.state("one", "10.112.64.5", ready=False)
    assert [each.owner != first["metadata"]["uid"] for each in published(host).ports[0].targets] == [True]
    await host.state("two", "10.112.64.6", ready=True, phase="Failed")
    assert published(host).ports[0].targets == ()


@played
async def test_a_service_that_goes_takes_everything_along(host: Host, /) -> None:
    await service(host)
    await host.machine("one", "10.112.64.5")
    assert "web.default.svc.cluster.local" in host.networks.names
    await host.api.delete(f"{CORE}/services/web")
    await asyncio.sleep(1)
    assert host.networks.published == () and host.networks.names == {}


@played
async def test_a_selector_that_goes_leaves_the_endpoints_to_others(host: Host, /) -> None:
    await service(host)
    await host.machine("one", "10.112.64.5")
    await host.api.merge(f"{CORE}/services/web", {"spec": {"selector": None}})
    await asyncio.sleep(1)
    assert host.networks.published == () and (await host.api.get(SLICES)).data["items"] == []
    await host.api.post(f"{CORE}/endpoints", {"metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "192.0.2.5"}]}]})
    await asyncio.sleep(60)
    assert (await host.api.get(f"{CORE}/endpoints/web")).status == 200


@played
async def test_machines_are_selected_by_what_upstreams_tools_select(host: Host, /) -> None:
    await service(host, selector={"vmi.kubevirt.io/id": "one"})
    await service(host, name="named", selector={"vm.kubevirt.io/name": "one"})
    await host.machine("one", "10.112.64.5", labels={"a": "b"})
    await host.machine("two", "10.112.64.6", labels={"a": "b"})
    assert [len(published(host, name).ports[0].targets) for name in ("default/web", "default/named")] == [1, 1]


@played
async def test_named_ports_are_looked_up_at_each_machine(host: Host, /) -> None:
    await service(host, ports=[{"port": 80, "targetPort": "http"}])
    await host.machine("one", "10.112.64.5", ports=[{"name": "http", "port": 8001}])
    await host.machine("two", "10.112.64.6", ports=[{"name": "http", "port": 8002}])
    await host.machine("without", "10.112.64.7")
    assert sorted(each.port for each in published(host).ports[0].targets) == [8001, 8002]
    numbers = [port["port"] for each in (await host.api.get(SLICES)).data["items"] for port in each["ports"] or ()]
    assert sorted(numbers) == [8001, 8002]


@played
async def test_a_load_balancer_has_the_hosts_address_as_long_as_it_is_listened_at(host: Host, /) -> None:
    host.networks.problems["default/web"] = ("tcp 192.0.2.10:80: another program has it",)
    made = await service(host, type="LoadBalancer")
    assert published(host).outside == ("192.0.2.10",) and published(host).ports[0].node_port == made["spec"]["ports"][0]["nodePort"]
    assert not (await host.api.get(f"{CORE}/services/web")).data["status"]["loadBalancer"].get("ingress")
    assert ("PortUnavailable", "cannot listen at tcp 192.0.2.10:80: another program has it; it is tried again") in await events(host)
    host.networks.problems.clear()
    await asyncio.sleep(20)
    (entry,) = (await host.api.get(f"{CORE}/services/web")).data["status"]["loadBalancer"]["ingress"]
    assert entry["ip"] == "192.0.2.10"
    await host.api.merge(f"{CORE}/services/web", {"spec": {"type": "ClusterIP"}})
    await asyncio.sleep(1)
    assert published(host).outside == () and published(host).ports[0].node_port == 0
    assert not (await host.api.get(f"{CORE}/services/web")).data["status"]["loadBalancer"].get("ingress")


@played
async def test_another_class_of_load_balancer_is_somebody_elses(host: Host, /) -> None:
    await service(host, type="LoadBalancer", loadBalancerClass="example.com/other")
    await host.api.merge(f"{CORE}/services/web/status", {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}})
    await asyncio.sleep(60)
    assert published(host).outside == ()
    assert (await host.api.get(f"{CORE}/services/web")).data["status"]["loadBalancer"]["ingress"][0]["ip"] == "203.0.113.9"


@played
async def test_affinity_sources_and_names(host: Host, /) -> None:
    made = await service(host, sessionAffinity="ClientIP", type="LoadBalancer", loadBalancerSourceRanges=["192.0.2.0/24"])
    assert (published(host).affinity_seconds, published(host).sources) == (10800, ("192.0.2.0/24",))
    await service(host, name="headless", clusterIP="None")
    await host.machine("one", "10.112.64.5")
    assert host.networks.names["web.default.svc.cluster.local"] == (made["spec"]["clusterIP"],)
    assert host.networks.names["headless.default.svc.cluster.local"] == ("10.112.64.5",)


@played
async def test_a_restart_never_publishes_a_part_of_the_services(host: Host, /) -> None:
    for number in range(5):
        await service(host, name=f"s{number}")
    await host.end()
    told: list[int] = []
    real = host.networks.publish

    async def publish(services: Any) -> Any:
        told.append(len(services))
        return await real(services)

    host.networks.publish = publish  # type: ignore[method-assign]
    await host.begin()
    assert told and set(told) == {5}


@played
async def test_what_is_so_already_is_not_written_again(host: Host, /) -> None:
    await service(host)
    await host.machine("one", "10.112.64.5")
    before = (await host.api.get(f"{CORE}/endpoints/web")).data["metadata"]["resourceVersion"]
    await host.api.merge(f"{INSTANCES}/one", {"metadata": {"annotations": {"a": "b"}}})
    await asyncio.sleep(400)
    assert (await host.api.get(f"{CORE}/endpoints/web")).data["metadata"]["resourceVersion"] == before
