"""start, stop, restart and migrate as requests: what is stored afterwards, and what is answered (docs/spec/kubevirt.md 2.4)."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.unit.app.subresources.world import World

QUEUED = {"stateChangeRequests": [{"action": "Stop", "uid": "x"}, {"action": "Start"}]}
UNDERWAY = "Internal error occurred: unable to complete request: stop/start already underway"


def conflict(why: str) -> str:
    return f'Operation cannot be fulfilled on virtualmachine.kubevirt.io "vm": {why}'


@pytest.mark.spec("kubevirt", 20)
@pytest.mark.parametrize(
    ("strategy", "live", "verb", "body", "code", "message"),
    [
        ("Always", False, "start", None, 409, conflict("Always does not support manual start requests")),
        ("Once", False, "start", None, 409, conflict("Once does not support manual start requests")),
        ("RerunOnFailure", False, "start", None, 202, ""),
        ("Manual", False, "start", None, 202, ""),
        ("Halted", False, "start", None, 202, ""),
        ("Always", True, "start", None, 409, conflict("VM is already running")),
        ("Halted", True, "start", None, 409, conflict("VM is already running")),
        ("Always", True, "stop", None, 202, ""),
        ("Always", False, "stop", None, 202, ""),
        ("RerunOnFailure", False, "stop", None, 409, conflict("VM is not running")),
        ("Manual", False, "stop", None, 409, conflict("VM is not running")),
        ("Halted", False, "stop", None, 409, conflict("VM is not running")),
        ("Halted", True, "stop", None, 409, conflict("Halted only supports manual stop requests with a shorter graceperiod")),
        ("Halted", True, "stop", {"gracePeriod": 1}, 202, ""),
        ("Manual", True, "stop", {"gracePeriod": -1}, 400, "gracePeriod has to be greater or equal to 0"),
        ("Always", True, "restart", None, 202, ""),
        ("Manual", True, "restart", {"gracePeriodSeconds": 0}, 202, ""),
        ("Always", True, "restart", {"gracePeriodSeconds": 5}, 400, "For force restart, only gracePeriod=0 is supported for now"),
        ("Always", True, "restart", {"gracePeriodSeconds": -1}, 400, "gracePeriod has to be greater or equal to 0"),
        ("Always", False, "restart", None, 409, conflict("VM is not running: Halted")),
        ("Halted", True, "restart", None, 409, conflict("RunStategy Halted does not support manual restart requests")),
        ("Once", True, "restart", None, 409, conflict("RunStategy Halted does not support manual restart requests")),
    ],
)
@scripted
async def test_answers(strategy: str, live: bool, verb: str, body: Any, code: int, message: str) -> None:
    async with World() as world:
        await world.machine(runStrategy=strategy)
        if live:
            await world.instance()
        before = world.vm(), world.vmi() if live else None
        reply = await world.put("vm", "vm", verb, body)
        assert reply.status == code
        if message:
            assert (reply.data["kind"], reply.data["message"]) == ("Status", message)
        else:
            assert reply.raw == b""
        assert ((world.vm(), world.vmi() if live else None) == before) is (code != 202)


@pytest.mark.spec("kubermatic", 43)
@scripted
async def test_verbs_of_a_machine_that_always_runs() -> None:
    async with World() as world:
        await world.machine(runStrategy="Always")
        await world.instance()
        assert (await world.put("vm", "vm", "start")).status == 409
        assert (await world.put("vm", "vm", "stop")).status == 202
        assert world.vm()["spec"]["runStrategy"] == "Halted"
        await world.machine("stopped", runStrategy="Halted")
        assert (await world.put("vm", "stopped", "stop")).status == 409


@pytest.mark.spec("kubevirt", 20)
@pytest.mark.parametrize("verb", ["start", "restart"])
@scripted
async def test_a_second_request_while_one_is_queued(verb: str) -> None:
    async with World() as world:
        await world.machine(runStrategy="Manual")
        if verb == "restart":
            await world.instance()
        assert (await world.put("vm", "vm", verb)).status == 202
        queued = world.vm()["status"]["stateChangeRequests"]
        assert [each["action"] for each in queued] == (["Start"] if verb == "start" else ["Stop", "Start"])
        reply = await world.put("vm", "vm", verb)
        assert (reply.status, reply.data["message"]) == (500, UNDERWAY)
        assert world.vm()["status"]["stateChangeRequests"] == queued


@pytest.mark.spec("kubevirt", 21)
@scripted
async def test_what_becomes_of_a_start_and_a_stop() -> None:
    async with World() as world:
        await world.machine(runStrategy="Halted")
        await world.set_machine_status("vm", startFailure={"consecutiveFailCount": 3})
        assert (await world.put("vm", "vm", "start")).status == 202
        assert world.vm()["spec"]["runStrategy"] == "Always"
        assert not world.vm()["status"].get("startFailure")
        uid = await world.instance()
        assert (await world.put("vm", "vm", "stop", {"gracePeriod": 3})).status == 202
        assert world.vm()["spec"]["runStrategy"] == "Halted"
        assert world.vmi()["spec"]["terminationGracePeriodSeconds"] == 3
        await world.machine("other", running=False, runStrategy=None)
        assert (await world.put("vm", "other", "start", {"paused": True})).status == 202
        assert world.vm("other")["status"]["stateChangeRequests"] == [{"action": "Start", "data": {"paused": "true"}}]
        assert uid


@scripted
async def test_a_restart_without_grace_leaves_the_guest_a_second() -> None:
    async with World() as world:
        await world.machine()
        uid = await world.instance()
        assert (await world.put("vm", "vm", "restart", {"gracePeriodSeconds": 0})).status == 202
        assert world.vmi()["spec"]["terminationGracePeriodSeconds"] == 1
        assert world.vm()["status"]["stateChangeRequests"] == [{"action": "Stop", "uid": uid}, {"action": "Start"}]


@pytest.mark.parametrize(
    ("verb", "strategy", "body"),
    [("start", "Halted", {}), ("stop", "Always", {"gracePeriod": 1}), ("restart", "Always", {}), ("migrate", "Always", {})],
)
@scripted
async def test_a_dry_run_changes_nothing(verb: str, strategy: str, body: dict[str, Any]) -> None:
    async with World() as world:
        await world.machine(runStrategy=strategy)
        if verb != "start":
            await world.instance()
        before = (world.vm(), world.api.store.revision)
        assert (await world.put("vm", "vm", verb, {**body, "dryRun": ["All"]})).status == 202
        assert (world.vm(), world.api.store.revision) == before
        said = await world.put("vm", "vm", verb, {**body, "dryRun": ["Some"]})
        assert said.status == 400


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "migrate"])
@scripted
async def test_no_such_machine(verb: str) -> None:
    async with World() as world:
        reply = await world.put("vm", "vm", verb)
        assert (reply.status, reply.data["message"]) == (404, 'virtualmachine.kubevirt.io "vm" not found')


@scripted
async def test_a_migration_is_an_object_that_names_its_instance() -> None:
    async with World() as world:
        await world.machine()
        refused = await world.put("vm", "vm", "migrate")
        assert (refused.status, refused.data["message"]) == (409, conflict("VM is not running"))
        await world.instance()
        assert (await world.put("vm", "vm", "migrate", {"addedNodeSelector": {"a": "b"}})).status == 202
        listed = await world.api.get(
            "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations?labelSelector=kubevirt.io/vmi-name%3Dvm"
        )
        (made,) = listed.data["items"]
        assert made["metadata"]["name"].startswith("kubevirt-migrate-vm-")
        assert made["spec"]["vmiName"] == "vm"


@pytest.mark.parametrize(
    ("body", "media"),
    [(b"paused: true\n", "application/yaml"), (b'{"paused": true}', "text/plain"), (b'{"paused": true, "unheard": 1}', "application/json")],
)
@scripted
async def test_bodies_are_read_whatever_their_type_says(body: bytes, media: str) -> None:
    async with World() as world:
        await world.machine(runStrategy="Halted")
        assert (await world.put("vm", "vm", "start", body, content_type=media)).status == 202
        assert world.vm()["status"]["stateChangeRequests"][0]["data"] == {"paused": "true"}


@pytest.mark.parametrize("body", [b"[1]", b"{", b'{"gracePeriod": "soon"}', b'{"gracePeriod": true}'])
@scripted
async def test_bodies_that_make_no_sense(body: bytes) -> None:
    async with World() as world:
        await world.machine()
        reply = await world.put("vm", "vm", "stop", body)
        assert reply.status == 400
        assert reply.data["message"].startswith("Can not unmarshal Request body to struct, error: ")


@scripted
async def test_whoever_is_slower_decides_again() -> None:
    async with World() as world:
        await world.machine(runStrategy="Halted")
        changes = world.stored.change
        raced: list[bool] = []

        async def racing(*args: Any, **more: Any) -> None:
            if not raced:
                raced.append(True)
                edit = lambda old: {**old, "spec": {**old["spec"], "runStrategy": "Manual"}}  # noqa: E731 - a step of the race
                await world.stored.edit("virtualmachines", ("default", "vm"), edit)
            await changes(*args, **more)

        world.subresources._lifecycle._stored.change = racing  # type: ignore[method-assign]
        assert (await world.put("vm", "vm", "start")).status == 202
        # Manual machines are started by a request in their status, and stay manual.
        assert world.vm()["spec"]["runStrategy"] == "Manual"
        assert world.vm()["status"]["stateChangeRequests"] == [{"action": "Start"}]


@scripted
async def test_whoever_is_always_slower_is_told_of_the_conflict() -> None:
    async with World() as world:
        await world.machine(runStrategy="Halted")
        changes = world.stored.change
        turns = iter(range(100))

        async def racing(*args: Any, **more: Any) -> None:
            strategy = ("Manual", "Halted")[next(turns) % 2]
            edit = lambda old: {**old, "spec": {**old["spec"], "runStrategy": strategy}, "status": {}}  # noqa: E731 - a step of the race
            await world.stored.edit("virtualmachines", ("default", "vm"), edit)
            await changes(*args, **more)

        world.subresources._lifecycle._stored.change = racing  # type: ignore[method-assign]
        reply = await world.put("vm", "vm", "start")
        assert (reply.status, reply.data["reason"]) == (409, "Conflict")
