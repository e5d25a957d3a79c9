"""Instances without a machine above them, and presets, as `tests/vmi_lifecycle_test.go` and others of KubeVirt want them."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.upstream.asking import INSTANCES, PLACE, VM, condition

pytestmark = pytest.mark.spec("kubevirt", 110)

PRESETS = f"{PLACE}/virtualmachineinstancepresets"
SELECTED = {"matchLabels": {"flavor": "many"}}
MANY = {"cpu": {"cores": 4}}


def instance(name: str = "web", labels: Data | None = None, **more: Any) -> Data:
    spec = machine(**more)["spec"]["template"]["spec"]
    return {"apiVersion": VM, "kind": "VirtualMachineInstance", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


async def preset(host: FakeHost, name: str = "many", domain: Data | None = None, selector: Data | None = None) -> int:
    """Make one; the answer's code."""
    body: Data = {"apiVersion": VM, "kind": "VirtualMachineInstancePreset", "metadata": {"name": name}}
    body["spec"] = {"selector": selector or SELECTED, "domain": {"devices": {}, **(domain or MANY)}}
    return (await host.api.post(PRESETS, body)).status


async def cores(host: FakeHost, name: str = "web") -> int:
    return int((await host.vmi(name))["spec"]["domain"]["cpu"]["cores"])


@played
async def test_it_starts_paused(host: FakeHost, /) -> None:
    await host.make(instance(startStrategy="Paused"))
    ran = await host.running()
    assert condition(await host.vmi(), "Paused") == "True" and ran.observed.paused == "start"
    reply = await host.verb("web", "unpause", kind="VirtualMachineInstance")
    assert reply.status in (200, 202)
    await asyncio.sleep(5)
    assert condition(await host.vmi(), "Paused") in ("", "False") and not ran.observed.paused


@played
async def test_what_makes_no_sense_is_refused_and_changes_nothing(host: FakeHost, /) -> None:
    wrong = instance()
    wrong["spec"]["domain"]["devices"]["disks"] = [{"name": "testdisk"}]
    reply = await host.api.post(INSTANCES, wrong)
    assert reply.status == 422 and list(reply.causes) == ["spec.domain.devices.disks[0].name"]
    await host.make(instance())
    await host.running()
    before = await host.vmi()
    assert (await host.api.merge(f"{INSTANCES}/web", {"spec": {"domain": "text"}})).status == 422
    assert await host.vmi() == before


@played
async def test_a_long_name_is_no_hindrance(host: FakeHost, /) -> None:
    name = "testvmi" + "x" * 63
    await host.make(instance(name))
    await host.running(name)


@pytest.mark.spec("kubevirt", 164)
@played
async def test_a_secret_may_come_later(host: FakeHost, /) -> None:
    seed = {"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "later"}}}
    await host.make(instance(volumes=[seed]))
    await asyncio.sleep(20)
    assert (await host.vmi())["status"]["phase"] == "Scheduling"
    assert any("later" in str(each.get("message")) for each in (await host.vmi())["status"]["conditions"])
    await host.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later"}, "stringData": {"userdata": "#cloud-config\n"}})
    await host.running(seconds=60)


@pytest.mark.spec("kubevirt", 164)
@played
async def test_a_selector_that_no_node_fits_stays_what_it_was(host: FakeHost, /) -> None:
    await host.make(instance("here", nodeSelector={"kubernetes.io/hostname": "host"}), instance("away", nodeSelector={"a": "b"}))
    await asyncio.sleep(20)
    assert (await host.vmi("here"))["status"]["phase"] == "Running"
    away = await host.vmi("away")
    assert away["status"]["phase"] == "Scheduling" and condition(away, "PodScheduled") == "False"
    assert away["spec"]["nodeSelector"] == {"a": "b"}
    assert (await host.vmi("here"))["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "host"}


@played
async def test_a_panic_of_the_guest_is_a_failure(host: FakeHost, /) -> None:
    await host.make(instance(domain={"devices": {"panicDevices": [{"model": "pvpanic"}]}}))
    (await host.running()).end("panicked", "last words")
    await asyncio.sleep(5)
    assert (await host.vmi())["status"]["phase"] == "Failed"


@played
async def test_presets_are_made_once_found_and_deleted(host: FakeHost, /) -> None:
    assert (await host.api.get(f"{PRESETS}/many")).status == 404
    assert await preset(host) == 201 and await preset(host) == 409
    assert (await host.api.get(f"{PRESETS}/many")).data["spec"]["domain"]["cpu"]["cores"] == 4
    assert (await host.api.delete(f"{PRESETS}/many")).status == 200
    assert (await host.api.get(f"{PRESETS}/many")).status == 404


@played
async def test_a_preset_fills_what_is_open_in_those_that_it_means(host: FakeHost, /) -> None:
    await host.make(instance("before", dict(SELECTED["matchLabels"])))
    await preset(host)
    said = instance("said", dict(SELECTED["matchLabels"]))
    said["spec"]["domain"]["cpu"] = {"cores": 2}
    excluded = instance("excluded", dict(SELECTED["matchLabels"]))
    excluded["metadata"]["annotations"] = {"virtualmachineinstancepresets.admission.kubevirt.io/exclude": "true"}
    await host.make(instance("meant", dict(SELECTED["matchLabels"])), instance("other", {"flavor": "few"}), said, excluded)
    found = {name: await cores(host, name) for name in ("before", "meant", "other", "said", "excluded")}
    assert found == {"before": 1, "meant": 4, "other": 1, "said": 2, "excluded": 1}
    marked = {name for name in found if "virtualmachinepreset.kubevirt.io/many" in (await host.vmi(name))["metadata"]["annotations"]}
    assert marked == {"meant"}


EXPRESSION = {"key": "flavor", "operator": "In", "values": ["many", "more"]}


@pytest.mark.parametrize("selector", [SELECTED, {"matchExpressions": [EXPRESSION]}], ids=["labels", "expressions"])
@played
async def test_a_preset_means_several(host: FakeHost, /, selector: Data) -> None:
    await preset(host, selector=selector)
    second = "many" if "matchLabels" in selector else "more"
    await host.make(instance("one", {"flavor": "many"}), instance("two", {"flavor": second}), instance("three", {"flavor": "few"}))
    assert [await cores(host, name) for name in ("one", "two", "three")] == [4, 4, 1]


@pytest.mark.spec("kubevirt", 185)
@played
async def test_an_instance_of_two_presets_that_differ_is_refused(host: FakeHost, /) -> None:
    await preset(host, "a", {"cpu": {"cores": 2}})
    await preset(host, "b", {"cpu": {"cores": 4}})
    reply = await host.api.post(INSTANCES, instance("web", dict(SELECTED["matchLabels"])))
    assert reply.status == 422 and "presets 'a' and 'b' say different things" in reply.causes["spec.domain.cpu.cores"]
    assert reply.data["message"].startswith('admission webhook "virtualmachineinstances-mutator.kubevirt.io" denied the request: ')
