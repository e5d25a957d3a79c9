"""A VirtualMachine from its creation to its end, as `tests/vm_test.go` of KubeVirt wants it."""

import asyncio
import itertools
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.upstream.asking import (
    DV,
    INSTANCES,
    MACHINES,
    REVISIONS,
    VM,
    asked,
    condition,
    instance_uid,
    names,
    operation,
    patched,
    phase,
)

pytestmark = pytest.mark.spec("kubevirt", 110)

BLANK: Data = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
GENERATION = "kubevirt.io/vm-generation"


async def started(host: FakeHost, name: str = "web", **more: Any) -> str:
    """A machine that was made halted and then started; the UID of its instance."""
    await host.make(machine(name, "Halted", **more))
    await asyncio.sleep(5)
    await asked(host, name, "start")
    assert await phase(host, name) == "Running"
    return await instance_uid(host, name)


@played
async def test_quantities_may_be_numbers(host: FakeHost, /) -> None:
    made = machine(strategy="Halted")
    amounts: dict[str, float] = {"cpu": 2, "memory": 222222222}
    made["spec"]["template"]["spec"]["domain"] = {"devices": {}, "resources": {"requests": amounts, "limits": amounts}}
    await host.make(made)
    await asked(host, "web", "start")
    await host.running()
    amounts["cpu"] = 2.2
    reply = await host.api.post(MACHINES, {**made, "metadata": {"name": "fraction"}})
    assert reply.status == 201
    kept = reply.data["spec"]["template"]["spec"]["domain"]["resources"]["requests"]
    assert kept == {"cpu": "2200m", "memory": 222222222}


@played
async def test_annotations_of_the_template_alone_reach_the_instance(host: FakeHost, /) -> None:
    made = machine()
    made["metadata"]["annotations"] = {"of.the/machine": "stays"}
    made["spec"]["template"]["metadata"] = {"annotations": {"of.the/template": "goes"}}
    await host.make(made)
    await host.running()
    annotations = (await host.vmi())["metadata"]["annotations"]
    assert annotations["of.the/template"] == "goes" and "of.the/machine" not in annotations


async def generations(host: FakeHost) -> tuple[int, int, int, str]:
    """Of the machine, as its status says twice, and of what it runs."""
    found = await host.vm()
    status = found["status"]
    noted = (await host.vmi())["metadata"]["annotations"][GENERATION]
    return found["metadata"]["generation"], status["desiredGeneration"], status["observedGeneration"], noted


@played
async def test_each_start_notes_the_generation_it_is_of(host: FakeHost, /) -> None:
    await started(host)
    for count in (2, 4, 6):
        assert await generations(host) == (count, count, count, str(count))
        await asked(host, "web", "stop")
        await asked(host, "web", "start")


@played
async def test_a_change_that_waits_for_a_restart_is_observed_with_it(host: FakeHost, /) -> None:
    await started(host)
    for sound, generation in (("ich9", 3), ("ac97", 4)):
        devices = {"sound": {"name": "speaker", "model": sound}}
        await host.change("web", {"spec": {"template": {"spec": {"domain": {"devices": devices}}}}})
        await asyncio.sleep(5)
        assert await generations(host) == (generation, generation, 2, "2")
    await asked(host, "web", "stop")
    await asked(host, "web", "start")
    assert await generations(host) == (6, 6, 6, "6")


@pytest.mark.parametrize("disk", ["none", "lasting"])
@played
async def test_an_instance_is_shut_down_with_its_machine(host: FakeHost, /, disk: str) -> None:
    with_disk: Data = {"volumes": [{"name": "root", "dataVolume": {"name": "disk"}}], "templates": [BLANK]}
    await host.make(machine(**(with_disk if disk == "lasting" else {})))
    ran = await host.running()
    await host.delete("VirtualMachine", VM, "web")
    await asyncio.sleep(30)
    assert await host.vmi() == {} and await host.vm() == {}
    assert ran.presses == 1
    assert "ShuttingDown" in await host.events(kind="VirtualMachineInstance")


@played
async def test_an_orphaned_instance_has_no_owner(host: FakeHost, /) -> None:
    await host.make(machine())
    ran = await host.running()
    assert (await host.vmi())["metadata"]["ownerReferences"]
    await host.delete("VirtualMachine", VM, "web", "?propagationPolicy=Orphan")
    await asyncio.sleep(30)
    assert await host.vm() == {}
    assert "ownerReferences" not in (await host.vmi())["metadata"] and ran.observed.phase == "running"


@played
async def test_an_instance_that_is_deleted_is_made_again(host: FakeHost, /) -> None:
    before = await started(host)
    await host.delete("VirtualMachineInstance", VM, "web")
    again = await host.running(seconds=30)
    assert again.id != before


@pytest.mark.parametrize("disk", ["none", "lasting"])
@played
async def test_running_false_stops_a_machine(host: FakeHost, /, disk: str) -> None:
    with_disk: Data = {"volumes": [{"name": "root", "dataVolume": {"name": "disk"}}], "templates": [BLANK]}
    made = machine(**(with_disk if disk == "lasting" else {}))
    del made["spec"]["runStrategy"]
    made["spec"]["running"] = True
    await host.make(made)
    await host.running()
    await host.change("web", {"spec": {"running": False}})
    await asyncio.sleep(30)
    assert await host.vmi() == {} and await host.status() == "Stopped"


@played
async def test_it_is_started_and_stopped_many_times(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Halted"))
    runs = set()
    for _ in range(5):
        await asked(host, "web", "start")
        runs.add((await host.running()).id)
        await asked(host, "web", "stop")
        assert await host.vmi() == {} and await host.status() == "Stopped"
    assert len(runs) == 5


@played
async def test_what_runs_keeps_its_spec_until_it_is_restarted(host: FakeHost, /) -> None:
    await started(host)

    async def asks_for() -> str:
        return str((await host.vmi())["spec"]["domain"].get("resources", {}).get("requests", {}).get("memory", ""))

    before = await asks_for()
    assert before != "200Mi"
    await patched(host, f"{MACHINES}/web", operation("add", "/spec/template/spec/domain/resources", {"requests": {"memory": "200Mi"}}))
    await asyncio.sleep(5)
    assert await asks_for() == before
    await asked(host, "web", "stop")
    await asked(host, "web", "start")
    assert await asks_for() == "200Mi"


@played
async def test_a_guest_that_shuts_itself_down_is_started_again_each_time(host: FakeHost, /) -> None:
    await host.make(machine())
    runs = [await host.running()]
    for _ in range(3):
        runs[-1].power_off()
        runs.append(await host.running(seconds=30))
    assert len({each.id for each in runs}) == 4


@played
async def test_each_start_leaves_the_spec_it_is_of(host: FakeHost, /) -> None:
    async def revision() -> str:
        of, run = await host.vm(), await host.vmi()
        name = str(run["status"]["virtualMachineRevisionName"])
        assert name == f"revision-start-vm-{of['metadata']['uid']}-{of['metadata']['generation']}"
        kept = await host.get("ControllerRevision", "apps/v1", name)
        assert kept["revision"] == of["metadata"]["generation"] and kept["data"]["spec"] == of["spec"]
        return name

    await started(host)
    first = await revision()
    await asked(host, "web", "stop")
    await patched(host, f"{MACHINES}/web", operation("add", "/spec/template/spec/domain/resources", {"requests": {"memory": "200Mi"}}))
    await asked(host, "web", "start")
    second = await revision()
    assert await names(host, REVISIONS) == [second] != [first]


@played
async def test_ready_follows_what_runs(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Halted"))
    await asyncio.sleep(5)
    for verb, ready in (("", "False"), ("start", "True"), ("stop", "False")):
        if verb:
            await asked(host, "web", verb)
        assert condition(await host.vm(), "Ready") == ready


MANY: Data = {"devices": {}, "memory": {"guest": "64Mi"}, "resources": {"requests": {"cpu": "1M"}}}
HUGE = {"devices": {}, "resources": {"requests": {"memory": "1Ei"}}}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"domain": HUGE}, "ErrorUnschedulable"),
        ({"domain": MANY}, "ErrorUnschedulable"),
        ({"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}, "ErrorUnschedulable"),
        ({"volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "missing"}}]}, "ErrorPvcNotFound"),
        ({"volumes": [{"name": "root", "dataVolume": {"name": "missing"}}]}, "ErrorPvcNotFound"),
    ],
    ids=["memory", "processors", "node", "claim", "datavolume"],
)
@played
async def test_what_hinders_a_start_is_the_status(host: FakeHost, /, more: Data, status: str) -> None:
    made = machine(**{key: value for key, value in more.items() if key != "domain"})
    if "domain" in more:
        made["spec"]["template"]["spec"]["domain"] = more["domain"]
    await host.make(made)
    await asyncio.sleep(20)
    assert await host.status() == status


@pytest.mark.spec("kubevirt", 155)
@played
async def test_a_machine_without_memory_is_kept_and_starts_when_it_has_some(host: FakeHost, /) -> None:
    made = machine()
    del made["spec"]["template"]["spec"]["domain"]["memory"]
    await host.make(made)
    await asyncio.sleep(20)
    (failure,) = [each for each in (await host.vm())["status"]["conditions"] if each["type"] == "Failure"]
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert "no memory requested: give memory.guest" in failure["message"]
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}})
    await host.running(seconds=300)
    assert (await host.vmi())["spec"]["domain"]["memory"]["guest"] == "64Mi"
    assert condition(await host.vm(), "Failure") in ("", "False")


@played
async def test_a_change_of_labels_waits_for_another_start(host: FakeHost, /) -> None:
    await started(host)
    for count, key in ((3, "testkey"), (4, "testkey2")):
        await host.change("web", {"spec": {"template": {"metadata": {"labels": {key: "testvalue"}}}}})
        await asyncio.sleep(5)
        assert await generations(host) == (count, count, 2, "2")
    assert not {"testkey", "testkey2"} & set((await host.vmi())["metadata"]["labels"])
    assert "RestartRequired" not in [each["type"] for each in (await host.vm())["status"]["conditions"]]
    await asked(host, "web", "stop", seconds=120)
    await asked(host, "web", "start", seconds=20)
    assert await generations(host) == (6, 6, 6, "6")
    assert {"testkey", "testkey2"} <= set((await host.vmi())["metadata"]["labels"])


@pytest.mark.spec("kubevirt", 164)
@played
async def test_an_image_that_is_not_there_is_asked_for_with_growing_pauses(host: FakeHost, /) -> None:
    said: list[str] = []
    async with host.api.watch(f"{MACHINES}?watch=true") as events:
        await host.make(machine(volumes=[{"name": "root", "containerDisk": {"image": "registry.invalid/nothing:1"}}]))
        await asyncio.sleep(660)
        while not await events.quiet():
            said.append((await events.next())["object"].get("status", {}).get("printableStatus", ""))
    assert (await host.vmi())["status"]["phase"] == "Scheduling"
    said = [word for word, _ in itertools.groupby(each for each in said if each.startswith(("Err", "Image")))]
    assert said[:4] == ["ErrImagePull", "ImagePullBackOff"] * 2


@played
async def test_a_disk_that_cannot_be_filled_is_the_status(host: FakeHost, /) -> None:
    source = {"registry": {"url": "docker://no.such/image"}}
    template = {"metadata": {"name": "disk"}, "spec": {**BLANK["spec"], "source": source}}
    await host.make(machine(volumes=[{"name": "root", "dataVolume": {"name": "disk"}}], templates=[template]))
    await asyncio.sleep(300)
    assert await host.status() == "DataVolumeError"


@pytest.mark.parametrize("strategy", ["Once", "Manual"])
@played
async def test_one_that_is_done_stays_to_be_looked_at(host: FakeHost, /, strategy: str) -> None:
    await host.make(machine(strategy=strategy))
    if strategy == "Manual":
        await asked(host, "web", "start")
    ran = await host.running()
    ran.power_off()
    for _ in range(12):
        await asyncio.sleep(5)
        assert await phase(host) == "Succeeded" and condition(await host.vm(), "Ready") == "False"
    reply = await host.verb("web", "start")
    if strategy == "Once":
        assert reply.status == 409 and "Once does not support manual start requests" in reply.data["message"]
        return
    again = await host.running(seconds=30)
    assert again.id != ran.id and not (await host.vm())["status"].get("stateChangeRequests")


@played
async def test_once_leaves_one_that_failed(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Once"))
    (await host.running()).crash("killed by signal 9")
    for _ in range(12):
        await asyncio.sleep(5)
        assert await phase(host) == "Failed" and condition(await host.vm(), "Ready") == "False"
    assert "Stopped" in await host.events(kind="VirtualMachineInstance")


@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
@played
async def test_every_version_makes_and_deletes_machines(host: FakeHost, /, version: str) -> None:
    await host.make({**machine(), "apiVersion": f"kubevirt.io/{version}"})
    ran = await host.running()
    reply = await host.api.delete(MACHINES.replace("/v1/", f"/{version}/") + "/web")
    assert reply.status == 200
    await asyncio.sleep(30)
    assert await host.vm() == {} and host.engine.machines.get(ran.id) is None


@played
async def test_starts_that_fail_become_fewer_and_end_with_their_cause(host: FakeHost, /) -> None:
    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        host.engine.machines.fail(id, "qemu: no")
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    await host.make(machine())
    await asyncio.sleep(30)
    for _ in range(12):
        assert await host.status() == "CrashLoopBackOff"
        assert 1 <= (await host.vm())["status"]["startFailure"]["consecutiveFailCount"] <= 4
        await asyncio.sleep(5)
    host.engine.machines.define = define  # type: ignore[method-assign]
    await host.change("web", {"spec": {"template": {"metadata": {"annotations": {"put": "right"}}}}})
    await host.running(seconds=300)
    assert await host.status() == "Running"


@played
async def test_the_finalizer_comes_with_a_machine_and_goes_before_others(host: FakeHost, /) -> None:
    made = machine()
    made["metadata"]["finalizers"] = ["example.org/mine"]
    await host.make(made)
    await host.running()
    own = "kubevirt.io/virtualMachineControllerFinalize"
    assert {own, "example.org/mine"} <= set((await host.vm())["metadata"]["finalizers"])
    await host.delete("VirtualMachine", VM, "web")
    await asyncio.sleep(30)
    assert (await host.vm())["metadata"]["finalizers"] == ["example.org/mine"]
    await patched(host, f"{MACHINES}/web", operation("replace", "/metadata/finalizers", []))
    await asyncio.sleep(1)
    assert await host.vm() == {}


@played
async def test_a_machine_goes_also_when_what_it_was_made_of_is_gone(host: FakeHost, /) -> None:
    cluster = "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes"
    kind = {"metadata": {"name": "small"}, "spec": {"cpu": {"guest": 1}, "memory": {"guest": "64Mi"}}}
    kind = {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype", **kind}
    assert (await host.api.post(cluster, kind)).status == 201
    made = machine()
    made["metadata"]["finalizers"] = ["example.org/mine"]
    made["spec"] |= {"instancetype": {"name": "small"}, "template": {"spec": {"domain": {"devices": {}}}}}
    await host.make(made)
    await host.running()
    kept = (await host.vm())["status"]["instancetypeRef"]["controllerRevisionRef"]["name"]
    await host.delete("ControllerRevision", "apps/v1", kept)
    assert (await host.api.delete(f"{cluster}/small")).status == 200
    await host.delete("VirtualMachine", VM, "web")
    await asyncio.sleep(60)
    assert (await host.vm())["metadata"]["finalizers"] == ["example.org/mine"]
    assert await names(host, INSTANCES) == []
    assert await host.get("DataVolume", DV, "disk") == {}
