"""The status of a machine, and the few writes that it takes."""

import asyncio
import base64
import logging
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from paddock.kubernetes.runtime import logs
from tests.coroutines import played
from tests.kit.engine.enginefakes import EveryStart
from tests.scenario.fronts.stakater.stage import DISK, GROUP, IMAGE, KEY, Data, Stage, front

PASSWORD = "a: #\"' s3cret"


async def watched(events: Any) -> list[Data]:
    """Every state that a watch told."""
    found = []
    while not await events.quiet():
        found.append((await events.next())["object"])
    return found


def states(objects: list[Data], *path: str) -> list[Any]:
    """The values of a member one after the other."""
    values = []
    for each in objects:
        value: Any = each
        for part in path:
            value = (value or {}).get(part)
        values.append(value)
    return [value for value, _ in groupby(values)]


@pytest.mark.spec("stakater", 57)
@played
async def test_the_word_is_the_machines_own(stage: Stage, /) -> None:
    stage.host.engine.images.hold(IMAGE, 0.5)
    stage.host.engine.machines.held = starts = EveryStart()
    paths = (f"{GROUP}/virtualmachines?watch=true", "/apis/kubevirt.io/v1/virtualmachines?watch=true")
    async with stage.api.watch(paths[0]) as fronts, stage.api.watch(paths[1]) as machines:
        await stage.make(front())
        await asyncio.sleep(20)
        stage.host.engine.images.release(IMAGE)
        await asyncio.sleep(20)
        for each in tuple(starts.keys()):
            stage.host.engine.machines.release(each)
        await stage.available()
        await stage.parameters(runStrategy="Halted")
        await asyncio.sleep(30)
        said, meant = (
            states(await watched(fronts), "status", "vm", "printableStatus"),
            states(await watched(machines), "status", "printableStatus"),
        )
    assert said[0] is None
    words = [word for word in said if word]
    assert words == [word for word in meant if word]
    known = [word for word in words if word in ("Provisioning", "Starting", "Running", "Stopped")]
    assert known[-4:] == ["Provisioning", "Starting", "Running", "Stopped"], words


@pytest.mark.spec("stakater", 58)
@played
async def test_cores_are_cores(stage: Stage, /) -> None:
    await stage.make(front(cpu={"cores": 4, "sockets": 1, "threads": 2}, memory={"guest": "1Gi"}))
    await stage.available()
    said = await stage.vm()
    assert said["cpuCores"] == 4 and said["memory"] == "1Gi"
    assert said["ready"] is True and said["created"] is True and said["printableStatus"] == "Running"
    machine = await stage.host.vm()
    copied = ("type", "status", "reason", "message", "lastTransitionTime")
    assert said["conditions"] == [{name: each[name] for name in copied if name in each} for each in machine["status"]["conditions"]]


class Kept(logging.Handler):
    """Lines with what they are about, as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logs.fields_of(record))


@pytest.fixture
def kept() -> Iterator[Kept]:
    """The lines of the dialect's controllers."""
    kept = Kept()
    logging.getLogger("paddock.dialects.stakater.controllers").addHandler(kept)
    yield kept
    logging.getLogger("paddock.dialects.stakater.controllers").removeHandler(kept)


@played
async def test_figures_and_lines_name_the_dialect(stage: Stage, /, caplog: pytest.LogCaptureFixture, kept: Kept) -> None:
    with caplog.at_level(logging.INFO):
        await stage.make(front(), front("held", sshPublicKey={"secretName": "missing"}))
        await stage.available()
    text = stage.host.control.program.machinery.metrics.text()
    assert 'paddock_front_objects{dialect="stakater",ready="True"} 1\n' in text
    assert 'paddock_front_objects{dialect="stakater",ready="False"} 1\n' in text
    assert 'paddock_front_reconcile_total{dialect="stakater",result="done"}' in text
    assert 'paddock_front_reconcile_duration_seconds_count{dialect="stakater"}' in text
    line = next(each for each in kept.lines if each.get("step") == "apply")
    wanted = {"dialect": "stakater", "namespace": "default", "name": "web", "generation": "1", "step": "apply"}
    assert {name: line.get(name) for name in wanted} == wanted


@pytest.mark.spec("stakater", 59)
@played
async def test_a_halted_machine_is_as_it_should_be(stage: Stage, /) -> None:
    await stage.make(front(runStrategy="Halted", additionalDisks=[DISK]))
    await stage.available()
    said = await stage.vm()
    assert (said["created"], said["ready"], said["printableStatus"]) == (False, False, "Stopped")
    # As on a cluster, though the image has an address, which is Kubermatic's form.
    assert [(await stage.volume(name))["status"]["phase"] for name in ("web-rootdisk", "web-data")] == ["Succeeded"] * 2


@pytest.mark.spec("stakater", 48)
@played
async def test_the_address_of_the_service_comes_and_goes_with_it(stage: Stage, /) -> None:
    await stage.make(front(service={"enabled": True}))
    await stage.available()
    assert (await stage.vm())["serviceIP"] == "192.0.2.10"
    service = await stage.service()
    await stage.parameters(service={"port": 2222})
    await stage.available()
    moved = await stage.service()
    assert [(each["port"], each["targetPort"]) for each in moved["spec"]["ports"]] == [(2222, 22)]
    assert moved["metadata"]["uid"] == service["metadata"]["uid"] and (await stage.vm())["serviceIP"] == "192.0.2.10"
    # What a cloud's load balancer says, where it has a name instead.
    balancer = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}}
    place = "/api/v1/namespaces/default/services/web-lb/status"
    async with stage.api.watch(f"{GROUP}/virtualmachines?watch=true&resourceVersion=0") as fronts:
        assert (await stage.api.merge(place, balancer)).status == 200
        await asyncio.sleep(2)
        names = states(await watched(fronts), "status", "vm", "serviceHostname")
    assert "lb.example" in names
    await stage.parameters(service={"enabled": False})
    await stage.available()
    assert await stage.service() == {}
    said = await stage.vm()
    assert "serviceIP" not in said and "serviceHostname" not in said


@played
async def test_a_service_without_an_address_is_waited_for(stage: Stage, /) -> None:
    stage.host.engine.networks.problems["default/web-lb"] = ("192.0.2.10:22000: taken",)
    await stage.make(front(service={"enabled": True}))
    await asyncio.sleep(60)
    assert (await stage.vm())["printableStatus"] == "Running"
    if (await stage.said())["Ready"] != ("True", "Available"):
        assert await stage.message() == "the Service web-lb has no address yet"


@pytest.mark.spec("stakater", 60)
@played
async def test_a_paused_machine_is_left_alone(stage: Stage, /) -> None:
    pause = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    await stage.make({**front(), "metadata": {"name": "web", **pause["metadata"]}})
    await asyncio.sleep(120)
    assert (await stage.said())["Synced"] == ("False", "ReconcilePaused")
    assert await stage.host.vm() == {} and "finalizers" not in (await stage.front())["metadata"]
    await stage.change({"metadata": {"annotations": {"crossplane.io/paused": None}}})
    await stage.available()
    # Drift is left alone, too, and so is what is deleted.
    await stage.change(pause)
    await asyncio.sleep(5)
    before = await stage.host.vm()
    await stage.host.change("web", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}})
    await stage.delete()
    await asyncio.sleep(300)
    assert (await stage.said())["Synced"] == ("False", "ReconcilePaused")
    assert (await stage.host.vm())["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 5
    assert (await stage.host.vm())["metadata"]["uid"] == before["metadata"]["uid"]
    await stage.change({"metadata": {"annotations": {"crossplane.io/paused": None}}})
    await asyncio.sleep(60)
    assert await stage.front() == {} and await stage.host.vm() == {}


@played
async def test_manual_machines_rest_until_they_were_started(stage: Stage, /) -> None:
    await stage.make(front(runStrategy="Manual"))
    await stage.available()
    assert (await stage.vm())["printableStatus"] == "Stopped"
    await stage.start()
    await stage.available()
    assert (await stage.vm())["ready"] is True
    await stage.stop()
    await asyncio.sleep(60)
    assert (await stage.said())["Ready"] == ("False", "Unavailable")


USER_DATA = "#cloud-config\npassword: very-s3cret\n"
# Where each way carries what is secret: the resource, and what a loose administrator would have a refusal repeat.
CARRIERS = [
    ({"password": PASSWORD}, ("", "secrets"), "object.data.userdata"),
    ({"userData": USER_DATA}, ("kubevirt.io", "virtualmachines"), "object.spec.template.spec.volumes[1].cloudInitNoCloud.userData"),
]


@pytest.mark.spec("stakater", 70)
@pytest.mark.parametrize(("cloud_init", "resource", "repeats"), CARRIERS, ids=["password", "userData"])
@played
async def test_nothing_secret_is_shown(
    stage: Stage, /, caplog: pytest.LogCaptureFixture, cloud_init: Data, resource: tuple[str, str], repeats: str
) -> None:
    """Neither where everything goes well, nor where a refusal repeats what it refuses."""
    caplog.set_level(logging.DEBUG)
    concerned = {"apiGroups": [resource[0]], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource[1]]}
    policy = {
        "metadata": {"name": "loose"},
        "spec": {
            "matchConstraints": {"resourceRules": [concerned]},
            "validations": [{"expression": f"!has({repeats})", "messageExpression": f"'not this: ' + {repeats}.replace('\\n', ' ')"}],
        },
    }
    binding = {"metadata": {"name": "loose"}, "spec": {"policyName": "loose", "validationActions": ["Deny"]}}
    root = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    for kind, document in (("ies", policy), ("ybindings", binding)):
        assert (await stage.api.post(root + kind, document)).status == 201
    await asyncio.sleep(5)
    await stage.make(front(cloudInit=cloud_init, sshPublicKey={"data": KEY}))
    await asyncio.sleep(120)
    assert (await stage.said())["Synced"] == ("False", "ReconcileError")
    assert "not this" in await stage.message("Synced")
    shown = [await stage.message("Synced")]
    assert (await stage.api.delete(root + "ybindings/loose")).status == 200
    await stage.available(seconds=120)
    assert "ReconcileError" in await stage.reasons()
    shown += [each["message"] for each in (await stage.api.get("/api/v1/namespaces/default/events")).data["items"]]
    shown += [str((await stage.front())["status"]), caplog.text, *(str(vars(each)) for each in caplog.records)]
    given = PASSWORD if "password" in cloud_init else USER_DATA
    encoded = {piece for secret in await secrets(stage) for piece in (secret, base64.b64decode(secret).decode())}
    for text in shown:
        for secret in ("s3cret", KEY.split()[1], given, *encoded):
            assert secret not in text


async def secrets(stage: Stage) -> list[str]:
    """The values of the Secrets that were made, in base64."""
    items = (await stage.api.get("/api/v1/namespaces/default/secrets")).data["items"]
    return [value for each in items if each["metadata"]["name"].startswith("web") for value in each["data"].values()]
