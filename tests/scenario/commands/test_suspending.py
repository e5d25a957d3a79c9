"""Suspend and resume on a whole host in virtual time, on machines of every dialect."""

import asyncio
from pathlib import Path

import pytest

from paddock.fleet.diagnosis.explain import explain
from paddock.fleet.machines import facts, finding
from paddock.fleet.machines.running import WrongState
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes.client.errors import ApiError
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.engine.enginefakes import FakeMachine
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.commands.test_running import VITISTACK, VITISTACK_PATH, Person, at_a_host, play
from tests.scenario.fronts.kubermatic import making
from tests.scenario.fronts.stakater.stage import Stage, front
from tests.scenario.fronts.virtrigaud import test_ownserver as rigaud

DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def claim(name: str = "data") -> Data:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


async def suspension(host: FakeHost, name: str = "web") -> Data:
    """The condition of the machine."""
    conditions = (await host.vm(name)).get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "Suspended"), {})


def _phase(guest: FakeMachine) -> str:
    return guest.observed.phase


async def _there_and_back(person: Person, name: str = "web", vm: str = "") -> None:
    host, vm = person.host, vm or name
    guest = await host.running(vm, seconds=1)
    before = (await host.vmi(vm))["metadata"]["uid"]
    assert await person.says("suspend", name) == "suspended"
    assert _phase(guest) == "suspended" and await host.status(vm) == "Suspended"
    found = await suspension(host, vm)
    assert found["status"] == "True" and found["reason"] == "SavedToDisk"
    assert "is on disk since 20" in found["message"] and "38 MiB" in found["message"]
    assert await person.says("suspend", name) == "is already suspended"
    for verb in ("stop", "restart"):
        with pytest.raises(WrongState, match=f"cannot {verb} .*suspended to disk.*paddock resume .*--discard"):
            await person.says(verb, name)
    # It stays so, whatever its controllers do, and also when Paddock is started again.
    await asyncio.sleep(1800)
    await host.again()
    await asyncio.sleep(1800)
    assert _phase(guest) == "suspended"
    assert await person.says("resume", name) == "resumed"
    await asyncio.sleep(5)
    assert _phase(guest) == "running" and await suspension(host, vm) == {}
    assert (await host.vmi(vm))["metadata"]["uid"] == before
    with pytest.raises(WrongState, match="is not suspended"):
        await person.says("resume", name)


@played_by(play)
async def test_a_machine_of_kubevirt(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine()) as person:
        await _there_and_back(person)
        events = await person.host.events(kind="VirtualMachineInstance")
        assert [each for each in events if each in ("SavedToDisk", "Resumed")] == ["SavedToDisk", "Resumed"]
        assert await person.says("suspend", dry_run=True) == "a request to suspend (dry run)"
        assert await suspension(person.host) == {}
        # Its start is a resume.
        await person.says("suspend")
        assert await person.says("start") == "resumed"
        assert await person.says("suspend", seconds=0.0) == "suspended: requested"


@played_by(play)
async def test_a_machine_of_kubermatic(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        host.engine.images.offer(making.URL)
        await host.make(making.source(), making.machine(strategy="Always"))
        await host.running(seconds=60)
        await _there_and_back(Person(host))


@played_by(play)
async def test_a_machine_of_stakater(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        stage, person = await Stage(host).open(), Person(host)
        await stage.make(front())
        await host.running(seconds=120)
        await _there_and_back(person)
        # Halted by its owner while it is on disk, it stays there; a start wants it to run, too.
        await person.says("suspend")
        spec = {"spec": {"parameters": {"runStrategy": "Halted"}}}
        reply = await host.api.merge("/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines/web", spec)
        assert reply.status == 200, reply.data
        await asyncio.sleep(300)
        assert await host.status() == "Suspended"
        assert await person.says("start", seconds=600.0) == "resumed"
        await asyncio.sleep(300)
        assert await host.status() == "Running"


@played_by(play)
async def test_a_machine_of_vitistack(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        reply = await host.api.post(VITISTACK_PATH, VITISTACK)
        assert reply.status == 201, reply.data
        await asyncio.sleep(60)
        await _there_and_back(Person(host), "node")


@played_by(play)
async def test_a_machine_of_virtrigaud(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        stage = rigaud.Stage(host)
        host.engine.images.offer(rigaud.IMAGE)
        await stage.make(*rigaud.WORLD, rigaud.MACHINE)
        await stage.until("Running")
        name = (await stage.kubevirt())[0]["metadata"]["name"]
        await _there_and_back(Person(host), "virtrigaud/web", name)


@played_by(play)
async def test_what_keeps_it_from_being_suspended(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine()) as person:
        host, guest = person.host, await person.host.running()
        guest.immovable = ("card default is on passt, which serves one process and ends with it",)
        with pytest.raises(ApiError, match="on passt"):
            await person.says("suspend")
        assert await suspension(host) == {}
        guest.immovable, guest.unwritable = (), "there is no room left"
        with pytest.raises(WrongState, match="there is no room left"):
            await person.says("suspend")
        found = await suspension(host)
        assert found["status"] == "False" and found["reason"] == "SuspendFailed" and guest.observed.phase == "running"
        assert "SuspendFailed" in await host.events()
        # Nobody suspends it later, when there is room again.
        guest.unwritable = ""
        await asyncio.sleep(3600)
        await host.again()
        await asyncio.sleep(3600)
        assert guest.observed.phase == "running"
        assert await person.says("suspend") == "suspended"


@played_by(play)
async def test_a_resume_that_fails_is_tried_again(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine()) as person:
        host, guest = person.host, await person.host.running()
        await person.says("suspend")
        guest.unreadable = "its disk /disks/a was written since"
        assert await person.says("resume", seconds=0.0) == "resumed: requested"
        await asyncio.sleep(60)
        found = await suspension(host)
        assert found["status"] == "True" and found["reason"] == "ResumeFailed" and "was written since" in found["message"]
        async with host.api.client() as client:
            seen = await finding.find(client, "web", "default")
            cause = explain(await ServerReader(client, virtualtime.Clock()).gather(seen.ref), seen.ref).cause
            assert cause is not None and "/disks/a was written since" in cause.cause and "--discard" in cause.fix
        attempts = guest.observed.run
        guest.unreadable = ""
        await asyncio.sleep(600)
        assert guest.observed.phase == "running" and attempts > 2


@played_by(play)
async def test_a_discard_lets_the_next_start_boot(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine(strategy="Manual")) as person:
        host = person.host
        await person.says("start")
        with pytest.raises(WrongState, match="is not suspended"):
            await person.says("suspend", discard=True)
        before = (await host.vmi())["metadata"]["uid"]
        await person.says("suspend")
        assert await person.says("suspend", discard=True, dry_run=True) == "a request to discard the saved state (dry run)"
        assert await host.status() == "Suspended"
        assert await person.says("suspend", discard=True) == "saved state discarded"
        await asyncio.sleep(60)
        assert await host.status() == "Stopped"
        assert await person.says("start") == "started"
        assert (await host.vmi())["metadata"]["uid"] != before
        # With another strategy it boots at once.
        await host.change("web", {"spec": {"runStrategy": "Always"}})
        await person.says("suspend")
        assert await person.says("suspend", discard=True) == "saved state discarded"
        await asyncio.sleep(60)
        assert await host.status() == "Running"


@played_by(play)
async def test_disks_and_hardware_stay_as_they_are(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        await host.make(claim(), machine(volumes=[DATA]), machine("other", "Halted", volumes=[DATA]))
        person = Person(host)
        await host.running(seconds=30)
        await person.says("suspend")
        spec = (await host.vmi())["spec"]
        # Changes of the template wait for the resume.
        selector = {"kubernetes.io/hostname": "host"}
        await host.change("web", {"spec": {"template": {"spec": {"nodeSelector": selector}}}})
        await asyncio.sleep(60)
        assert (await host.vmi())["spec"] == spec and await host.status() == "Suspended"
        options = {"name": "more", "disk": {"disk": {}}, "volumeSource": {"persistentVolumeClaim": {"claimName": "more"}}}
        for kind in ("VirtualMachine", "VirtualMachineInstance"):
            reply = await host.verb("web", "addvolume", options, kind)
            assert reply.status == 409 and "suspended to disk" in reply.data["message"]
        reply = await host.verb("web", "screenshot", kind="VirtualMachineInstance")
        for verb in ("stop", "restart"):
            reply = await host.verb("web", verb)
            assert reply.status == 409 and "--discard" in reply.data["message"]
        # Its claim has no other user, neither a machine nor a snapshot.
        await host.verb("other", "start")
        snapshot = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
        api = "snapshot.kubevirt.io/v1beta1"
        await host.make({"apiVersion": api, "kind": "VirtualMachineSnapshot", "metadata": {"name": "s"}, "spec": {"source": snapshot}})
        await asyncio.sleep(60)
        assert (await host.vmi("other"))["status"]["phase"] != "Running"
        taken = (await host.get("VirtualMachineSnapshot", api, "s"))["status"]
        assert not taken["readyToUse"] and "suspended to disk" in str(taken["conditions"])
        await person.says("resume")
        await asyncio.sleep(120)
        assert (await host.vmi())["spec"]["nodeSelector"] == selector
        assert (await host.get("VirtualMachineSnapshot", api, "s"))["status"]["readyToUse"]


@played_by(play)
async def test_restart_of_paddock_in_the_middle(tmp_path: Path) -> None:
    """The wish is stored: it is carried out when Paddock is there again."""
    async with at_a_host(tmp_path, machine()) as person:
        host, guest = person.host, await person.host.running()
        await host.end()
        assert (await host.verb("web", "suspend")).status == 202
        await host.begin()
        await asyncio.sleep(10)
        assert guest.observed.phase == "suspended"
        await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
        await asyncio.sleep(60)
        assert await host.vmi() == {} and host.engine.machines.get(guest.id) is None


@played_by(play)
async def test_it_is_shown(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine()) as person:
        await person.host.running()
        await person.says("suspend")
        async with person.host.api.client() as client:
            seen = await finding.find(client, "web", "default")
            assert facts.of(seen).status == "Suspended"
            answer = explain(await ServerReader(client, virtualtime.Clock()).gather(seen.ref), seen.ref)
            assert answer.cause is not None and "suspended" in answer.cause.cause and "paddock resume web" in answer.cause.fix


@played_by(play)
async def test_a_cluster_does_not_suspend(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine()) as person:
        await person.host.running()
        served = person.host.api.api.subresources
        del served[next(key for key in served if key[1:3] == ("virtualmachines", "suspend"))]
        with pytest.raises(WrongState, match=r"KubeVirt cannot suspend.*paddock pause vm/web"):
            await person.says("suspend")
